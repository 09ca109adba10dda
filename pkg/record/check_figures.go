package record

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

func (c *checker) metrics(r *Record) {
	m := &r.Metrics
	c.figure("metrics.au", m.AU)
	c.figure("metrics.au_threshold", m.Threshold)
	c.figure("metrics.samples_per_second", m.SamplesPerSecond)
	c.figure("metrics.bytes_per_second", m.BytesPerSecond)
	c.percent("metrics.au", m.AU)
	c.percent("metrics.au_threshold", m.Threshold)
	if au, threshold := m.AU.Value, m.Threshold.Value; au != nil && threshold != nil {
		c.that(*threshold == r.Plan.AUThreshold, "metrics.au_threshold", "the plan has %v, found %v", r.Plan.AUThreshold, *threshold)
		met := *au >= *threshold
		// An incomplete run may leave the verdict out, but must not give another.
		left := m.Met == nil && r.Status == StatusIncomplete
		c.that(left || m.Met != nil && *m.Met == met, "metrics.au_met", "AU %v against %v is %v, found %s", *au, *threshold, met,
			truth(m.Met))
	} else {
		c.that(m.Met == nil, "metrics.au_met", "says %s although AU or its threshold is absent", truth(m.Met))
	}
	for i, e := range m.Epochs {
		at := fmt.Sprintf("metrics.epochs[%d].", i)
		c.that(e.Epoch == i+1, at+"epoch", "expected %d, found %d", i+1, e.Epoch)
		c.epochFigures(at, e, r)
	}
	c.that(len(m.Epochs) <= r.Plan.Epochs, "metrics.epochs", "the plan has %d, found %d", r.Plan.Epochs, len(m.Epochs))
	c.possible(r)
	if r.Status == StatusComplete {
		c.that(len(m.Epochs) == r.Plan.Epochs, "metrics.epochs", "a complete run has all %d of its plan, found %d", r.Plan.Epochs,
			len(m.Epochs))
	}
	for _, name := range slices.Sorted(maps.Keys(m.DLIO)) {
		c.that(plainValue(m.DLIO[name], true), "metrics.dlio."+name, "expected a number, a text, a truth value or a list of them, found %T",
			m.DLIO[name])
	}
	for _, name := range slices.Sorted(maps.Keys(m.Other)) {
		c.figure("metrics.other."+name, m.Other[name])
		if f := m.Other[name]; f.Unit == "%" {
			c.percent("metrics.other."+name, f)
		}
	}
}

// epochFigures holds the figures of one epoch, or of one pass.
func (c *checker) epochFigures(at string, e EpochMetrics, r *Record) {
	notNegative(c, at+"steps", e.Steps)
	v := reflect.ValueOf(e)
	for j := range v.NumField() {
		if f, ok := v.Field(j).Interface().(Figure); ok {
			c.figure(at+v.Type().Field(j).Tag.Get("json"), f)
		}
	}
	c.percent(at+"au", e.AU)
	c.storage(at, e, r.Status == StatusComplete)
	c.waits(at, e.Waits, r.Plan.Accelerators)
}

func truth(b *bool) string {
	if b == nil {
		return "nothing"
	}
	return fmt.Sprint(*b)
}

// figure holds that a figure is either there or absent with a reason, and not negative: all figures are times, sizes, counts,
// rates or percentages.
func (c *checker) figure(at string, f Figure) {
	c.class(at+".class", f.Class)
	c.that(f.Unit != "", at+".unit", "is empty")
	c.that((f.Value == nil) == (f.Absent != ""), at, "a figure has a value, or the reason why it is absent, and never both")
	if f.Value != nil {
		notNegative(c, at+".value", *f.Value)
	}
}

func (c *checker) percent(at string, f Figure) {
	if f.Value != nil {
		c.that(*f.Value <= 100, at+".value", "is a percentage of at most 100, found %v", *f.Value)
		c.that(f.Unit == "%", at+".unit", "expected %%, found %q", f.Unit)
	}
}

// plainValue accepts what JSON can hold in DLIO's summary: scalars, and lists of scalars, as read or as a caller would write them.
func plainValue(v any, lists bool) bool {
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Float64, reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return true
	case reflect.Slice:
		for i := range rv.Len() {
			if !plainValue(rv.Index(i).Interface(), false) {
				return false
			}
		}
		return lists
	}
	return false
}

func (c *checker) environment(e *Environment) {
	c.that(e.Class == HostOnly, "environment.class", "only the host says so: expected H, found %q", e.Class)
	for i, u := range e.Unknown {
		c.that(u.Reason != "", fmt.Sprintf("environment.unknown[%d].reason", i), "is empty for %s", u.Field)
		c.that(i == 0 || e.Unknown[i-1].Field < u.Field, fmt.Sprintf("environment.unknown[%d].field", i),
			"is not sorted or stands twice: %q", u.Field)
	}
	roles := []string{RoleData, RoleCheckpoints, RoleResults}
	last := -1
	for i, f := range e.Folders {
		n := slices.Index(roles, f.Role)
		c.that(n > last, fmt.Sprintf("environment.folders[%d].role", i), "expected data, checkpoints, results in this order, found %q", f.Role)
		last = n
	}
	c.buckets(e)
	c.unknowns(e, reflect.ValueOf(e).Elem(), "")
	if e.Redacted {
		c.hidden("environment.host.name", e.Host.Name)
		c.hidden("environment.host.serial", e.Host.Serial)
		for _, f := range e.Folders {
			c.hidden("environment.folders."+f.Role+".device.serial", f.Device.Serial)
		}
	}
}

// hidden holds that a redacted record does not tell what it says was left out.
func (c *checker) hidden(field, found string) {
	c.that(found == RedactedText || found == UnknownText || found == "", field, "environment.redacted is true, and it is there: expected %q, found %.100q",
		RedactedText, found)
}

// unknowns finds what is unknown or absent and holds that its reason is given, there or for a field that contains it.
func (c *checker) unknowns(e *Environment, v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.String:
		c.that(v.String() != UnknownText || e.explains(at), "environment."+at, "is unknown, but environment.unknown gives no reason")
		c.that(v.String() != RedactedText || e.Redacted, "environment."+at, "is redacted in a record that is not")
	case reflect.Pointer:
		c.that(!v.IsNil() || e.explains(at), "environment."+at, "is absent, but environment.unknown gives no reason")
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name != "unknown" {
				c.unknowns(e, v.Field(i), join(at, name))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			name := fmt.Sprint(i)
			switch el := v.Index(i).Interface().(type) {
			case Folder:
				name = el.Role
			case Bucket:
				name = el.Role
			case NUMANode:
				name = fmt.Sprint(el.ID)
			}
			c.unknowns(e, v.Index(i), join(at, name))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			c.unknowns(e, it.Value(), join(at, it.Key().String()))
		}
	}
}

// explains reports whether the list of unknown fields has the field, or one that contains it.
func (e *Environment) explains(field string) bool {
	return slices.ContainsFunc(e.Unknown, func(u Unknown) bool {
		return u.Field == field || strings.HasPrefix(field, u.Field+".")
	})
}

// evaluation holds what is said of the passes over the files for evaluation in plan, transcript and metrics together.
func (c *checker) evaluation(r *Record, t *EvaluationTranscript) {
	p, m := r.Plan.Evaluation, r.Metrics.Evaluation
	complete := r.Status == StatusComplete
	c.that((p == nil) == (t == nil), "transcript.evaluation", "stands in a record whose plan has evaluations, and in no other")
	c.that(m == nil || p != nil, "metrics.evaluation", "stands in a record whose plan has no evaluation")
	c.that(!complete || (m == nil) == (p == nil), "metrics.evaluation", "stands in a complete record whose plan has evaluations, and in no other")
	if p != nil {
		v := reflect.ValueOf(p).Elem()
		for i := range v.NumField() {
			name := "plan.evaluation." + v.Type().Field(i).Tag.Get("json")
			if f := v.Field(i); f.CanInt() {
				notNegative(c, name, f.Int())
			} else if f.CanFloat() {
				notNegative(c, name, f.Float())
			}
		}
		c.that(p.SamplesPerPass <= p.Samples, "plan.evaluation.samples_per_pass", "%d of %d samples", p.SamplesPerPass, p.Samples)
	}
	if t != nil {
		const at = "transcript.evaluation."
		notNegative(c, at+"entries", t.Entries)
		for i, rank := range t.Ranks {
			c.digest(fmt.Sprintf("%sranks[%d]", at, i), rank)
		}
		if complete || t.Root != "" {
			c.digest(at+"root", t.Root)
		}
		if complete || t.Expected != "" {
			c.digest(at+"expected", t.Expected)
		}
		c.that(!complete || t.Root == t.Expected, at+"root", "a complete run read what was expected, %q, found %q", t.Expected, t.Root)
		c.that(!complete || len(t.Ranks) == r.Plan.Accelerators, at+"ranks", "the plan has %d accelerators, found %d ranks", r.Plan.Accelerators,
			len(t.Ranks))
	}
	if m == nil {
		return
	}
	const at = "metrics.evaluation."
	c.figure(at+"au", m.AU)
	c.percent(at+"au", m.AU)
	c.figure(at+"samples_per_second", m.SamplesPerSecond)
	c.figure(at+"bytes_per_second", m.BytesPerSecond)
	last := 0
	for i, e := range m.Passes {
		at := fmt.Sprintf("%spasses[%d].", at, i)
		c.that(e.Epoch > last && e.Epoch <= r.Plan.Epochs, at+"epoch", "expected rising epochs of the plan's %d, found %d", r.Plan.Epochs, e.Epoch)
		last = e.Epoch
		c.epochFigures(at, e, r)
	}
	c.that(p == nil || len(m.Passes) <= p.Passes, at+"passes", "found more passes than planned: %d", len(m.Passes))
	c.that(p == nil || !complete || len(m.Passes) == p.Passes, at+"passes", "a complete run has all of its plan, found %d", len(m.Passes))
}
