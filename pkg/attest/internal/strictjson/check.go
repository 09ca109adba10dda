package strictjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// check compares a parsed value with the Go type that it will be read into.
func check(n *node, t reflect.Type, path string) error {
	if t == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		return check(n, t.Elem(), path)
	}
	if n.kind == null {
		return fault.New(fault.WrongType, path, "null stands for no value here")
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return checkOwn(n, t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkStruct(n, t, path)
	case reflect.Map:
		if n.kind != object {
			return wrongType(n, object, path)
		}
		for i, key := range n.keys {
			if err := check(n.values[i], t.Elem(), join(path, key)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Slice:
		if n.kind != list {
			return wrongType(n, list, path)
		}
		for i, v := range n.values {
			if err := check(v, t.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
		return nil
	case reflect.String:
		return wantKind(n, text, path)
	case reflect.Bool:
		return wantKind(n, truth, path)
	default:
		if err := wantKind(n, number, path); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(n.scalar), reflect.New(t).Interface()); err != nil {
			return fault.New(fault.WrongType, path, "expected a number that fits "+t.String()+", found "+shorten(n.scalar))
		}
		return nil
	}
}

// checkOwn lets a type that reads itself judge the value, and adds the path to what it says.
func checkOwn(n *node, t reflect.Type, path string) error {
	if n.kind == object || n.kind == list {
		return wrongType(n, text, path)
	}
	raw := []byte(n.scalar)
	if n.kind == text {
		quoted, err := json.Marshal(n.scalar)
		if err != nil {
			return fault.New(fault.Encoding, path, err.Error())
		}
		raw = quoted
	}
	own, _ := reflect.New(t).Interface().(json.Unmarshaler)
	if err := own.UnmarshalJSON(raw); err != nil {
		if f, ok := asFault(err); ok {
			c := *f
			c.Field = path
			return &c
		}
		return fault.New(fault.WrongType, path, err.Error())
	}
	return nil
}

func checkStruct(n *node, t reflect.Type, path string) error {
	if n.kind != object {
		return wrongType(n, object, path)
	}
	fields := map[string]reflect.Type{}
	var required []string
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[name] = t.Field(i).Type
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	for i, key := range n.keys {
		ft, known := fields[key]
		if !known {
			return unknownKey(fields, key, path)
		}
		if err := check(n.values[i], ft, join(path, key)); err != nil {
			return err
		}
	}
	for _, name := range required {
		if n.get(name) == nil {
			return fault.New(fault.MissingField, join(path, name), "this field is required and absent")
		}
	}
	return nil
}

func unknownKey(fields map[string]reflect.Type, key, path string) error {
	for name := range fields {
		if strings.EqualFold(name, key) {
			return fault.New(fault.KeyCase, join(path, key), "keys are compared as written; the field is "+strconv.Quote(name))
		}
	}
	return fault.New(fault.UnknownField, join(path, key), "this field is not part of the format")
}

func (n *node) get(key string) *node {
	for i, k := range n.keys {
		if k == key {
			return n.values[i]
		}
	}
	return nil
}

func wantKind(n *node, k kind, path string) error {
	if n.kind != k {
		return wrongType(n, k, path)
	}
	return nil
}

func wrongType(n *node, expected kind, path string) error {
	return fault.New(fault.WrongType, path, "expected "+string(expected)+", found "+string(n.kind))
}

func asFault(err error) (*fault.Fault, bool) {
	var f *fault.Fault
	ok := errors.As(err, &f)
	return f, ok
}

// Difference returns the first place in which two documents say something different, or "" and true when they say the same. Order
// of keys and white space do not matter; numbers are compared as written. Both must be strict documents of at most maxBytes.
func Difference(expected, found []byte, maxBytes int) (where string, same bool, err error) {
	e, err := parse(expected, maxBytes)
	if err != nil {
		return "", false, err
	}
	f, err := parse(found, maxBytes)
	if err != nil {
		return "", false, err
	}
	field, detail, same := difference(e, f, "")
	if same {
		return "", true, nil
	}
	return strings.TrimPrefix(field+": ", ": ") + detail, false, nil
}

func difference(e, f *node, path string) (field, detail string, same bool) {
	if e.kind != f.kind {
		return path, "expected " + string(e.kind) + ", found " + string(f.kind), false
	}
	switch e.kind {
	case object:
		for i, key := range e.keys {
			v := f.get(key)
			if v == nil {
				return join(path, key), "expected, and absent", false
			}
			if field, detail, same := difference(e.values[i], v, join(path, key)); !same {
				return field, detail, false
			}
		}
		for _, key := range f.keys {
			if e.get(key) == nil {
				return join(path, key), "not expected", false
			}
		}
	case list:
		for i := range min(len(e.values), len(f.values)) {
			if field, detail, same := difference(e.values[i], f.values[i], path+"["+strconv.Itoa(i)+"]"); !same {
				return field, detail, false
			}
		}
		if len(e.values) != len(f.values) {
			return path, "expected " + strconv.Itoa(len(e.values)) + " elements, found " + strconv.Itoa(len(f.values)), false
		}
	default:
		if e.scalar != f.scalar {
			return path, "expected " + shorten(strconv.Quote(e.scalar)) + ", found " + shorten(strconv.Quote(f.scalar)), false
		}
	}
	return "", "", true
}
