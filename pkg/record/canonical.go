package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the size of the largest record that Parse reads. A record of 100,000 ranks takes about 10 MB.
const MaxBytes = 64 << 20

// Errors of Parse and Canonical, for errors.Is.
var (
	// ErrNotRecord: the bytes are no JSON, or no record of this version.
	ErrNotRecord = errors.New("not a benchpin record")
	// ErrNotCanonical: the bytes hold a record, but are not the one form in which it is written.
	ErrNotCanonical = errors.New("record is not in canonical form")
	// ErrUnwritable: the record holds a value that has no canonical form.
	ErrUnwritable = errors.New("record cannot be written")
)

// canonicalSlot stands for the workload's canonical bytes while the rest of the record is encoded.
const canonicalSlot = "\n    \"canonical\": \"@\""

// Canonical returns the one byte form of the record: UTF-8 JSON, indented by two spaces, keys in the order of the Go types and
// those of maps sorted, no HTML escapes, numbers in the shortest form that reads back the same, one newline at the end. Lists and
// maps that are nil are written as empty. The workload's canonical bytes stand in it exactly as they are given, so that their
// digest can be computed from the file.
//
// It returns ErrUnwritable, with the path of the value, for a number that is not finite or -0, a text that is not UTF-8, a whole
// number in metrics.dlio that JSON would change, another schema name than SchemaName, and workload bytes that are no JSON value or
// have white space around it. Whatever it returns, Parse reads.
func (r *Record) Canonical() ([]byte, error) {
	out, err := r.encode()
	if err != nil {
		return nil, err
	}
	// Values below metrics.dlio have no static type, and workload bytes come from elsewhere: what was written must be readable.
	if _, err := Parse(out); err != nil {
		return nil, fmt.Errorf("%w: its own bytes do not read back, so a value has no canonical form (in metrics.dlio, use float64, "+
			"text, bool or lists of them): %w", ErrUnwritable, err)
	}
	return out, nil
}

func (r *Record) encode() ([]byte, error) {
	if err := writable(reflect.ValueOf(r).Elem(), ""); err != nil {
		return nil, err
	}
	canonical := []byte(r.Workload.Canonical)
	if err := workloadBytes(canonical); err != nil {
		return nil, err
	}
	c := *r
	c.Workload.Canonical = json.RawMessage(`"@"`)
	filled := fill(reflect.ValueOf(c))
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(filled.Interface()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	// Quotes inside a JSON text are escaped and the tool has no maps, so the first match is the field itself.
	before, after, found := bytes.Cut(buf.Bytes(), []byte(canonicalSlot))
	if !found {
		return nil, fmt.Errorf("%w: workload.canonical has no place in it", ErrUnwritable)
	}
	out := make([]byte, 0, buf.Len()+len(canonical))
	out = append(out, before...)
	out = append(out, canonicalSlot[:len(canonicalSlot)-len(`"@"`)]...)
	out = append(out, canonical...)
	return append(out, after...), nil
}

func workloadBytes(b []byte) error {
	switch {
	case !utf8.Valid(b) || !json.Valid(b):
		return fmt.Errorf("%w: workload.canonical must be one JSON value in UTF-8, found %d other bytes", ErrUnwritable, len(b))
	case len(bytes.TrimSpace(b)) != len(b):
		return fmt.Errorf("%w: workload.canonical has white space around its value; it must be the value alone", ErrUnwritable)
	}
	return nil
}

// writable refuses what encoding/json would write in another form than it was given (invalid UTF-8), or refuse without a path.
func writable(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%w: %s is %v; a figure that could not be computed is absent, with a reason", ErrUnwritable, path, f)
		}
		if f := v.Float(); f == 0 && math.Signbit(f) {
			return fmt.Errorf("%w: %s is -0", ErrUnwritable, path)
		}
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return fmt.Errorf("%w: %s is not UTF-8: %q", ErrUnwritable, path, v.String())
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return writable(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if err := writable(v.Field(i), join(path, name)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := writable(v.Index(i), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := writable(it.Key(), path+" (a key)"); err != nil {
				return err
			}
			if err := writable(it.Value(), join(path, it.Key().String())); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill returns a copy of v in which nil lists and maps are empty ones, because null would be a second way to write the same.
func fill(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			c.Field(i).Set(fill(v.Field(i)))
		}
		return c
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(fill(v.Index(i)))
		}
		return c
	case reflect.Map:
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(it.Key(), fill(it.Value()))
		}
		return c
	}
	return v
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Parse reads a record and accepts nothing but the canonical form of one: unknown, repeated or missing fields, data after the end,
// other spellings of numbers or texts and invalid UTF-8 are refused, with the line where the bytes first differ from what they
// should be. It does not judge what the record says; Check does.
//
// Errors wrap ErrNotRecord or ErrNotCanonical.
func Parse(b []byte) (*Record, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrNotRecord, len(b), MaxBytes)
	}
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: byte %d is not UTF-8", ErrNotRecord, invalidUTF8(b))
	}
	if err := noRepeatedKeys(b); err != nil {
		return nil, err
	}
	r := new(Record)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrNotRecord, lineAt(b, dec.InputOffset()), err)
	}
	if r.Schema != SchemaName {
		return nil, fmt.Errorf("%w: schema is %q, expected %q", ErrNotRecord, r.Schema, SchemaName)
	}
	again, err := r.encode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	if !bytes.Equal(b, again) {
		return nil, fmt.Errorf("%w: %s", ErrNotCanonical, firstDifference(again, b))
	}
	return r, nil
}

// noRepeatedKeys walks all tokens: encoding/json takes the last of two equal keys, another reader may take the first.
func noRepeatedKeys(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	type level struct {
		keys  map[string]struct{} // nil for a list
		value bool                // the next token is the value of a key
	}
	var stack []level
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrNotRecord, lineAt(b, dec.InputOffset()), err)
		}
		if n := len(stack); n > 0 && stack[n-1].keys != nil && tok != json.Delim('}') {
			top := &stack[n-1]
			if key, ok := tok.(string); ok && !top.value {
				if _, twice := top.keys[key]; twice {
					return fmt.Errorf("%w: line %d: key %q stands twice", ErrNotCanonical, lineAt(b, dec.InputOffset()), key)
				}
				top.keys[key] = struct{}{}
				top.value = true
				continue
			}
			top.value = false
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]struct{}{}})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}

func invalidUTF8(b []byte) int {
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
	return at
}

func lineAt(b []byte, offset int64) int {
	return 1 + bytes.Count(b[:min(offset, int64(len(b)))], []byte("\n"))
}

// firstDifference names the first line in which found is not what was expected.
func firstDifference(expected, found []byte) string {
	at := 0
	for at < len(expected) && at < len(found) && expected[at] == found[at] {
		at++
	}
	return fmt.Sprintf("line %d: expected %s, found %s", lineAt(found, int64(at)), lineOf(expected, at), lineOf(found, at))
}

func lineOf(b []byte, at int) string {
	if at >= len(b) {
		return "the end"
	}
	start := bytes.LastIndexByte(b[:at], '\n') + 1
	// A workload can stand on one line of many thousand bytes: show the place, not all of it.
	start = max(start, at-40)
	end := len(b)
	if n := bytes.IndexByte(b[at:], '\n'); n >= 0 {
		end = at + n
	}
	return strconv.Quote(string(b[start:min(end, at+40)]))
}
