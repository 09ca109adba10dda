package workload

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"sort"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/zeebo/blake3"
)

// canonical is the one byte form of w: JSON with every key of the table but credentials and added keys that have their
// default, sections as objects, members sorted by name, no white space, numbers and texts as in RFC 8785. 64-bit seeds
// are strings. The caller must not change w while it runs.
func canonical(w *Workload) []byte {
	tree := map[string]any{}
	defaults := keys(new(Workload))
	for i, k := range keys(w) {
		if k.secret || k.added && k.equal(defaults[i]) {
			continue
		}
		at := tree
		names := strings.Split(k.path, ".")
		for _, name := range names[:len(names)-1] {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[name] = next
			}
			at = next
		}
		at[names[len(names)-1]] = plain(k.field)
	}
	return appendJSON(nil, tree)
}

// equal reports whether k has the default of d, the same key of another workload, which it resets.
func (k key) equal(d key) bool {
	d.reset()
	return bytes.Equal(appendJSON(nil, plain(k.field)), appendJSON(nil, plain(d.field)))
}

// plain is the value of a field in the forms that appendJSON writes.
func plain(field any) any {
	switch v := field.(type) {
	case *string:
		return *v
	case *bool:
		return *v
	case *int:
		return int64(*v)
	case *int64:
		return *v
	case *uint64:
		return strconv.FormatUint(*v, 10)
	case *float64:
		return *v
	case *[]int:
		return anys(*v, func(i int) any { return int64(i) })
	case *[]int64:
		return anys(*v, func(i int64) any { return i })
	case *[]string:
		return anys(*v, func(s string) any { return s })
	case *[]Column:
		return anys(*v, func(c Column) any {
			return map[string]any{"name": c.Name, "dtype": c.DType, "size": int64(c.Size), "read": c.Read}
		})
	case *Time:
		out := map[string]any{"type": v.Type}
		for _, p := range timeKeys("", v)[v.Type] {
			out[strings.TrimPrefix(p.path, ".")] = *p.field.(*float64)
		}
		return out
	}
	return nil
}

func anys[T any](in []T, f func(T) any) []any {
	out := make([]any, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

// appendJSON appends v in canonical form.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return append(b, formatFloat(v)...)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		b = append(b, '{')
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, name), ':')
			b = appendJSON(b, v[name])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// appendText appends s as a JSON string with the escapes of RFC 8785: the shortest ones, and none that are not needed.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, string(c)...)
		}
	}
	return append(b, '"')
}

// maxCanonical bounds a canonical form that is read; what the largest file makes is below it.
const maxCanonical = 1 << 20

// ErrNotCanonical is the class of every error of ParseCanonical.
var ErrNotCanonical = errors.New("not the canonical form of a workload")

// ParseCanonical reads the canonical form of a workload, strictly: every key must be there (but for those added since, where
// they have their default), with an allowed value, and writing the workload again must give the same bytes. Credentials are not part of that form and are empty in the
// result.
func ParseCanonical(data []byte) (*Workload, error) {
	if len(data) > maxCanonical {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", ErrNotCanonical, len(data), maxCanonical)
	}
	r := jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), budget: maxNodes}
	r.dec.UseNumber()
	root, err := r.value(0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something stands behind it", ErrNotCanonical)
	}
	w := new(Workload)
	d := &decoder{given: map[string]Position{}}
	d.decode(root, w)
	finish(w)
	if err := d.err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	if again := canonical(w); !bytes.Equal(again, data) {
		at := 0
		for at < len(again) && at < len(data) && again[at] == data[at] {
			at++
		}
		return nil, fmt.Errorf("%w: byte %d is %s, expected %s; it was edited, or written by another version",
			ErrNotCanonical, at, around(data, at), around(again, at))
	}
	return w, nil
}

// around quotes what stands at a byte.
func around(data []byte, at int) string {
	if at >= len(data) {
		return "the end"
	}
	return strconv.Quote(string(data[at:min(at+24, len(data))]))
}

// jsonReader turns JSON into nodes.
type jsonReader struct {
	dec    *json.Decoder
	budget int
}

func (r *jsonReader) value(depth int) (*node, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	if r.budget--; r.budget < 0 || depth > maxDepth {
		return nil, fmt.Errorf("more than %d values or %d levels", maxNodes, maxDepth)
	}
	switch t := token.(type) {
	case string:
		return &node{kind: textKind, raw: t}, nil
	case bool:
		return &node{kind: boolKind, raw: strconv.FormatBool(t), truth: t}, nil
	case json.Number:
		return number(string(t))
	case json.Delim:
		out := &node{kind: listKind}
		if t == '{' {
			out.kind = mapKind
		}
		for r.dec.More() {
			name := ""
			if t == '{' {
				key, err := r.dec.Token()
				if err != nil {
					return nil, err
				}
				name, _ = key.(string)
			}
			v, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			if t == '{' {
				out.fields = append(out.fields, field{name: name, value: v})
			} else {
				out.items = append(out.items, v)
			}
		}
		_, err := r.dec.Token()
		return out, err
	}
	return &node{kind: nullKind, raw: "null"}, nil
}

// number types a JSON number.
func number(s string) (*node, error) {
	if v, ok := new(big.Int).SetString(s, 10); ok {
		return &node{kind: intKind, raw: s, whole: v}, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", clip(s))
	}
	return &node{kind: floatKind, raw: s, float: f}, nil
}

// blake3Digest is the BLAKE3 digest of b as a go-digest string.
func blake3Digest(b []byte) digest.Digest {
	sum := blake3.Sum256(b)
	return digest.NewDigestFromEncoded("blake3", hex.EncodeToString(sum[:]))
}
