package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
)

// leaf is one figure of a record.
type leaf struct {
	name   string
	value  any // float64, string, bool, []any; nil where it is absent
	unit   string
	class  record.Class
	absent string
}

// noFigures are fields that describe and are computed from nothing.
var noFigures = map[string]bool{"class": true, "mount_point": true, "type": true, "disks": true, "direct": true, "everything": true,
	"name": true, "digest": true, "verified": true, "fsync": true, "epoch": true, "step": true}

// leavesOf finds all figures of metrics and checkpoints, whatever their types come to hold: every number, text, truth value and list that
// does not merely describe.
func leavesOf(r *record.Record) ([]leaf, error) {
	var out []leaf
	for _, part := range []struct {
		name string
		v    any
	}{{"", r.Metrics}, {"checkpoints", r.Checkpoints}} {
		b, err := json.Marshal(part.v)
		if err != nil {
			return nil, fmt.Errorf("figures of the record: %w", err)
		}
		w := walker{class: record.HostOnly}
		if err := w.walk(part.name, b); err != nil {
			return nil, fmt.Errorf("figures of the record: %w", err)
		}
		out = append(out, w.leaves...)
	}
	return out, nil
}

type walker struct {
	leaves []leaf
	class  record.Class
}

// walk visits a value in the order of the document.
func (w *walker) walk(at string, b json.RawMessage) error {
	b = bytes.TrimSpace(b)
	switch b[0] {
	case '{':
		return w.object(at, b)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		if len(list) > 0 && bytes.TrimSpace(list[0])[0] == '{' {
			for i, v := range list {
				if err := w.walk(join(at, elementName(at, i, v)), v); err != nil {
					return err
				}
			}
			return nil
		}
		if len(list) == 0 && at != "" && (hasSuffix(at, "epochs") || hasSuffix(at, "saves") || hasSuffix(at, "loads") || hasSuffix(at, "passes")) {
			return nil
		}
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	w.leaves = append(w.leaves, leaf{name: at, value: v, class: w.class})
	return nil
}

func hasSuffix(at, name string) bool {
	return at == name || len(at) > len(name) && at[len(at)-len(name)-1:] == "."+name
}

// elementName is what an element of a list is called: epochs and passes by their epoch, others by their place from 1, ranks from 0.
func elementName(at string, i int, b json.RawMessage) string {
	var e struct {
		Epoch *int `json:"epoch"`
	}
	if (hasSuffix(at, "epochs") || hasSuffix(at, "passes")) && json.Unmarshal(b, &e) == nil && e.Epoch != nil {
		return strconv.Itoa(*e.Epoch)
	}
	if hasSuffix(at, "ranks") {
		return strconv.Itoa(i)
	}
	return strconv.Itoa(i + 1)
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// object visits the fields of an object, or takes a whole figure.
func (w *walker) object(at string, b json.RawMessage) error {
	var f struct {
		Value  *float64      `json:"value"`
		Unit   *string       `json:"unit"`
		Class  *record.Class `json:"class"`
		Absent string        `json:"absent"`
	}
	if json.Unmarshal(b, &f) == nil && f.Unit != nil && f.Class != nil {
		l := leaf{name: at, unit: *f.Unit, class: *f.Class, absent: f.Absent}
		if f.Value != nil {
			l.value = *f.Value
		}
		w.leaves = append(w.leaves, l)
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return err
		}
		name, _ := key.(string)
		if noFigures[name] {
			continue
		}
		if err := w.walk(join(at, name), v); err != nil {
			return err
		}
	}
	return nil
}
