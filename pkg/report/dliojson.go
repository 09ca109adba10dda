package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// dlioField is one member of an object whose members have an order.
type dlioField struct {
	name  string
	value any
}

// dlioObject is a JSON object in the order in which DLIO writes it.
type dlioObject []dlioField

func (o *dlioObject) add(name string, value any) { *o = append(*o, dlioField{name, value}) }

// dlioNanos is a list of times in nanoseconds, written in seconds.
type dlioNanos []int64

// writeDLIO writes v as Python's json.dump(v, indent=4) would: numbers of type float always look like one, every element of a list
// stands on a line of its own. What is not finite is written as null, where Python would write NaN, which is no JSON. It holds
// no more than a buffer.
func writeDLIO(w io.Writer, v any) error {
	d := dlioJSON{w: bufio.NewWriterSize(w, 64<<10)}
	if err := d.value(v, 0); err != nil {
		return err
	}
	return d.w.Flush() // a bufio.Writer keeps the first error of all writes
}

type dlioJSON struct {
	w   *bufio.Writer
	num []byte
}

func (d *dlioJSON) value(v any, depth int) error {
	switch v := v.(type) {
	case string:
		return d.text(v)
	case int:
		d.num = strconv.AppendInt(d.num[:0], int64(v), 10)
		_, err := d.w.Write(d.num)
		return err
	case bool:
		_, err := d.w.WriteString(strconv.FormatBool(v))
		return err
	case float64:
		return d.float(v)
	case dlioObject:
		return d.object(v, depth)
	case map[string]string:
		o := make(dlioObject, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			o.add(k, v[k])
		}
		return d.object(o, depth)
	case []float64:
		return dlioList(d, v, depth, d.float)
	case dlioNanos:
		return dlioList(d, v, depth, func(ns int64) error { return d.float(float64(ns) / 1e9) })
	case []int:
		return dlioList(d, v, depth, func(n int) error { return d.value(n, depth+1) })
	case []any:
		return dlioList(d, v, depth, func(e any) error { return d.value(e, depth+1) })
	default:
		return fmt.Errorf("DLIO's files have no values of type %T", v)
	}
}

func (d *dlioJSON) text(s string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = d.w.Write(b)
	return err
}

// float writes a number so that Python reads a float again.
func (d *dlioJSON) float(v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		_, err := d.w.WriteString("null")
		return err
	}
	d.num = strconv.AppendFloat(d.num[:0], v, 'g', -1, 64)
	if !strings.ContainsAny(string(d.num), ".e") {
		d.num = append(d.num, ".0"...)
	}
	_, err := d.w.Write(d.num)
	return err
}

func (d *dlioJSON) line(depth int) {
	d.w.WriteByte('\n')
	for range 4 * depth {
		d.w.WriteByte(' ')
	}
}

func (d *dlioJSON) object(o dlioObject, depth int) error {
	if len(o) == 0 {
		_, err := d.w.WriteString("{}")
		return err
	}
	d.w.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			d.w.WriteByte(',')
		}
		d.line(depth + 1)
		if err := d.text(f.name); err != nil {
			return err
		}
		d.w.WriteString(": ")
		if err := d.value(f.value, depth+1); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	d.line(depth)
	return d.w.WriteByte('}')
}

func dlioList[T any](d *dlioJSON, list []T, depth int, one func(T) error) error {
	if len(list) == 0 {
		_, err := d.w.WriteString("[]")
		return err
	}
	d.w.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			d.w.WriteByte(',')
		}
		d.line(depth + 1)
		if err := one(v); err != nil {
			return err
		}
	}
	d.line(depth)
	return d.w.WriteByte(']')
}
