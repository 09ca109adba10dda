package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// decoder sets the fields of a Workload from the values of a file, and gathers what is wrong, so that all of it is
// told at once.
type decoder struct {
	errs  []*Error
	warns []Warning
	// given says where each key got its value; a key that is not here has its default.
	given map[string]Position
	// strangers counts the unknown keys.
	strangers int
}

func (d *decoder) fail(k key, n *node, msg, hint string) {
	e := &Error{Position: n.pos, Path: k.path, Msg: msg, Hint: hint}
	if k.words != nil {
		e.Allowed = k.words
	} else if limits := k.limits(); limits != "" {
		e.Allowed = []string{limits}
	}
	d.errs = append(d.errs, e)
}

func (d *decoder) warn(pos Position, path, msg, hint string) {
	d.warns = append(d.warns, Warning{Position: pos, Path: path, Msg: msg, Hint: hint})
}

// decode fills w from root. Every key of the table is set, to its default where the file is silent or says null.
func (d *decoder) decode(root *node, w *Workload) {
	for _, k := range keys(w) {
		k.reset()
		n := root.find(k.path)
		if n == nil {
			if t, ok := k.field.(*Time); ok {
				d.time(k, nil, root.find(k.path+stdevSuffix), t)
			}
			continue
		}
		d.given[k.path] = n.pos
		if t, ok := k.field.(*Time); ok {
			d.time(k, n, root.find(k.path+stdevSuffix), t)
			continue
		}
		if n.kind == nullKind {
			delete(d.given, k.path)
			continue
		}
		d.set(k, n)
	}
}

// set gives the field of k the value n.
func (d *decoder) set(k key, n *node) {
	switch field := k.field.(type) {
	case *string:
		d.text(k, n, field)
	case *bool:
		d.flag(k, n, field)
	case *int:
		if v, ok := d.whole(k, n); ok {
			*field = int(v)
		}
	case *int64:
		if v, ok := d.whole(k, n); ok {
			*field = v
		}
	case *uint64:
		d.seed(k, n, field)
	case *float64:
		if v, ok := d.real(k, n); ok {
			*field = v
		}
	case *[]int:
		for _, v := range d.wholes(k, n) {
			*field = append(*field, int(v))
		}
	case *[]int64:
		*field = append(*field, d.wholes(k, n)...)
	case *[]string:
		d.texts(k, n, field)
	case *[]Column:
		d.columns(k, n, field)
	}
}

// text sets a text, or one word of an enumeration. Plain scalars count by what was written: `off` is the word off, 010
// is "010".
func (d *decoder) text(k key, n *node, field *string) {
	if n.kind == listKind || n.kind == mapKind {
		d.fail(k, n, "expected a text, found "+n.describe(), "")
		return
	}
	if strings.ContainsFunc(n.raw, unicode.IsControl) || !utf8.ValidString(n.raw) {
		d.fail(k, n, "control characters in "+n.describe(), "write it in one line")
		return
	}
	if k.words == nil {
		*field = n.raw
		return
	}
	value := n.raw
	if n.kind == boolKind && !n.truth {
		for _, off := range []string{"off", "none"} { // the YAML spellings of false
			if has(k.words, off) && !has(k.words, value) {
				value = off
			}
		}
	}
	if has(k.words, value) {
		*field = value
		return
	}
	hint := ""
	if near := nearest(strings.ToLower(value), k.words); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.fail(k, n, fmt.Sprintf("%q is not one of its words", clip(value)), hint)
}

func (d *decoder) flag(k key, n *node, field *bool) {
	switch {
	case n.kind == boolKind:
		*field = n.truth
	case k.textual && n.kind == textKind && (strings.EqualFold(n.raw, "true") || strings.EqualFold(n.raw, "false")):
		*field = strings.EqualFold(n.raw, "true")
	case n.kind == textKind && n.pos.Override != "":
		d.fail(k, n, "expected a boolean, found "+n.describe(), "an override knows the booleans true and false only")
	case n.kind == textKind:
		d.fail(k, n, "expected a boolean, found "+n.describe(), "a quoted value is a text: remove the quotes")
	default:
		d.fail(k, n, "expected a boolean, found "+n.describe(), "")
	}
}

// whole reads an integer, which may be written as a float without a fraction.
func (d *decoder) whole(k key, n *node) (int64, bool) {
	var v int64
	switch {
	case n.kind == intKind && n.whole.IsInt64():
		v = n.whole.Int64()
	case n.kind == intKind:
		d.fail(k, n, "the integer "+clip(n.raw)+" is out of range", "")
		return 0, false
	case n.kind == floatKind && n.float == math.Trunc(n.float) && math.Abs(n.float) <= maxWhole:
		v = int64(n.float)
	case n.kind == floatKind:
		d.fail(k, n, "expected an integer, found "+n.describe(), "")
		return 0, false
	default:
		d.fail(k, n, "expected an integer, found "+n.describe(), quotesHint(n))
		return 0, false
	}
	if v < -maxWhole || v > maxWhole || float64(v) < k.low || float64(v) > k.high {
		d.fail(k, n, fmt.Sprintf("%d is out of range", v), "")
		return 0, false
	}
	return v, true
}

func (d *decoder) real(k key, n *node) (float64, bool) {
	v := n.float
	switch n.kind {
	case floatKind:
	case intKind:
		v, _ = n.whole.Float64()
	default:
		d.fail(k, n, "expected a number, found "+n.describe(), quotesHint(n))
		return 0, false
	}
	hint := ""
	if k.path == "metric.au" && v > 1 && v <= 100 {
		hint = "it is a fraction: 90 % is 0.90"
	}
	if k.path == "checkpoint.time_between_checkpoints" && v < 0 {
		v = 0 // DLIO's default is -1; it means no pause
	}
	if k.high == MaxSeconds && v > k.high {
		hint = yearHint
	}
	if math.IsNaN(v) || math.IsInf(v, 0) || v < k.low || v > k.high {
		d.fail(k, n, clip(n.raw)+" is out of range", hint)
		return 0, false
	}
	return v + 0, true // -0 becomes 0: one value, one spelling
}

// yearHint goes with times that are too long.
const yearHint = "times are seconds, at most a year"

// seed reads 64 bits, as an integer or as decimal digits in quotes, which is how the canonical form has them.
func (d *decoder) seed(k key, n *node, field *uint64) {
	switch {
	case n.kind == intKind && n.whole.IsUint64():
		*field = n.whole.Uint64()
	case n.kind == intKind:
		d.fail(k, n, "the integer "+clip(n.raw)+" is out of range", "")
	case n.kind == textKind:
		v, err := strconv.ParseUint(n.raw, 10, 64)
		if err != nil || strconv.FormatUint(v, 10) != n.raw {
			d.fail(k, n, "expected decimal digits without zeros in front, found "+n.describe(), "")
			return
		}
		*field = v
	default:
		d.fail(k, n, "expected an integer, found "+n.describe(), "")
	}
}

func (d *decoder) wholes(k key, n *node) []int64 {
	if n.kind != listKind {
		d.fail(k, n, "expected a list such as [1, 2], found "+n.describe(), "")
		return nil
	}
	all := make([]int64, 0, len(n.items))
	for _, item := range n.items {
		if v, ok := d.whole(k, item); ok {
			all = append(all, v)
		}
	}
	return all
}

func (d *decoder) texts(k key, n *node, field *[]string) {
	items := n.items
	if n.kind != listKind {
		items = []*node{n}
	}
	for _, item := range items {
		var one string
		d.text(k, item, &one)
		*field = append(*field, one)
	}
}

// columns reads the columns of parquet files.
func (d *decoder) columns(k key, n *node, field *[]Column) {
	if n.kind != listKind {
		d.fail(k, n, "expected a list of columns, found "+n.describe(), "")
		return
	}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", k.path, i)
		if item.kind == textKind && item.raw != "" { // as the fork has it: a name alone
			*field = append(*field, Column{Name: item.raw, DType: "float32", Size: 1, Read: true})
			continue
		}
		if item.kind != mapKind {
			d.fail(key{path: at}, item, "expected a column such as {name: a, dtype: float32}, found "+item.describe(), "")
			continue
		}
		c := Column{}
		inner := columnKeys(at, &c)
		for _, ck := range inner {
			ck.reset()
			if v := item.get(strings.TrimPrefix(ck.path, at+".")); v != nil && v.kind != nullKind {
				d.set(ck, v)
			}
		}
		if c.Name == "" {
			d.fail(key{path: at}, item, "a column without a name", "")
		}
		d.unknown(item, at, inner)
		*field = append(*field, c)
	}
}

// columnKeys is the key table of one column.
func columnKeys(at string, c *Column) []key {
	return []key{
		text(at+".name", &c.Name, ""),
		text(at+".dtype", &c.DType, "float32"),
		whole(at+".size", &c.Size, 1).from(1),
		boolean(at+".read", &c.Read, true),
	}
}

func quotesHint(n *node) string {
	if n.kind != textKind {
		return ""
	}
	if n.pos.Override != "" {
		return "an override knows decimal numbers only: 0.5, 1e-3, 512"
	}
	digits := strings.TrimLeft(n.raw, "0")
	if v, err := strconv.ParseUint(digits, 10, 64); err == nil && digits != n.raw {
		return fmt.Sprintf("%s is no integer in YAML 1.1, where a zero in front means octal: write %d", clip(n.raw), v)
	}
	if _, err := strconv.ParseFloat(n.raw, 64); err == nil {
		return "a quoted value is a text: remove the quotes"
	}
	return ""
}

func has(words []string, w string) bool {
	for _, one := range words {
		if one == w {
			return true
		}
	}
	return false
}
