package report

import (
	"bytes"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// TestIsBadge: every badge is known again, whatever its texts are, and nothing that is only much like one.
func TestIsBadge(t *testing.T) {
	value := 99.5
	for _, name := range []string{"", "small", `<a href="x">&\"'` + "\n\x1b[2J", "\u202eabc", "]]>"} {
		for _, status := range []string{record.StatusComplete, record.StatusIncomplete} {
			r := &record.Record{Status: status}
			r.Workload.Name, r.Metrics.AU.Value = name, &value
			var b bytes.Buffer
			if err := Badge(&b, r); err != nil {
				t.Fatal(err)
			}
			if !IsBadge(b.Bytes()) {
				t.Errorf("not known again: %s", b.Bytes())
			}
			for what, other := range map[string][]byte{
				"a line more":     append(bytes.Clone(b.Bytes()), "<!-- mine -->\n"...),
				"a line before":   append([]byte("<!-- mine -->\n"), b.Bytes()...),
				"cut off":         b.Bytes()[:b.Len()-1],
				"another height":  bytes.Replace(b.Bytes(), []byte(`height="20"`), []byte(`height="21"`), 1),
				"a title of more": bytes.Replace(b.Bytes(), []byte("</title>"), []byte("<b/></title>"), 1),
				"nothing":         nil,
			} {
				if IsBadge(other) {
					t.Errorf("%s: taken for a badge", what)
				}
			}
		}
	}
}
