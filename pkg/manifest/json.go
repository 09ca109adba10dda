package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// rewriteJSON reads one JSON value and writes it without spaces, keys in the order in which they came, strings and numbers
// as encoding/json writes them without HTML escapes. A key that comes twice is an error.
func rewriteJSON(raw []byte) ([]byte, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrSyntax)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out bytes.Buffer
	if err := rewriteValue(d, &out, 0); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: more follows the value", ErrSyntax)
	}
	return out.Bytes(), nil
}

const maxJSONDepth = 32

func rewriteValue(d *json.Decoder, out *bytes.Buffer, depth int) error {
	if depth > maxJSONDepth {
		return fmt.Errorf("%w: values are nested more than %d deep", ErrLimit, maxJSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return writeScalar(out, t)
	}
	out.WriteString(delim.String())
	keys := map[string]bool{}
	for n := 0; d.More(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		if delim == '{' {
			k, err := d.Token()
			if err != nil {
				return fmt.Errorf("%w: %w", ErrSyntax, err)
			}
			key, _ := k.(string)
			if keys[key] {
				return fmt.Errorf("%w: key %q comes twice", ErrCanonical, key)
			}
			keys[key] = true
			if err := writeScalar(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if err := rewriteValue(d, out, depth+1); err != nil {
			return err
		}
	}
	end, err := d.Token()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	out.WriteString(end.(json.Delim).String()) // after More said no, the token is the closing one
	return nil
}

func writeScalar(out *bytes.Buffer, t any) error {
	if n, ok := t.(json.Number); ok {
		// A number is an integer as it stands, or the shortest decimal that is the same float64.
		if strings.ContainsAny(n.String(), ".eE") || n.String() == "-0" {
			f, err := n.Float64()
			if err != nil {
				return fmt.Errorf("%w: number %.40s: %w", ErrField, n, err)
			}
			t = f
		} else {
			out.WriteString(n.String())
			return nil
		}
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return fmt.Errorf("%w: %w", ErrField, err)
	}
	out.Truncate(out.Len() - 1) // the encoder ends values with a line end
	return nil
}
