package strictjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

type inner struct {
	N int64  `json:"n"`
	B Base64 `json:"b,omitempty"`
}

type doc struct {
	Name string            `json:"name"`
	List []inner           `json:"list"`
	Map  map[string]string `json:"map,omitempty"`
	Ptr  *inner            `json:"ptr,omitempty"`
	Any  json.RawMessage   `json:"any,omitempty"`
	OK   bool              `json:"ok,omitempty"`
}

func TestUnmarshal(t *testing.T) {
	for text, want := range map[string]struct {
		class fault.Class
		field string
	}{
		`{"name":"x","list":[]}`: {},
		` { "list" : [ {"n" : -9223372036854775808, "b":"AAE="} ] , "name":"\ud83d\ude00\u00e9", "map":{"a":"b"},"ptr":{"n":0},"any":{"z":[null]},"ok":true} ` + "\n": {},
		``:                                                 {fault.Syntax, ""},
		`{"name":"x","list":[]}x`:                          {fault.Syntax, ""},
		`{"name":"x","list":[]}{}`:                         {fault.Syntax, ""},
		`{"name":"x","list":[],}`:                          {fault.Syntax, ""},
		`{"name":"x","list":[NaN]}`:                        {fault.Syntax, ""},
		"{\"name\":\"\xff\",\"list\":[]}":                  {fault.Encoding, ""},
		`{"name":"\ud800","list":[]}`:                      {fault.Encoding, ""},
		`{"name":"\ud800\n","list":[]}`:                    {fault.Encoding, ""},
		`{"name":"\udc00\ud800","list":[]}`:                {fault.Encoding, ""},
		`{"name":"\\ud800","list":[]}`:                     {},
		`[]`:                                               {fault.WrongType, ""},
		`null`:                                             {fault.WrongType, ""},
		`{"name":"x"}`:                                     {fault.MissingField, "list"},
		`{"name":"x","list":null}`:                         {fault.WrongType, "list"},
		`{"name":"x","list":{}}`:                           {fault.WrongType, "list"},
		`{"name":1,"list":[]}`:                             {fault.WrongType, "name"},
		`{"name":"x","list":[],"ok":"true"}`:               {fault.WrongType, "ok"},
		`{"name":"x","list":[],"ptr":null}`:                {fault.WrongType, "ptr"},
		`{"name":"x","list":[],"map":{"a":1}}`:             {fault.WrongType, "map.a"},
		`{"name":"x","list":[],"map":{"a b":null}}`:        {fault.WrongType, `map["a b"]`},
		`{"name":"x","list":[{"n":1},{"n":"1"}]}`:          {fault.WrongType, "list[1].n"},
		`{"name":"x","list":[{"n":1.5}]}`:                  {fault.WrongType, "list[0].n"},
		`{"name":"x","list":[{"n":1e2}]}`:                  {fault.WrongType, "list[0].n"},
		`{"name":"x","list":[{"n":9223372036854775808}]}`:  {fault.WrongType, "list[0].n"},
		`{"name":"x","list":[{"n":1,"n":1}]}`:              {fault.DuplicateKey, "list[0].n"},
		`{"name":"x","n\u0061me":"x","list":[]}`:           {fault.DuplicateKey, "name"},
		`{"name":"x","list":[],"any":{"a":{"b":1,"b":2}}}`: {fault.DuplicateKey, "any.a.b"},
		`{"name":"x","list":[],"Name":"x"}`:                {fault.KeyCase, "Name"},
		`{"NAME":"x","list":[]}`:                           {fault.KeyCase, "NAME"},
		`{"name":"x","list":[],"li\u017ft":[]}`:            {fault.KeyCase, "liſt"}, // the long s that encoding/json takes for s
		`{"name":"x","list":[],"x":0}`:                     {fault.UnknownField, "x"},
		`{"name":"x","list":[{"n":1,"b":"AAE"}]}`:          {fault.Base64, "list[0].b"},
		`{"name":"x","list":[{"n":1,"b":"AAF="}]}`:         {fault.Base64, "list[0].b"}, // bits beyond the last byte
		`{"name":"x","list":[{"n":1,"b":"AA\nE="}]}`:       {fault.Base64, "list[0].b"},
		`{"name":"x","list":[{"n":1,"b":"-_8="}]}`:         {fault.Base64, "list[0].b"},
		`{"name":"x","list":[{"n":1,"b":1}]}`:              {fault.WrongType, "list[0].b"},
		`{"name":"x","list":[{"n":1,"b":[]}]}`:             {fault.WrongType, "list[0].b"},
	} {
		var d doc
		err := Unmarshal([]byte(text), 1000, &d)
		var f *fault.Fault
		errors.As(err, &f)
		switch {
		case want.class == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want.class != "" && (f == nil || f.Class != want.class || f.Field != want.field):
			t.Errorf("%s: expected %s at %q, found %v", text, want.class, want.field, err)
		case want.class != fault.WrongType && want.class != fault.MissingField && want.class != fault.KeyCase && want.class != fault.UnknownField &&
			want.class != fault.Base64 && (Valid([]byte(text), 1000) == nil) != (err == nil):
			t.Errorf("%s: Valid disagrees", text)
		}
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	wide := func(n int) []byte { return []byte("[" + strings.Repeat("0,", n-2) + "0]") } // the list counts too
	long := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	for what, make := range map[string]struct {
		limit    int
		document func(int) []byte
	}{"depth": {limits.JSONDepth, nested}, "values": {limits.JSONValues, wide}, "bytes": {limits.BundleBytes, long}} {
		if err := Valid(make.document(make.limit), limits.BundleBytes); err != nil {
			t.Errorf("%s at the limit: %v", what, err)
		}
		if err := Valid(make.document(make.limit+1), limits.BundleBytes); !errors.Is(err, fault.Limit) {
			t.Errorf("%s above the limit: %v", what, err)
		}
	}
}

func TestDifference(t *testing.T) {
	base := `{"a":[1,{"b":"x"}],"c":true,"d":null}`
	for text, want := range map[string]string{
		base: "", ` {"d":null,"c":true, "a":[1,{"b":"\u0078"}]}`: "",
		`{"a":[1,{"b":"y"}],"c":true,"d":null}`:       "a[1].b: expected \"x\", found \"y\"",
		`{"a":[1.0,{"b":"x"}],"c":true,"d":null}`:     "a[0]: expected \"1\", found \"1.0\"",
		`{"a":[1],"c":true,"d":null}`:                 "a: expected 2 elements, found 1",
		`{"a":[1,{"b":"x"}],"c":true}`:                "d: expected, and absent",
		`{"a":[1,{"b":"x"}],"c":true,"d":null,"e":0}`: "e: not expected",
		`{"a":[1,{"b":"x"}],"c":"true","d":null}`:     "c: expected true or false, found a text",
		`[]`: "expected an object, found a list",
	} {
		where, same, err := Difference([]byte(base), []byte(text), 1000)
		if err != nil || same != (want == "") || where != want {
			t.Errorf("%s: %q, %v, %v", text, where, same, err)
		}
	}
	if _, _, err := Difference([]byte(base), []byte(`{"a":1,"a":1}`), 1000); !errors.Is(err, fault.DuplicateKey) {
		t.Error(err)
	}
	if _, _, err := Difference([]byte("x"), []byte(base), 1000); !errors.Is(err, fault.Syntax) {
		t.Error(err)
	}
}

// Whatever Marshal writes, Unmarshal reads as the same value, and base64 has one form.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doc{Name: rapid.String().Draw(t, "name"), List: []inner{{N: rapid.Int64().Draw(t, "n"), B: rapid.SliceOf(rapid.Byte()).Draw(t, "b")}},
			Map: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "map"), OK: rapid.Bool().Draw(t, "ok")}
		raw, err := Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again doc
		if err := Unmarshal(raw, limits.BundleBytes, &again); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		raw2, err := Marshal(again)
		if err != nil || !bytes.Equal(raw, raw2) {
			t.Fatalf("%s became %s", raw, raw2)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[A-Za-z0-9+/=]{0,12}`).Draw(t, "text")
		var b Base64
		if b.UnmarshalJSON(fmt.Appendf(nil, "%q", text)) == nil && base64.StdEncoding.EncodeToString(b) != text {
			t.Fatalf("%q has another form, %q", text, base64.StdEncoding.EncodeToString(b))
		}
	})
}

// No document makes the reader fail otherwise than with a fault, and what it takes, encoding/json takes too.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"name":"x","list":[{"n":1,"b":"AAE="}],"any":{"a":[null]}}`))
	f.Add([]byte(`{"name":"\ud83d\ude00","list":[{"n":1e400}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d, plain doc
		err := Unmarshal(raw, 1<<16, &d)
		var known *fault.Fault
		if err != nil && !errors.As(err, &known) {
			t.Fatalf("an error without a class: %v", err)
		}
		if err != nil {
			return
		}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatalf("encoding/json refuses what was taken: %v", err)
		}
		again, err := Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := Unmarshal(again, 1<<20, &plain); err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
	})
}
