package manifest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// hash is the digest of a text, as documents hold it.
func hash(s string) digest.Digest { return FormatDigest(blake3.Sum256([]byte(s))) }

func parent(name string) Parent {
	return Parent{Name: name, Manifest: hash(name), Root: hash("root of " + name), Count: int64(len(name)), Bytes: 7}
}

func TestNewLineage(t *testing.T) {
	l, err := NewLineage("x", parent("b"), parent("a"), parent("b"))
	if err != nil || len(l.From) != 2 || l.From[0].Manifest > l.From[1].Manifest {
		t.Fatalf("%+v, %v", l, err)
	}
	many := make([]Parent, MaxParents+1)
	for i := range many {
		many[i] = parent(fmt.Sprint(i))
	}
	if _, err := NewLineage("x", many[:MaxParents]...); err != nil {
		t.Errorf("as many as are allowed: %v", err)
	}
	bad := parent("a")
	bad.Root = "sha256:" + bad.Root[len("blake3:"):]
	for _, c := range []struct {
		class Class
		by    string
		from  []Parent
	}{
		{ErrLimit, "x", many}, {ErrField, "x", nil}, {ErrField, "", many[:1]}, {ErrField, "a\tb", many[:1]}, {ErrField, "a\xff", many[:1]},
		{ErrLimit, strings.Repeat("x", MaxLineageBy+1), many[:1]}, {ErrField, "x", []Parent{bad}}, {ErrField, "x", []Parent{parent("a/b")}},
	} {
		if _, err := NewLineage(c.by, c.from...); !errors.Is(err, c.class) {
			t.Errorf("by %.20q from %d: %v, expected class %s", c.by, len(c.from), err, string(c.class))
		}
	}
	same, err := NewLineage("x", parent("a"), parent("b"))
	if err != nil || !l.Equal(same) || l.Equal(nil) || (*Lineage)(nil).Equal(l) || !(*Lineage)(nil).Equal(nil) {
		t.Errorf("%+v and %+v, %v", l, same, err)
	}
	same.From[0].Bytes++
	if l.Equal(same) {
		t.Error("another number of bytes is the same")
	}
}

func TestLineageRoundTrip(t *testing.T) {
	text := rapid.StringMatching(`[a-c"\\<>& é日\x{2028}]{1,20}`)
	name := rapid.StringMatching(`[a-c"\\<>& é日]{1,9}\.json`)
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Parent {
			p := parent(name.Draw(rt, "name"))
			p.Bytes, p.Count = rapid.Int64Range(0, 1<<63-1).Draw(rt, "bytes"), rapid.Int64Range(0, MaxNumber).Draw(rt, "count")
			return p
		}), 1, 5).Draw(rt, "from")
		l, err := NewLineage(text.Draw(rt, "by"), from...)
		if err != nil {
			rt.Fatal(err)
		}
		excludes := rapid.SliceOfN(rapid.StringMatching(`/?[a"*?é]{1,3}(/\*\*)?/?`), 0, 4).Draw(rt, "exclude")
		x, err := ParseExclude(excludes)
		if err != nil || x.Match("zz/zz") {
			return
		}
		m := mustOpen(t, write(t, 10, Meta{Recipe: someMeta.Recipe, Lineage: l, Exclude: excludes}, entry("zz/zz", 1)))
		h := m.Header()
		if !h.Lineage.Equal(l) || !slices.Equal(h.Exclude, x.Patterns()) || !bytes.Equal(h.Recipe, someMeta.Recipe) {
			rt.Fatalf("read %+v and %q, written %+v and %q", h.Lineage, h.Exclude, l, x.Patterns())
		}
		// Neither is part of the root: the data set is the same.
		if m.Root() != mustOpen(t, write(t, 10, Meta{}, entry("zz/zz", 1))).Root() {
			rt.Fatal("another root")
		}
	})
}

// TestHeaderUnchanged: what has neither patterns nor lineage is written as it always was.
func TestHeaderUnchanged(t *testing.T) {
	p := write(t, 3, someMeta, someEntries(7)...)
	const want = "a7cb5c16"
	if got := blake3Sum(p.header); hex.EncodeToString(got[:4]) != want {
		t.Errorf("digest %x of\n%s", got[:4], p.header)
	}
	if bytes.Contains(p.header, []byte("lineage")) || bytes.Contains(p.header, []byte("exclude")) {
		t.Errorf("%s", p.header)
	}
}

// known makes a manifest of a name that was derived from others.
func known(t *testing.T, path string, by string, from ...Known) Known {
	t.Helper()
	var l *Lineage
	if len(from) > 0 {
		var ps []Parent
		for _, k := range from {
			ps = append(ps, Parent{filepath.Base(k.Path), k.Digest, k.Header.Root, k.Header.Count, k.Header.Bytes})
		}
		var err error
		if l, err = NewLineage(by, ps...); err != nil {
			t.Fatal(err)
		}
	}
	m := mustOpen(t, write(t, 3, Meta{Lineage: l}, entry(path, int64(len(path)))))
	return Known{path, m.Digest(), m.Header()}
}

// states tells an ancestry in one line.
func states(a Ancestry) string {
	var b []string
	for _, s := range a.Sets {
		b = append(b, s.Name+" "+string(s.State))
	}
	return strings.Join(b, ", ")
}

func TestTrace(t *testing.T) {
	bronze := known(t, "x/bronze.json", "")
	labels := known(t, "x/labels.json", "")
	silver := known(t, "y/silver.json", "clean", bronze)
	gold := known(t, "z/gold.json", "join", silver, labels, bronze) // bronze by two ways
	all := []Known{gold, silver, labels, bronze}

	a := Trace(gold, all)
	if a.Err() != nil || a.Missing() != 0 || len(a.Sets) != 4 || a.Sets[3].Name != "gold.json" || a.Sets[3].Path != "z/gold.json" {
		t.Errorf("%s, %v", states(a), a.Err())
	}
	if indexOf(a, "bronze.json") > indexOf(a, "silver.json") || indexOf(a, "silver.json") > indexOf(a, "gold.json") || indexOf(a, "labels.json") < 0 {
		t.Errorf("order: %s", states(a))
	}

	a = Trace(gold, []Known{silver})
	if a.Err() != nil || a.Missing() != 2 || a.Sets[indexOf(a, "bronze.json")].State != StateMissing || a.Sets[indexOf(a, "bronze.json")].Root != bronze.Header.Root {
		t.Errorf("%s, %v", states(a), a.Err())
	}
	if a = Trace(gold, nil); a.Err() != nil || a.Missing() != 3 || len(a.Sets) != 4 {
		t.Errorf("%s, %v", states(a), a.Err())
	}

	// A file that was renamed is found by its digest.
	moved := bronze
	moved.Path = "other.json"
	if a = Trace(silver, []Known{moved}); a.Err() != nil || states(a) != "other.json found, silver.json found" {
		t.Errorf("%s, %v", states(a), a.Err())
	}
}

func indexOf(a Ancestry, name string) int {
	return slices.IndexFunc(a.Sets, func(s Ancestor) bool { return s.Name == name })
}

func TestTraceForged(t *testing.T) {
	bronze := known(t, "x/bronze.json", "")
	silver := known(t, "y/silver.json", "clean", bronze)
	refused := func(what, about string, a Ancestry) {
		t.Helper()
		if err := a.Err(); !errors.Is(err, ErrLineage) || !strings.Contains(err.Error(), about) {
			t.Errorf("%s: %s, %v, expected an error about %q", what, states(a), err, about)
		}
	}
	// Another manifest under the parent's name.
	other := known(t, "y/bronze.json", "")
	other.Header.Count++ // and so another digest
	other.Digest = hash("another")
	a := Trace(silver, []Known{other})
	refused("another file of that name", "y/bronze.json", a)
	if a.Sets[0].State != StateDiffers {
		t.Errorf("%s", states(a))
	}
	if a := Trace(silver, []Known{other, bronze}); a.Err() != nil {
		t.Errorf("the right one is there too: %v", a.Err())
	}
	// The name of a parent that is missing, used by another data set of the same chain, is no forgery.
	generic := known(t, "a/manifest.json", "")
	derived := known(t, "b/manifest.json", "clean", generic)
	if a := Trace(derived, []Known{derived}); a.Err() != nil || a.Missing() != 1 {
		t.Errorf("%s, %v", states(a), a.Err())
	}
	// A child that tells other figures of its parent than the parent.
	for i, change := range []func(p *Parent){
		func(p *Parent) { p.Root = hash("x") }, func(p *Parent) { p.Count++ }, func(p *Parent) { p.Bytes++ },
	} {
		lie := *silver.Header
		l := Lineage{By: "clean", From: slices.Clone(silver.Header.Lineage.From)}
		change(&l.From[0])
		lie.Lineage = &l
		refused(fmt.Sprint("figure ", i), "silver.json: it says", Trace(Known{silver.Path, hash("lie"), &lie}, []Known{bronze}))
	}
	// Two children that tell other figures of a parent that is missing.
	lie := *silver.Header
	lie.Lineage = &Lineage{By: "x", From: []Parent{{"bronze.json", bronze.Digest, hash("x"), 1, 1}, {"silver.json", silver.Digest, silver.Header.Root, 1, 13}}}
	refused("two children", "it says", Trace(Known{"gold.json", hash("gold"), &lie}, []Known{silver}))
	// A circle, which digests make impossible, so that they are made up here.
	round := func(name, of string) Known {
		return Known{name, hash(name), &Header{Root: hash("root of " + name), Count: int64(len(name)), Bytes: 7, Lineage: &Lineage{By: "x", From: []Parent{parent(of)}}}}
	}
	refused("a circle", "derived from it", Trace(round("a", "b"), []Known{round("b", "c"), round("c", "a")}))
	refused("its own parent", "derived from it", Trace(round("a", "a"), nil))
}

func TestFindHeaders(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "m.json"), someEntries(3)...)
	save(t, filepath.Join(dir, "below", "n.json"), someEntries(4)...)
	save(t, filepath.Join(dir, "damaged.json"), someEntries(5)...)
	raw, err := os.ReadFile(filepath.Join(dir, "damaged.json"))
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-30] ^= 1
	for name, b := range map[string][]byte{"damaged.json": raw, "other.json": []byte(`{"a":1}`), "m.txt": raw, "empty.json": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("m.json", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	var problems []error
	found, err := FindHeaders(dir, func(err error) { problems = append(problems, err) })
	if err != nil || len(found) != 1 || filepath.Base(found[0].Path) != "m.json" || found[0].Header.Count != 3 {
		t.Errorf("%+v, %v", found, err)
	}
	if len(problems) != 1 || !errors.Is(problems[0], ErrHeader) || !strings.Contains(problems[0].Error(), "damaged.json") {
		t.Errorf("problems %v", problems)
	}
	p, err := ParentOf(filepath.Join(dir, "m.json"))
	if err != nil || p != (Parent{"m.json", found[0].Digest, found[0].Header.Root, 3, found[0].Header.Bytes}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := FindHeaders(filepath.Join(dir, "nowhere"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
