package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/record"
)

func TestSideBySide(t *testing.T) {
	a, b := sample(), sample()
	b.ID, b.Status, b.Reason = "20261130T150000Z-aa", record.StatusIncomplete, "interrupted"
	b.Metrics.AU = record.Figure{Unit: "%", Class: record.HostOnly, Absent: "nothing was run"}
	runs := []Run{{"first", a}, {"second", b}}
	var text, md bytes.Buffer
	if err := errors.Join(WriteText(&text, SideBySide(runs)), WriteMarkdown(&md, SideBySide(runs))); err != nil {
		t.Fatal(err)
	}
	fields := func(page, label string) []string {
		for _, line := range strings.Split(page, "\n") {
			if f := strings.Fields(line); len(f) > 0 && f[0] == label {
				return f
			}
		}
		t.Fatalf("no line %q on\n%s", label, page)
		return nil
	}
	if f := fields(text.String(), "status"); !slices.Equal(f, []string{"status", "complete", "incomplete"}) {
		t.Errorf("%q", f)
	}
	au := strings.Fields(FigureText(a.Metrics.AU))
	if f := fields(text.String(), "au"); !slices.Equal(f, []string{"au", "H", au[0], au[1], "-"}) {
		t.Errorf("%q", f)
	}
	if !strings.Contains(md.String(), "| au | H | "+FigureText(a.Metrics.AU)+" | - |\n") {
		t.Errorf("%s", md.String())
	}
	if Met(a) != "yes" || Met(b) != "not judged" {
		t.Errorf("%s, %s", Met(a), Met(b))
	}
}

// Every figure of the metrics, read from the record's own JSON, is in the tables for programs, with all its digits.
func TestTablesHaveAllFigures(t *testing.T) {
	r := sample()
	var b bytes.Buffer
	if err := WriteFiguresCSV(&b, []Run{{"r", r}}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, row := range rows[1:] {
		if found[row[4]] != nil {
			t.Errorf("%s is there twice", row[4])
		}
		found[row[4]] = row
	}
	raw, err := json.Marshal(r.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if unit, ok := v["unit"]; ok {
				if strings.Contains(at, ".storage.") || strings.Contains(at, ".waits.") {
					return
				}
				n++
				row := found[at]
				want := ""
				if f, ok := v["value"].(float64); ok {
					want = strconv.FormatFloat(f, 'g', -1, 64)
				}
				if row == nil || row[5] != want || row[6] != unit || row[7] != v["class"] || (want == "") != (row[8] != "") {
					t.Errorf("%s is %v in the record and %q in the table", at, v, row)
				}
				return
			}
			for k, inner := range v {
				if e, ok := v["epoch"].(float64); ok {
					walk(at[:strings.LastIndex(at, ".")]+"."+strconv.Itoa(int(e))+"."+k, inner)
				} else {
					walk(strings.TrimPrefix(at+"."+k, "."), inner)
				}
			}
		case []any:
			for i, inner := range v {
				walk(at+"."+strconv.Itoa(i), inner)
			}
		}
	}
	walk("", tree)
	if n < 10 {
		t.Fatalf("%d figures", n)
	}
	d := NewDocument([]Run{{"r", r}})
	if len(d.Runs[0].Figures) != len(found) {
		t.Errorf("%d figures in JSON, %d in CSV", len(d.Runs[0].Figures), len(found))
	}
}

func TestTablesAreSafe(t *testing.T) {
	r := sample()
	poison(reflect.ValueOf(r).Elem())
	runs := []Run{{attack, r}, {"b", sample()}}
	for name, write := range map[string]func(io.Writer) error{
		"text":     func(w io.Writer) error { return WriteText(w, SideBySide(runs)) },
		"markdown": func(w io.Writer) error { return WriteMarkdown(w, SideBySide(runs)) },
		"csv":      func(w io.Writer) error { return WriteFiguresCSV(w, runs) },
		"badge":    func(w io.Writer) error { return Badge(w, r) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		safe(t, b.Bytes())
		if err := write(failing{}); err == nil {
			t.Errorf("%s: a failed write went by", name)
		}
	}
}

// Whatever a cell holds, Markdown has as many columns as the head, no HTML, no link, and no line of its own.
func TestMarkdownCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("|\\`*_<>&[]()!~#\n@:/.w")))).Draw(t, "cell")
		var b bytes.Buffer
		if err := WriteMarkdown(&b, []Grid{{Head: []string{"a", "b"}, Rows: [][]string{{cell, "x"}}, Left: 1}}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != 3 {
			t.Fatalf("%q", lines)
		}
		bars, escape := 0, false
		for _, r := range lines[2] {
			switch {
			case escape:
				escape = false
			case r == '\\':
				escape = true
			case r == '|':
				bars++
			case strings.ContainsRune("<>@[]*`!", r):
				t.Fatalf("%q is markup in %q", r, lines[2])
			}
		}
		if bars != 3 || strings.Contains(lines[2], "://") || strings.Contains(strings.ToLower(lines[2]), "www.") {
			t.Fatalf("%q", lines[2])
		}
	})
}

func TestCSVCells(t *testing.T) {
	for in, want := range map[string]string{"=1+1": "'=1+1", "@x": "'@x", "-1.5e-07": "-1.5e-07", "+cmd": "'+cmd", "-": "'-", "a,b\"": "a,b\"", "": "", "x\ny": `x\ny`} {
		var b bytes.Buffer
		if err := WriteCSV(&b, []string{"h", "i"}, [][]string{{in, "1"}}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil || rows[1][0] != want {
			t.Errorf("%q became %q, %v", in, rows, err)
		}
	}
}

// textOf parses a badge as XML to its end and returns the texts in it.
func textOf(t testing.TB, b []byte) []string {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(b))
	var texts []string
	var in []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			in = append(in, tok.Name.Local)
			if !slices.Contains([]string{"svg", "title", "rect", "path", "g", "text"}, tok.Name.Local) {
				t.Fatalf("element %s in %s", tok.Name.Local, b)
			}
			for _, a := range tok.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") {
					t.Fatalf("attribute %s in %s", a.Name.Local, b)
				}
			}
		case xml.EndElement:
			in = in[:len(in)-1]
		case xml.CharData:
			if last := in; len(last) > 0 && last[len(last)-1] == "text" {
				texts = append(texts, string(tok))
			}
		}
	}
}

func TestBadge(t *testing.T) {
	badgeOf := func(r *record.Record) (string, []string) {
		var b bytes.Buffer
		if err := Badge(&b, r); err != nil {
			t.Fatal(err)
		}
		return b.String(), textOf(t, b.Bytes())
	}
	r := sample()
	svg, texts := badgeOf(r)
	if want := []string{r.Workload.Name + " AU", FigureText(r.Metrics.AU)}; !slices.Equal(texts, want) || !strings.Contains(svg, badgeGreen) {
		t.Errorf("%q, expected %q, in %s", texts, want, svg)
	}
	r.Metrics.Met = ptr(false)
	if svg, _ := badgeOf(r); !strings.Contains(svg, badgeRed) {
		t.Errorf("missed: %s", svg)
	}
	r.Metrics.AU = record.Figure{Unit: "%", Absent: "no compute"}
	if svg, texts := badgeOf(r); !strings.HasSuffix(texts[1], "B/s") || !strings.Contains(svg, badgeGrey) {
		t.Errorf("without AU: %s", svg)
	}
	r.Status = record.StatusIncomplete
	if svg, texts := badgeOf(r); texts[1] != "incomplete" || !strings.Contains(svg, badgeGrey) {
		t.Errorf("incomplete: %s", svg)
	}
	if _, texts := badgeOf(checkpointSample()); !strings.Contains(texts[0], "checkpoint write") {
		t.Errorf("%q", texts)
	}
	if _, texts := badgeOf(new(record.Record)); texts[0] != "benchpin" {
		t.Errorf("%q", texts)
	}
}

func TestHostileBadge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := sample()
		r.Workload.Name = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			`"><script>alert(1)</script>`, `' onload='alert(1)`, "]]>", "<![CDATA[", "&amp;&#0;&nope;", "</text></svg><svg onload=alert(1)>", attack, "\xff\xfe\x00",
		}), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		r.Metrics.AU.Unit = r.Workload.Name
		var b bytes.Buffer
		if err := Badge(&b, r); err != nil {
			t.Fatal(err)
		}
		dec := xml.NewDecoder(&b)
		var elements int
		for {
			tok, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := tok.(xml.StartElement); ok {
				elements++
			}
		}
		if elements != 7 {
			t.Fatalf("%d elements", elements)
		}
	})
}
