package attest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// Entries that are cut into layers verify as those in one do, read as one file, and are refused when a part is gone, twice, or out of place.
func TestEntriesInParts(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	r := newRun(t, nil)
	whole, err := os.ReadFile(manifest.EntriesPath(r.input.Manifest))
	must(t, err)
	for _, part := range []int64{int64(len(whole)), int64(len(whole)) - 1, 100, 33, 1} {
		if part == 1 && len(whole) > 800 {
			t.Fatalf("the test's entries have %d bytes", len(whole))
		}
		r.input.EntriesPart = part
		dir := newArchive(t, r, k)
		if v := verify(t, dir, attest.Policy{}, k.Public()); !v.OK() || v.Manifest == nil {
			t.Fatalf("parts of %d bytes:\n%s", part, describe(v))
		}
		l, err := oci.Read(context.Background(), dir)
		must(t, err)
		content, size, err := attest.Entries(l)
		must(t, err)
		if got, err := io.ReadAll(io.NewSectionReader(content, 0, size)); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("parts of %d bytes read as something else (%v)", part, err)
		}
		parts := 0
		for _, layer := range l.Layers {
			if strings.HasPrefix(layer.Title, attest.TitleEntries) {
				parts++
			}
		}
		if want := (len(whole) + int(part) - 1) / int(part); parts != want {
			t.Errorf("parts of %d bytes: %d layers, expected %d", part, parts, want)
		}
		must(t, l.Close())
	}
	r.input.EntriesPart = 100
	good := takeApart(t, newArchive(t, r, k))
	if good.layers[2].Title != attest.TitleEntries || good.layers[3].Title != attest.TitleEntries+".002" || good.layers[4].Title != attest.TitleEntries+".003" {
		t.Fatalf("titles: %q, %q, %q", good.layers[2].Title, good.layers[3].Title, good.layers[4].Title)
	}
	content := func(title string) string { return string(good.content(t, title)) }
	for name, c := range map[string]struct {
		change func(f *forgery)
		check  string
		class  fault.Class
	}{
		"the first is gone":   {func(f *forgery) { f.layers = append(f.layers[:2:2], f.layers[3:]...) }, "manifest", fault.FileMissing},
		"the second is gone":  {func(f *forgery) { f.layers = append(f.layers[:3:3], f.layers[4:]...) }, "manifest", fault.Manifest},
		"in disorder":         {func(f *forgery) { f.layers[3], f.layers[4] = f.layers[4], f.layers[3] }, "manifest", fault.Manifest},
		"another media type":  {func(f *forgery) { f.layers[3].MediaType = "text/plain" }, "manifest", fault.MediaType},
		"a border moved":      {func(f *forgery) { move(f, content, 99) }, "manifest", fault.SizeMismatch},
		"an empty part":       {func(f *forgery) { f.set(attest.TitleEntries+".003", nil) }, "manifest", fault.SizeMismatch},
		"another byte inside": {func(f *forgery) { f.set(attest.TitleEntries+".002", []byte(strings.Repeat("x", 100))) }, "manifest", fault.Manifest},
	} {
		f := forgery{layers: append([]oci.Source(nil), good.layers...), bundles: good.bundles, sign: true}
		c.change(&f)
		t.Log(name)
		wantFault(t, verify(t, f.putTogether(t, k), attest.Policy{}, k.Public()), c.check, c.class, "manifest.entries")
	}
	// As many parts as there may be are written, and found to be other entries; one more is refused at once.
	for parts, class := range map[int]fault.Class{900: fault.Manifest, 901: fault.Limit} {
		header, err := os.ReadFile(r.input.Manifest)
		must(t, err)
		many := r
		many.input.Manifest, many.input.EntriesPart = filepath.Join(t.TempDir(), "m.json"), 1
		must(t, os.WriteFile(many.input.Manifest, header, 0o644))
		must(t, os.WriteFile(manifest.EntriesPath(many.input.Manifest), bytes.Repeat([]byte{7}, parts), 0o644))
		_, err = attest.WriteArchive(context.Background(), filepath.Join(t.TempDir(), "a"), many.input, k)
		if !errors.Is(err, class) || (class != fault.Limit && errors.Is(err, fault.Limit)) {
			t.Errorf("%d parts: expected %s, found %v", parts, class, err)
		}
	}
	r.input.EntriesPart = 0
	r.input.Manifest = filepath.Join(t.TempDir(), "absent.json")
	if _, err := attest.WriteArchive(context.Background(), filepath.Join(t.TempDir(), "a"), r.input, k); err == nil {
		t.Error("an archive without a manifest")
	}
}

// move moves the border between the first two parts.
func move(f *forgery, content func(string) string, at int) {
	both := content(attest.TitleEntries) + content(attest.TitleEntries+".002")
	f.set(attest.TitleEntries, []byte(both[:at]))
	f.set(attest.TitleEntries+".002", []byte(both[at:]))
}
