package workload

import (
	"fmt"
	"strings"
)

// MaxSeconds bounds every time of a workload, and every parameter of a distribution: a year. Sums over a run stay far from what a clock can
// hold, and nothing real comes near it.
const MaxSeconds = 31_536_000

// stdevSuffix makes the name of the key that adds a spread to a time: computation_time_stdev.
const stdevSuffix = "_stdev"

// timeKeys is the key table of a time that is written as a section: which parameters each type has.
func timeKeys(at string, t *Time) map[string][]key {
	p := func(name string, field *float64) key {
		return key{path: at + "." + name, field: field, reset: func() { *field = 0 }, low: 0, high: MaxSeconds}
	}
	return map[string][]key{
		TimeConstant:    {p("mean", &t.Center)},
		TimeNormal:      {p("mean", &t.Center), p("stdev", &t.Stdev)},
		TimeUniform:     {p("min", &t.Min), p("max", &t.Max)},
		TimeGamma:       {p("shape", &t.Shape), p("scale", &t.Scale)},
		TimeExponential: {p("scale", &t.Scale)},
		TimePoisson:     {p("lam", &t.Lam)},
	}
}

// timeTypes are the words of a time's type.
func timeTypes() []string {
	return []string{TimeConstant, TimeNormal, TimeUniform, TimeGamma, TimeExponential, TimePoisson}
}

// time reads one of DLIO's time forms: a number, or a section with or without a type; spread is the *_stdev key, or nil.
func (d *decoder) time(k key, n, spread *node, t *Time) {
	*t = Time{Type: TimeConstant}
	number := key{path: k.path, low: 0, high: MaxSeconds, field: new(float64)}
	switch {
	case n == nil || n.kind == nullKind:
		delete(d.given, k.path)
	case n.kind == intKind || n.kind == floatKind:
		if v, ok := d.real(number, n); ok {
			t.Center = v
		}
	case n.kind == mapKind:
		d.timeSection(k, n, t)
	default:
		d.fail(k, n, "expected seconds or a distribution such as {mean: 0.3, stdev: 0.01}, found "+n.describe(), quotesHint(n))
		return
	}
	if spread != nil && spread.kind != nullKind {
		d.spread(k, n, spread, t)
	}
	if t.Type == TimeNormal && t.Stdev == 0 {
		t.Type = TimeConstant // the same time, drawn or not
	}
}

// spread applies the *_stdev key.
func (d *decoder) spread(k key, n, spread *node, t *Time) {
	at := k.path + stdevSuffix
	v, ok := d.real(key{path: at, low: 0, high: MaxSeconds, field: new(float64)}, spread)
	switch {
	case !ok:
	case n == nil || n.kind == nullKind:
		d.warn(spread.pos, at, "has no effect without "+k.path, "")
	case t.Type != TimeConstant && t.Type != TimeNormal:
		d.warn(spread.pos, at, "has no effect on the type "+t.Type, "")
	default:
		if n.get("stdev") != nil {
			d.warn(spread.pos, at, "replaces the stdev in "+k.path, "")
		}
		t.Type, t.Stdev = TimeNormal, v
		d.given[at] = spread.pos
	}
}

// timeSection reads a time that is written as a section.
func (d *decoder) timeSection(k key, n *node, t *Time) {
	if len(n.fields) == 0 {
		return // DLIO's own default, {}
	}
	table := timeKeys(k.path, t)
	word := TimeConstant
	if n.get("stdev") != nil {
		word = TimeNormal
	}
	typ := key{path: k.path + ".type", field: &t.Type, words: timeTypes()}
	if given := n.get("type"); given != nil && given.kind != nullKind {
		t.Type = ""
		if d.text(typ, given, &t.Type); t.Type == "" {
			return
		}
		word = t.Type
	}
	t.Type = word
	for _, p := range table[word] {
		name := strings.TrimPrefix(p.path, k.path+".")
		v := n.get(name)
		if v == nil || v.kind == nullKind {
			d.fail(key{path: k.path}, n, fmt.Sprintf("the type %s needs %s", word, name), "")
			continue
		}
		d.set(p, v)
	}
	if word == TimeUniform && t.Min > t.Max {
		d.fail(key{path: k.path}, n, fmt.Sprintf("min %s is above max %s", formatFloat(t.Min), formatFloat(t.Max)), "")
	}
	if word == TimeGamma && t.Shape == 0 && n.get("shape") != nil {
		d.fail(key{path: k.path + ".shape"}, n.get("shape"), "expected more than 0", "")
	}
	if mean := t.Mean(); mean > MaxSeconds {
		d.fail(key{path: k.path}, n, fmt.Sprintf("the mean, %s seconds, is out of range", formatFloat(mean)), yearHint)
	}
	d.unknown(n, k.path, append([]key{typ}, table[word]...))
}
