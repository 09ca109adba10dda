package html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	xhtml "golang.org/x/net/html"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// hostile are texts that would be markup, script or style wherever a page forgot to escape, or would turn what is around them.
func hostile() []string {
	const do = "document.title=`owned`;document.documentElement.appendChild(document.createElement(`owned`))"
	return []string{
		"<script>" + do + "</script>", `"><img src=x onerror="` + do + `">`, `'><svg onload='` + do + `'>`, "</title></desc></text></svg><script>" + do + "</script>",
		"</style><owned>", "</table></section></main><owned>", `" onmouseover="` + do + `" autofocus onfocus="` + do + `" x="`, "javascript:" + do, "<!-- ", "--><owned>", "<![CDATA[ ", "]]><owned>",
		"{{.}} {{define `x`}}<owned>{{end}}", "&lt;owned&gt; &#60;owned&#62; &quot;", "<a href=javascript:owned>", "<base href=//owned>", "<meta http-equiv=refresh content=0>",
		"}body{display:none}/*", "expression(owned)", "\x00\x1b[31m\u202e\u2066\ufeff<owned>", "<plaintext>", "<math><mi xlink:href=x>", "`${owned}`", "\r\n\r\n<owned>", "\u2028<owned>",
		strings.Repeat("<owned>", 500), "\xff\xfe<owned>",
	}
}

// fill puts a text into every text that v reaches, keys of maps included.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			fill(v.Elem(), s)
		}
	case reflect.String:
		v.SetString(s)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), s)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			return
		}
		for i := range v.Len() {
			fill(v.Index(i), s)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]string]() && v.Len() > 0 {
			v.Set(reflect.ValueOf(map[string]string{s: s}))
		} else if v.Type() == reflect.TypeFor[map[string]record.Figure]() {
			for _, k := range v.MapKeys() {
				f := v.MapIndex(k).Interface().(record.Figure)
				fill(reflect.ValueOf(&f), s)
				v.SetMapIndex(k, reflect.ValueOf(f))
			}
		}
	}
}

// laden is a run whose every text is s.
func laden(t testing.TB, s string) Run {
	r := run(t)
	fill(reflect.ValueOf(&r.Name), s)
	fill(reflect.ValueOf(r.Record), s)
	fill(reflect.ValueOf(&r.Digest), s)
	fill(reflect.ValueOf(&r.Archive), s)
	fill(reflect.ValueOf(r.Verification), s)
	return r
}

// skeleton is a page without its texts: elements, and names of attributes; and those values that no record may touch.
func skeleton(t testing.TB, page string) (shape, texts string) {
	t.Helper()
	root, err := xhtml.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b, all strings.Builder
	var walk func(n *xhtml.Node, depth int)
	walk = func(n *xhtml.Node, depth int) {
		switch n.Type {
		case xhtml.TextNode:
			all.WriteString(n.Data + "\n")
		case xhtml.ElementNode, xhtml.CommentNode, xhtml.DoctypeNode:
			fmt.Fprintf(&b, "%*s%d %s", depth, "", n.Type, n.Data)
			for _, a := range n.Attr {
				switch a.Key {
				case "aria-label", "content":
					all.WriteString(a.Val + "\n")
					fmt.Fprintf(&b, " %s", a.Key)
				default:
					fmt.Fprintf(&b, " %s=%q", a.Key, a.Val)
				}
			}
			b.WriteString("\n")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(root, 0)
	return b.String(), all.String()
}

// TestHostileRecordsAreText: whatever a record says, in every field at once, the page has the same elements and attributes as with a harmless
// word there, and shows what was said.
func TestHostileRecordsAreText(t *testing.T) {
	for _, many := range []bool{false, true} {
		pages := func(s string) string {
			runs := []Run{laden(t, s)}
			if many {
				runs = append(runs, laden(t, s))
			}
			var b bytes.Buffer
			if err := Write(&b, runs, Options{Writer: s}); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		want, _ := skeleton(t, pages("harmless"))
		for _, s := range hostile() {
			got, texts := skeleton(t, pages(s))
			if got != want {
				t.Errorf("%.60q changed the page:\n%s", s, firstDifference(want, got))
			}
			if n := strings.Count(texts, report.Clean(s)); n < 50 {
				t.Errorf("%.60q is shown %d times, expected everywhere", s, n)
			}
		}
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: expected %s, found %s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(b), len(a))
}
