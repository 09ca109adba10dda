package manifest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

func TestExclude(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"*.tmp", []string{"a.tmp", "x/y/.tmp", "x/b.tmp", "d.tmp/inside"}, []string{"a.tmp2", "tmp", "x/a.tm"}},
		{"latest.csv", []string{"latest.csv", "a/latest.csv"}, []string{"latest-csv", "latest.csv.gz"}},
		{"/latest.csv", []string{"latest.csv"}, []string{"a/latest.csv"}},
		{"/*.csv", []string{"a.csv"}, []string{"a/b.csv"}},
		{".cache/", []string{".cache/a", "x/.cache/y/z"}, []string{".cache", "x/.cache", "my.cache/a"}},
		{".cache", []string{".cache", ".cache/a", "x/.cache", "x/.cache/y"}, []string{".cached"}},
		{"a/b", []string{"a/b", "a/b/c"}, []string{"x/a/b", "a", "a/bc", "a-b"}},
		{"a/b/", []string{"a/b/c"}, []string{"a/b"}},
		{"a/*.npz", []string{"a/1.npz"}, []string{"a/b/1.npz", "1.npz"}},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a", "ab/c"}},
		{"a/**/", []string{"a/b/c"}, []string{"a/b", "a"}},
		{"**/x", []string{"x", "a/x", "a/b/x", "a/x/y"}, []string{"ax", "a/xy"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b", "a/x/b/c"}, []string{"a", "b", "a/xb"}},
		{"**/a/**/b/*.c", []string{"a/b/1.c", "q/a/r/s/b/t.c", "a/b/b/1.c"}, []string{"a/b/c/d", "b/a/1.c"}},
		{"img_??.npz", []string{"img_01.npz", "img_éü.npz", "img_日本.npz"}, []string{"img_1.npz", "img_001.npz"}},
		{"a?b", []string{"axb"}, []string{"a/b", "ab"}},
		{"*", []string{"a", "b/c"}, nil},
		{"a*b*c", []string{"abc", "axxbyybzzc", "abcbc"}, []string{"acb", "abcd"}},
		{"$(x){y,z}#~", []string{"$(x){y,z}#~"}, []string{"$(x)y#~"}},
		{"é", []string{"é"}, []string{"e\u0301"}},
	} {
		x, err := ParseExclude([]string{c.pattern})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, p := range c.yes {
			if !x.Match(p) {
				t.Errorf("%q does not match %q", c.pattern, p)
			}
		}
		for _, p := range c.no {
			if x.Match(p) {
				t.Errorf("%q matches %q", c.pattern, p)
			}
		}
	}
}

func TestExcludeRefuses(t *testing.T) {
	long := make([]string, MaxExcludes+1)
	for i := range long {
		long[i] = strings.Repeat("a", i+1)
	}
	for _, c := range []struct {
		class    Class
		patterns []string
	}{
		{ErrField, []string{""}}, {ErrField, []string{"ok", "/"}}, {ErrField, []string{"a//b"}}, {ErrField, []string{"./a"}}, {ErrField, []string{"a/../b"}},
		{ErrField, []string{"a**"}}, {ErrField, []string{"**"}}, {ErrField, []string{"/**"}}, {ErrField, []string{"**/"}}, {ErrField, []string{"a/**/**/b"}},
		{ErrField, []string{"[ab]"}}, {ErrField, []string{`a\b`}}, {ErrField, []string{"!a"}}, {ErrField, []string{"a\nb"}}, {ErrField, []string{"a\xff"}},
		{ErrField, []string{"a\u0085"}}, {ErrField, []string{strings.Repeat("x", store.MaxName+1)}}, {ErrField, []string{strings.Repeat("a/", 300)}},
		{ErrLimit, long},
	} {
		if _, err := ParseExclude(c.patterns); !errors.Is(err, c.class) || (c.class == ErrField && !strings.Contains(err.Error(), "pattern ")) {
			t.Errorf("%.100q: %v, expected class %s", c.patterns, err, string(c.class))
		}
	}
	big := make([]string, 20)
	for i := range big {
		big[i] = strings.Repeat("x", 4000) + string(rune('a'+i))
	}
	if _, err := ParseExclude(big); !errors.Is(err, ErrLimit) {
		t.Errorf("%v, expected class limit", err)
	}
	if x, err := ParseExclude(nil); x != nil || err != nil || x.Match("a") || x.Patterns() != nil {
		t.Errorf("nothing excluded: %v, %v", x, err)
	}
	if x, err := ParseExclude([]string{"b", "a", "b"}); err != nil || !slices.Equal(x.Patterns(), []string{"a", "b"}) {
		t.Errorf("%q, %v", x.Patterns(), err)
	}
}

var (
	drawnPatterns = rapid.StringMatching(`/?((\*\*|[ab*?]{1,4})/){0,3}(\*\*|[ab*?]{1,4})/?`)
	drawnPaths    = rapid.StringMatching(`([ab]{1,3}/){0,4}[ab]{1,3}`)
)

// asRegexp says in another language what a pattern means.
func asRegexp(p string) *regexp.Regexp {
	rest, folder := strings.CutSuffix(p, "/")
	rest, rooted := strings.CutPrefix(rest, "/")
	b := "^"
	if !rooted && !strings.Contains(rest, "/") {
		b += "(?:.*/)?"
	}
	elements := strings.Split(rest, "/")
	for i, e := range elements {
		last := i == len(elements)-1
		switch {
		case e == "**" && last:
			b += "(?:[^/]+/)*[^/]+"
		case e == "**":
			b += "(?:[^/]+/)*"
		default:
			b += strings.NewReplacer(`\*`, "[^/]*", `\?`, "[^/]").Replace(regexp.QuoteMeta(e))
			if !last {
				b += "/"
			}
		}
	}
	if folder {
		return regexp.MustCompile(b + "/.+$")
	}
	return regexp.MustCompile(b + "(?:/.+)?$")
}

func TestExcludeProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, path := drawnPatterns.Draw(rt, "pattern"), drawnPaths.Draw(rt, "path")
		x, err := ParseExclude([]string{p})
		if err != nil {
			return
		}
		if got, want := x.Match(path), asRegexp(p).MatchString(path); got != want {
			rt.Fatalf("%q on %q: %v, expected %v", p, path, got, want)
		}
		// What lies in an excluded folder is excluded, so that it need not be looked into.
		if i := strings.LastIndexByte(path, '/'); i > 0 && x.MatchFolder(path[:i]) && !x.Match(path) {
			rt.Fatalf("%q excludes folder %q and not %q", p, path[:i], path)
		}
	})
}

// TestExcludeAsGit asks git about the same patterns and paths: whoever knows .gitignore knows this language.
func TestExcludeAsGit(t *testing.T) {
	needPeer(t, "git")
	dir := t.TempDir()
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("HOME", dir)
	git := func(in string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("", "init", "-q")
	paths := rapid.SliceOfNDistinct(drawnPaths, 150, 150, rapid.ID[string]).Example(1)
	compared := 0
	for seed := range 60 {
		p := drawnPatterns.Example(seed)
		x, err := ParseExclude([]string{p})
		if err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(p+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		ignored := strings.Split(git(strings.Join(paths, "\n")+"\n", "check-ignore", "--no-index", "--stdin"), "\n")
		for _, path := range paths {
			if got, want := x.Match(path), slices.Contains(ignored, path); got != want {
				t.Errorf("%q on %q: %v, git says %v", p, path, got, want)
			}
			compared++
		}
	}
	if compared < 1000 {
		t.Errorf("only %d comparisons", compared)
	}
}

func FuzzExclude(f *testing.F) {
	for _, p := range []string{"*.tmp", "a/**/b/", "/x?*", "**/é*"} {
		f.Add(p, "a/b/c.tmp")
	}
	f.Fuzz(func(t *testing.T, p, path string) {
		x, err := ParseExclude([]string{p})
		if err != nil || store.CheckName(path) != nil {
			return
		}
		if got, want := x.Match(path), asRegexp(p).MatchString(path); got != want {
			t.Fatalf("%q on %q: %v, expected %v", p, path, got, want)
		}
	})
}

func TestBuildAndVerifyExclude(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"a", "a.tmp", "d/b", "d/.cache/x", "d/" + ".benchpin-tmp-left"} {
		put(n)
	}
	// What lies in an excluded folder is not looked at, so that a symbolic link is no fault there.
	if err := os.Symlink("nowhere", filepath.Join(dir, "d/.cache/link")); err != nil {
		t.Fatal(err)
	}
	st, err := store.NewFolder(dir, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	patterns := []string{".cache/", "*.tmp", ".benchpin-*"}
	x, err := ParseExclude(patterns)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := NewWriter(&out, Meta{Exclude: patterns})
	if err := Build(context.Background(), st, w, BuildOptions{Exclude: x}); err != nil {
		t.Fatal(err)
	}
	h, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m := mustOpen(t, pair{raw, out.Bytes()})
	if es, err := m.list(); err != nil || len(es) != 2 || es[0].Path != "a" || es[1].Path != "d/b" {
		t.Fatalf("%v, %v", es, err)
	}
	if got := m.Header().Exclude; !slices.Equal(got, []string{"*.tmp", ".benchpin-*", ".cache/"}) {
		t.Errorf("header excludes %q", got)
	}
	put("d/later.tmp")
	for _, src := range []Source{st, onlySource{st}} {
		if _, isFolder := src.(excepter); !isFolder {
			if err := os.Remove(filepath.Join(dir, "d/.cache/link")); err != nil { // such a store cannot leave it out
				t.Fatal(err)
			}
		}
		if r, err := Verify(context.Background(), m, src, VerifyOptions{}); err != nil || r.Files != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	put("d/extra")
	var mm *MismatchError
	if r, err := Verify(context.Background(), m, st, VerifyOptions{}); !errors.As(err, &mm) || mm.Path != "d/extra" || len(r.Mismatches) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// onlySource is a store that can list, and not leave anything out.
type onlySource struct{ Source }

func TestWriterRefusesExcluded(t *testing.T) {
	w := NewWriter(&bytes.Buffer{}, Meta{Exclude: []string{"b"}})
	if err := w.Add(entry("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(entry("b", 1)); !errors.Is(err, ErrExclude) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("%v, expected class exclude", err)
	}
	w = NewWriter(&bytes.Buffer{}, Meta{Exclude: []string{"["}})
	if err := w.Add(entry("a", 1)); !errors.Is(err, ErrField) {
		t.Errorf("%v, expected class field", err)
	}
}

func TestDiffExclude(t *testing.T) {
	a := mustOpen(t, write(t, 2, Meta{Exclude: []string{"x*"}}, entry("a", 1), entry("b", 2)))
	b := mustOpen(t, write(t, 2, Meta{Exclude: []string{"y*"}}, entry("a", 1), entry("b", 2), entry("x1", 3), entry("x2", 4)))
	c := mustOpen(t, write(t, 2, Meta{}, entry("a", 1), entry("b", 2), entry("x1", 3), entry("z", 4)))
	for _, d := range []struct {
		a, b                     *Manifest
		excluded, removed, added int64
	}{{a, b, 2, 0, 0}, {b, a, 2, 0, 0}, {a, c, 1, 0, 1}, {c, a, 1, 1, 0}, {b, c, 0, 1, 1}} {
		s, err := Diff(context.Background(), d.a, d.b, func(Change) error { return nil })
		if err != nil || s.Excluded.Files != d.excluded || s.Removed.Files != d.removed || s.Added.Files != d.added || s.Same.Files < 2 {
			t.Errorf("%+v, %v, expected %d excluded, %d removed, %d added", s, err, d.excluded, d.removed, d.added)
		}
	}
}

// TestDiffManyRenames: beyond the limit nothing is looked for, and that is said; memory stays bounded.
func TestDiffManyRenames(t *testing.T) {
	for _, n := range []int{MaxRenames / 2, MaxRenames/2 + 1} {
		es, moved := someEntries(n), make([]Entry, n)
		for i, e := range es {
			moved[i] = Entry{"valid" + e.Path, e.Size, e.Digest}
		}
		s, err := Diff(context.Background(), mustOpen(t, write(t, MaxFrameEntries, Meta{}, es...)),
			mustOpen(t, write(t, MaxFrameEntries, Meta{}, moved...)), func(Change) error { return nil })
		if searched := 2*n <= MaxRenames; err != nil || s.RenamesSearched != searched || (s.Renamed.Files == int64(n)) != searched ||
			s.Equal() || s.Removed.Files != s.Added.Files {
			t.Errorf("%d moved files: %+v, %v", n, s, err)
		}
	}
}

// TestVerifyMetadataOnly: no file is opened; what size and presence tell is found, and other bytes are not.
func TestVerifyMetadataOnly(t *testing.T) {
	src := sample()
	m := mustOpen(t, pin(t, src, 2))
	r, err := Verify(context.Background(), m, closed{src}, VerifyOptions{MetadataOnly: true})
	if err != nil || r.Files != 0 || r.Bytes != 0 || r.Skipped != m.Header().Count {
		t.Errorf("%+v, %v", r, err)
	}
	src.Put("z/1", storetest.Pattern(77, len(storetest.Read(t, src, "z/1")))) // other bytes
	if _, err := Verify(context.Background(), m, closed{src}, VerifyOptions{MetadataOnly: true}); err != nil {
		t.Error(err)
	}
	src.Put("z/1", nil)
	src.Put("z/4", storetest.Read(t, src, "z/3"))
	src.Remove("z/3")
	r, err = Verify(context.Background(), m, closed{src}, VerifyOptions{MetadataOnly: true})
	var kinds []Kind
	for _, m := range r.Mismatches {
		kinds = append(kinds, m.Kind)
	}
	if err == nil || !slices.Equal(kinds, []Kind{Changed, Missing, Extra}) {
		t.Errorf("%v, %v", kinds, err)
	}
}

// closed is a store whose files cannot be opened.
type closed struct{ Source }

func (closed) Open(string) (store.File, error) { return nil, errors.New("it was opened") }
