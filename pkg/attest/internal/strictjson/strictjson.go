// Package strictjson reads JSON documents whose every byte an attacker may have chosen. Where encoding/json is lenient (keys in
// any case, repeated and unknown keys, null for anything, broken UTF-8), it refuses, and names the place. It never decides what a
// document means.
package strictjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// Unmarshal reads one document of at most maxBytes into v, a pointer to a struct. Every key must be spelled exactly as in the
// field's tag; a field without omitempty is required; null is accepted nowhere but inside a json.RawMessage. Errors are *fault.Fault.
func Unmarshal(data []byte, maxBytes int, v any) error {
	n, err := parse(data, maxBytes)
	if err != nil {
		return err
	}
	if err := check(n, reflect.TypeOf(v).Elem(), ""); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		if f, ok := asFault(err); ok {
			return f
		}
		return fault.New(fault.WrongType, "", err.Error())
	}
	return nil
}

// Valid reports whether data is one strict document of at most maxBytes, whatever its fields.
func Valid(data []byte, maxBytes int) error {
	_, err := parse(data, maxBytes)
	return err
}

// Marshal writes v in the form in which all documents here are written: no white space, keys of structs in the order of their
// fields and of maps sorted, no HTML escapes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Base64 is bytes as standard base64 with padding, in the one form that encodes them: no line ends, no other alphabet, no stray bits.
type Base64 []byte

// MarshalJSON writes the bytes as a base64 text.
func (b Base64) MarshalJSON() ([]byte, error) {
	return []byte(`"` + base64.StdEncoding.EncodeToString(b) + `"`), nil
}

// UnmarshalJSON reads a base64 text and refuses every other form of it.
func (b *Base64) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fault.New(fault.WrongType, "", "expected a base64 text, found "+shorten(string(data)))
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || base64.StdEncoding.EncodeToString(raw) != s {
		return fault.New(fault.Base64, "", "expected standard base64 with padding and nothing else, found "+shorten(strconv.Quote(s)))
	}
	*b = raw
	return nil
}

// kind is the JSON type of a node, named as messages name it.
type kind string

const (
	object kind = "an object"
	list   kind = "a list"
	text   kind = "a text"
	number kind = "a number"
	truth  kind = "true or false"
	null   kind = "null"
)

// node is a parsed value. Keys stand in the order of the document.
type node struct {
	kind   kind
	keys   []string
	values []*node
	scalar string // the text, or the number and truth value as written
}

func parse(data []byte, maxBytes int) (*node, error) {
	if len(data) > maxBytes {
		return nil, fault.New(fault.Limit, "", fmt.Sprintf("%d bytes, at most %d are read", len(data), maxBytes))
	}
	if !utf8.Valid(data) {
		return nil, fault.New(fault.Encoding, "", "bytes that are not UTF-8")
	}
	if !json.Valid(data) {
		return nil, fault.New(fault.Syntax, "", syntaxProblem(data))
	}
	if err := wholeEscapes(data); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return (&builder{dec: dec}).build("", 0)
}

func syntaxProblem(data []byte) string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return "not one JSON document: " + err.Error()
	}
	return "not one JSON document"
}

// wholeEscapes refuses \u escapes of surrogates that do not stand in a pair: readers put different characters in their place.
func wholeEscapes(data []byte) error {
	half := func(i int) (uint64, bool) {
		if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 16)
		return n, err == nil
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		n, isUnicode := half(i)
		switch {
		case !isUnicode:
			i++
		case n < 0xd800 || n > 0xdfff:
			i += 5
		default:
			low, ok := half(i + 6)
			if n > 0xdbff || !ok || low < 0xdc00 || low > 0xdfff {
				return fault.New(fault.Encoding, "", fmt.Sprintf("byte %d: an escape of half a character", i))
			}
			i += 11
		}
	}
	return nil
}

// builder makes the tree of a document that is known to be well-formed, within the limits.
type builder struct {
	dec    *json.Decoder
	values int
}

// build reads the next value.
func (b *builder) build(path string, depth int) (*node, error) {
	if b.values++; b.values > limits.JSONValues {
		return nil, fault.New(fault.Limit, path, fmt.Sprintf("more than %d values", limits.JSONValues))
	}
	tok, err := b.dec.Token()
	if err != nil {
		return nil, fault.New(fault.Syntax, path, err.Error())
	}
	switch t := tok.(type) {
	case json.Delim:
		if depth == limits.JSONDepth {
			return nil, fault.New(fault.Limit, path, fmt.Sprintf("more than %d levels deep", limits.JSONDepth))
		}
		if t == '[' {
			return b.list(path, depth)
		}
		return b.object(path, depth)
	case string:
		return &node{kind: text, scalar: t}, nil
	case json.Number:
		return &node{kind: number, scalar: t.String()}, nil
	case bool:
		return &node{kind: truth, scalar: strconv.FormatBool(t)}, nil
	default:
		return &node{kind: null, scalar: "null"}, nil
	}
}

func (b *builder) list(path string, depth int) (*node, error) {
	n := &node{kind: list}
	for b.dec.More() {
		v, err := b.build(path+"["+strconv.Itoa(len(n.values))+"]", depth+1)
		if err != nil {
			return nil, err
		}
		n.values = append(n.values, v)
	}
	_, err := b.dec.Token()
	return n, err
}

func (b *builder) object(path string, depth int) (*node, error) {
	n := &node{kind: object}
	seen := map[string]bool{}
	for b.dec.More() {
		tok, err := b.dec.Token()
		if err != nil {
			return nil, fault.New(fault.Syntax, path, err.Error())
		}
		key, _ := tok.(string)
		at := join(path, key)
		if seen[key] {
			return nil, fault.New(fault.DuplicateKey, at, "this key stands twice")
		}
		seen[key] = true
		v, err := b.build(at, depth+1)
		if err != nil {
			return nil, err
		}
		n.keys = append(n.keys, key)
		n.values = append(n.values, v)
	}
	_, err := b.dec.Token()
	return n, err
}

func join(path, key string) string {
	if strings.ContainsAny(key, ".[]\" ") || key == "" {
		return path + "[" + strconv.Quote(shorten(key)) + "]"
	}
	if path == "" {
		return shorten(key)
	}
	return path + "." + shorten(key)
}

// shorten keeps messages readable whatever the document holds.
func shorten(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:77], "") + "..."
}
