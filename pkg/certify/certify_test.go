package certify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
	"github.com/benchpin/benchpin/schemas"
)

// pinned is a folder of files and its manifest.
func pinned(t testing.TB, files map[string][]byte) (*store.Folder, *manifest.Manifest) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		path := filepath.Join(dir, "data", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	st, err := store.NewFolder(filepath.Join(dir, "data"), store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	f, err := manifest.Create(filepath.Join(dir, "m.json"), manifest.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Build(t.Context(), st, f, manifest.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	return st, opened(t, filepath.Join(dir, "m.json"))
}

func opened(t testing.TB, path string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func measured(t testing.TB, m *manifest.Manifest, src Opener, o Options) *certificate.Certificate {
	t.Helper()
	c, err := Measure(context.Background(), m, src, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// random is n bytes that nothing compresses.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	r := rand.NewChaCha8(key)
	_, _ = r.Read(b)
	return b
}

// TestGeneratedDataAreFair: of what benchpin generates nothing repeats, and nothing is gained by compressing it. What is alike in small files
// are the containers' own parts: indexes, tables of codes, labels.
func TestGeneratedDataAreFair(t *testing.T) {
	for dataset, most := range map[string]float64{
		"format: raw, record_length_bytes: 300000": 0, "format: npy, record_length_bytes: 300000": 0, "format: npz, record_length_bytes: 300000": 0.002,
		"format: tfrecord, record_length_bytes: 100000, num_samples_per_file: 3": 0.02, "format: hdf5, record_length_bytes: 300000": 0.01,
		"format: jpeg, record_length_bytes: 300000": 0.01,
	} {
		t.Run(dataset, func(t *testing.T) {
			w, err := workload.Load(workload.Source{Name: "w.yaml", Data: []byte("framework: pytorch\ndataset: {num_files_train: 16, " + dataset + "}\n")}, workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			recipe, err := datagen.FromWorkload(w.Workload)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			st, err := store.NewFolder(filepath.Join(dir, "data"), store.FolderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			if _, err := datagen.Generate(t.Context(), st, recipe, datagen.Options{Manifest: filepath.Join(dir, "m.json")}); err != nil {
				t.Fatal(err)
			}
			c := measured(t, opened(t, filepath.Join(dir, "m.json")), st, Options{})
			for _, b := range c.Repeats.Blocks {
				if b.Share > most || !b.Exact {
					t.Errorf("blocks of %d bytes: %+v, want at most %v", b.Size, b.Distinct, most)
				}
			}
			for _, k := range c.Compression.Chunks {
				if k.Ratio < 1 || k.Ratio > 1.01 {
					t.Errorf("chunks of %d bytes: ratio %v", k.Size, k.Ratio)
				}
			}
			if c.Class != "C" || !c.Dataset.Generated || c.Repeats.Files.Share > 0 && !strings.Contains(dataset, "tfrecord") {
				t.Errorf("found %+v", c)
			}
		})
	}
}

// TestRepeatsAreFound: zeros, repeated files and repeated pieces, each counted to the block; and compressible text.
func TestRepeatsAreFound(t *testing.T) {
	a, b := random(1, 1<<20), random(2, 1<<20)
	shifted := append(random(3, 512), a[:1<<20-512]...) // the same 512-byte blocks, other 4-KiB blocks
	text := []byte(strings.Repeat("all work and no play makes jack a dull boy\n", 30000))
	for name, c := range map[string]struct {
		files        map[string][]byte
		small, large float64 // shares
		zeros        int64   // small blocks
		same         float64 // share of files
		ratio        float64 // least, of whole files
	}{
		"all different":  {map[string][]byte{"a": a, "b": b}, 0, 0, 0, 0, 0.99},
		"the same twice": {map[string][]byte{"a": a, "b": a}, 0.5, 0.5, 0, 0.5, 0.99},
		"zeros":          {map[string][]byte{"a": a, "z": make([]byte, 1<<20)}, 0.5 - 0.5/2048, 0.5 - 0.5/256, 2048, 0, 1.9},
		"shifted":        {map[string][]byte{"a": a, "b": shifted}, 0.5 - 0.5/2048, 0, 0, 0, 0.99},
		"short files":    {map[string][]byte{"a": []byte("x"), "b": []byte("x"), "c": []byte("y"), "e": {}, "f": {}}, 1. / 3, 1. / 3, 0, 0.2, 1},
		"nothing":        {map[string][]byte{}, 0, 0, 0, 0, 1},
		"text":           {map[string][]byte{"a": text}, 0, 0, 0, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			st, m := pinned(t, c.files)
			got := measured(t, m, st, Options{Workers: 3})
			if s := got.Repeats.Blocks[0]; name != "text" && (math.Abs(s.Share-c.small) > 1e-6 || int64(s.Zero) != c.zeros || !s.Exact) {
				t.Errorf("blocks of 512 bytes: %+v, want share %v, %d zeros", s, c.small, c.zeros)
			}
			if s := got.Repeats.Blocks[1]; name != "text" && (math.Abs(s.Share-c.large) > 1e-6 || !s.Exact) {
				t.Errorf("blocks of 4096 bytes: %+v, want share %v", s, c.large)
			}
			if s := got.Repeats.Files; s.Share != certificate.Round(c.same, 6) {
				t.Errorf("files: %+v, want share %v", s, c.same)
			} else if again, err := Files(t.Context(), m); err != nil || again != s {
				t.Errorf("files: measured %+v, by the manifest alone %+v, %v", s, again, err)
			}
			if k := got.Compression.Chunks[2]; k.Ratio < c.ratio {
				t.Errorf("whole files: %+v, want at least %v", k, c.ratio)
			}
			if got.Class != "H" || got.Scope.Mode != certificate.All {
				t.Errorf("found %+v", got)
			}
		})
	}
}

// TestSameEverywhere: neither the number of workers nor the order changes a byte, exact or estimated, and the certificate is read again.
func TestSameEverywhere(t *testing.T) {
	files := map[string][]byte{}
	for i := range 40 {
		files[fmt.Sprintf("d%d/f%d", i%3, i)] = random(uint64(i/2), 10_000+3000*i)
	}
	st, m := pinned(t, files)
	for _, o := range []Options{{}, {limit: 500}, {SampleBytes: 300_000}, {SampleBytes: 300_000, limit: 100}} {
		var first []byte
		for workers := 1; workers < 8; workers += 3 {
			o.Workers = workers
			b, err := measured(t, m, st, o).Canonical()
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
				c, err := certificate.Parse(b)
				if err != nil {
					t.Fatal(err)
				}
				again, err := c.Canonical()
				if err != nil || !bytes.Equal(again, b) {
					t.Errorf("read and written again it is another one: %v", err)
				}
				validate(t, b)
			} else if !bytes.Equal(b, first) {
				t.Errorf("%+v: another certificate:\n%s\n%s", o, first, b)
			}
		}
	}
}

// validate checks the bytes against the schema.
func validate(t *testing.T, b []byte) {
	t.Helper()
	text, err := schemas.FS.ReadFile(certificate.SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.CompileString(certificate.SchemaFile, string(text))
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
}

// TestSample: a sample has the bytes asked for and hardly more, its files are drawn by the root, and its repeats are those in it.
func TestSample(t *testing.T) {
	files := map[string][]byte{}
	for i := range 200 {
		files[fmt.Sprintf("f%03d", i)] = random(uint64(i), 4096)
	}
	st, m := pinned(t, files)
	c := measured(t, m, st, Options{SampleBytes: 100_000})
	if n := int64(c.Scope.Bytes); n < 100_000 || n > 104_096 || c.Scope.Mode != certificate.Sample || int64(c.Scope.Files) != n/4096 {
		t.Errorf("read %+v", c.Scope)
	}
	// Asked for as many bytes as it has, it is the same sample.
	if again := measured(t, m, st, Options{SampleBytes: int64(c.Scope.Bytes)}); !reflect.DeepEqual(again, c) {
		t.Errorf("again it is %+v, not %+v", again, c)
	}
	if c := measured(t, m, st, Options{SampleBytes: 200*4096 - 1}); c.Scope.Mode != certificate.All {
		t.Errorf("all but a byte: %+v", c.Scope)
	}
	if c := measured(t, m, st, Options{SampleBytes: 1 << 40}); c.Scope.Mode != certificate.All {
		t.Errorf("more than there is: %+v", c.Scope)
	}
	chosen, bytes, err := choose(t.Context(), m, 100_000)
	if err != nil || len(chosen) != int(c.Scope.Files) || bytes != int64(c.Scope.Bytes) {
		t.Errorf("%d files were drawn, %v", len(chosen), err)
	}
}

// TestEveryFileIsChecked: a file that is not the one of the manifest is an error that names it, wherever it differs.
func TestEveryFileIsChecked(t *testing.T) {
	content := random(1, 3<<20)
	for name, change := range map[string][]byte{"a byte": append([]byte{content[0] ^ 1}, content[1:]...), "shorter": content[:len(content)-1], "longer": append(content, 0)} {
		st, m := pinned(t, map[string][]byte{"a": random(2, 100), "b": content})
		if err := os.WriteFile(filepath.Join(st.Root(), "b"), change, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Measure(t.Context(), m, st, Options{})
		var mismatch *manifest.MismatchError
		if !errors.As(err, &mismatch) || mismatch.Path != "b" {
			t.Errorf("%s: %v", name, err)
		}
	}
	st, m := pinned(t, map[string][]byte{"a": random(2, 100)})
	if err := os.Remove(filepath.Join(st.Root(), "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(t.Context(), m, st, Options{}); err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("a missing file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, m, st, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestEstimate: where not all hashes fit, the share is what was counted in exact mode, within four standard errors that it names.
func TestEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		different := rapid.IntRange(1, 60_000).Draw(t, "different")
		repeats := rapid.IntRange(0, 60_000).Draw(t, "repeats")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		exact, few := newDistinct(defaultLimit), newDistinct(1000)
		all := make([]uint64, different)
		for i := range all {
			all[i] = r.Uint64()
			exact.add(all[i])
			few.add(all[i])
		}
		for range repeats {
			h := all[r.IntN(different)]
			exact.add(h)
			few.add(h)
		}
		want, got := exact.result(), few.result()
		if !want.Exact || int(want.Distinct) != different || int(want.Count) != different+repeats {
			t.Fatalf("counted %+v of %d different and %d repeated", want, different, repeats)
		}
		if got.Exact != (different <= 1000) || few.used > 1000 {
			t.Fatalf("%+v with %d held", got, few.used)
		}
		if d := math.Abs(got.Share - want.Share); d > 5*got.Error+1e-6 {
			t.Fatalf("estimated %+v, counted %+v", got, want)
		}
		// In any order the same are held.
		again := newDistinct(1000)
		for i := range all {
			again.add(all[len(all)-1-i])
		}
		if again.used != few.used || again.level != few.level {
			t.Fatalf("in another order %d of level %d are held, not %d of %d", again.used, again.level, few.used, few.level)
		}
	})
}

// TestMemoryIsBounded: the table never has more than its places.
func TestMemoryIsBounded(t *testing.T) {
	d := newDistinct(defaultLimit)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 * defaultLimit / 2 {
		d.add(r.Uint64())
	}
	if len(d.table) > 1<<tableBits || d.used > defaultLimit || d.level != 1 {
		t.Errorf("%d places, %d used, level %d", len(d.table), d.used, d.level)
	}
	if got := d.result(); got.Exact || got.Share > 5*got.Error || got.Error > 0.001 {
		t.Errorf("found %+v", got)
	}
}

func BenchmarkMeasure(b *testing.B) {
	files := map[string][]byte{}
	for i := range 16 {
		files[fmt.Sprint(i)] = random(uint64(i), 8<<20)
	}
	st, m := pinned(b, files)
	b.SetBytes(16 * 8 << 20)
	for b.Loop() {
		measured(b, m, st, Options{})
	}
}
