package datagen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// small is a data set of 31 files of about 30 KB with everything that a recipe can have.
func small(t testing.TB, seed uint64) Recipe {
	t.Helper()
	return recipe(t, seed, "format: npz", "num_files_train: 23", "num_files_eval: 8", "num_subfolders_train: 3", "num_samples_per_file: 2",
		"record_length_bytes: 14000", "record_length_bytes_stdev: 5000")
}

func folder(t testing.TB, root string) *store.Folder {
	t.Helper()
	st, err := store.NewFolder(root, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func generate(t testing.TB, st Store, r Recipe, o Options) manifest.Header {
	t.Helper()
	h, err := Generate(t.Context(), st, r, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// checkPinned verifies a folder with a saved manifest: nothing missing, nothing extra, every byte as pinned.
func checkPinned(t testing.TB, st Store, path string, want manifest.Header) {
	t.Helper()
	m, err := manifest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	report, err := manifest.Verify(t.Context(), m, st, manifest.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Root != want.Root || report.Files != want.Count || report.Bytes != want.Bytes {
		t.Fatalf("the saved manifest has %d files, %d bytes, root %s; Generate returned %+v", report.Files, report.Bytes, report.Root, want)
	}
}

// TestWorkersDoNotShow: the same root with any number of workers and buffers; another one with the next seed.
func TestWorkersDoNotShow(t *testing.T) {
	var first manifest.Header
	for _, workers := range []int{1, 2, 7, 0} {
		dir := t.TempDir()
		st, path := folder(t, filepath.Join(dir, "data")), filepath.Join(dir, "manifest.json")
		var last Progress
		h := generate(t, st, small(t, 1), Options{Workers: workers, Manifest: path, Progress: func(p Progress) {
			if p.Files < last.Files || p.Bytes < last.Bytes {
				t.Errorf("progress went back from %+v to %+v", last, p)
			}
			last = p
		}})
		if want := (Progress{31, 31, h.Bytes, h.Bytes}); last != want {
			t.Errorf("the last progress is %+v, want %+v", last, want)
		}
		if first.Root == "" {
			first = h
		}
		if h.Root != first.Root || h.Bytes != small(t, 1).TotalBytes() || h.Count != 31 || string(h.Recipe) != string(small(t, 1).JSON()) {
			t.Errorf("%d workers: %+v, want %+v", workers, h, first)
		}
		checkPinned(t, st, path, h)
	}
	if h := generate(t, folder(t, t.TempDir()), small(t, 2), Options{}); h.Root == first.Root {
		t.Error("seed 1 and seed 2 have the same root")
	}
}

// TestNumpyLoadsAll lets numpy load every file of a data set.
func TestNumpyLoadsAll(t *testing.T) {
	dir := t.TempDir()
	r := small(t, 3)
	generate(t, folder(t, dir), r, Options{})
	const script = `
import sys, pathlib, numpy as np
n = 0
for p in sorted(pathlib.Path(sys.argv[1]).rglob("*.npz")):
    with np.load(p) as z:
        x, y = z["x"], z["y"]
        assert x.dtype == np.uint8 and x.ndim == 3 and x.shape[2] == 2, (p, x.dtype, x.shape)
        assert y.dtype == np.int64 and y.shape == (2,) and not y.any(), p
        assert p.stat().st_size == x.nbytes + 8 * 2 + 490, p
        n += x.nbytes
print(n)
`
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import numpy").Run() != nil {
			continue
		}
		out, err := exec.Command(python, "-c", script, dir).CombinedOutput()
		if want := fmt.Sprintln(r.TotalBytes() - 31*(8*2+490)); err != nil || string(out) != want {
			t.Errorf("numpy: %v\n%swant %s bytes of samples", err, out, want)
		}
		return
	}
	missing(t, "no python3 with numpy here (Debian: python3-numpy)")
}

// missing skips a test for the given reason, or fails it where CI=true.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// TestNoBlockRepeats: storage that deduplicates or compresses must not see less than it is given.
func TestNoBlockRepeats(t *testing.T) {
	for _, c := range []struct {
		format, dtype string
		least         float64 // of its size when it is compressed
	}{
		{"npz", "uint8", 0.999}, {"npz", "float32", 0.75}, // 24 of 32 bits are random
		{"indexed_binary", "int16", 0.998}, {"tfrecord", "uint8", 0.998}, {"png", "uint8", 0.99},
	} {
		dir := t.TempDir()
		r := recipe(t, 4, "format: "+c.format, "num_files_train: 40", "num_files_eval: 8", "record_length_bytes: 200000", "record_element_type: "+c.dtype)
		generate(t, folder(t, dir), r, Options{})
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[[512]byte]string)
		var all []byte
		for i := range r.Files() {
			f := r.File(i)
			data, err := os.ReadFile(filepath.Join(dir, f.Path))
			if err != nil {
				t.Fatal(err)
			}
			for b := range len(data) / 512 {
				block := [512]byte(data[512*b:])
				at := fmt.Sprintf("%s, block %d", f.Path, b)
				if other, ok := seen[block]; ok {
					t.Fatalf("%s equals %s", at, other)
				}
				seen[block] = at
			}
			all = append(all, data...)
		}
		packed := float64(len(enc.EncodeAll(all, nil))) / float64(len(all))
		if packed < c.least {
			t.Errorf("%s of %s: zstd makes %.3f of it, want at least %.3f", c.format, c.dtype, packed, c.least)
		}
	}
}

// TestCompleted: a finished data set is left as it is, completed where files are missing, and never overwritten.
func TestCompleted(t *testing.T) {
	dir := t.TempDir()
	st, r := folder(t, dir), small(t, 5)
	want := generate(t, st, r, Options{})
	info, err := st.Stat(r.File(3).Path)
	if err != nil {
		t.Fatal(err)
	}
	if h := generate(t, st, r, Options{}); h.Root != want.Root {
		t.Errorf("root %s, then %s", want.Root, h.Root)
	}
	if again, err := st.Stat(r.File(3).Path); err != nil || !again.Same(info) {
		t.Errorf("an equal file was written again: %+v, %+v, %v", info, again, err)
	}
	if err := os.Remove(filepath.Join(dir, r.File(7).Path)); err != nil {
		t.Fatal(err)
	}
	if h := generate(t, st, r, Options{}); h.Root != want.Root {
		t.Errorf("completed to root %s, want %s", h.Root, want.Root)
	}
	// A changed byte in a finished data set is not ours to mend, with or without another file missing.
	bend(t, filepath.Join(dir, r.File(9).Path), 700)
	for _, missing := range []bool{false, true} {
		if missing {
			if err := os.Remove(filepath.Join(dir, r.File(7).Path)); err != nil {
				t.Fatal(err)
			}
		}
		before := snapshot(t, dir)
		_, err = Generate(t.Context(), st, r, Options{})
		if !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), r.File(9).Path+" (its byte 700 ") {
			t.Errorf("a changed byte gave %v", err)
		}
		if after := snapshot(t, dir); after != before {
			t.Errorf("the folder changed from\n%s\nto\n%s", before, after)
		}
	}
}

// bend flips a bit of a file.
func bend(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

// snapshot lists names, sizes and times of everything in a folder.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestForeignFilesAreNamed(t *testing.T) {
	r := small(t, 6)
	long := strings.Repeat("x", 10)
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"thesis.tex": long}, "thesis.tex"},
		{map[string]string{"train/0/img_99_of_23.npz": long}, "train/0/img_99_of_23.npz"},
		{map[string]string{"a": "", "b": "", "c": "", "d": "", "e": "", "f": "", "zz/z": ""}, "a, b, c, d, e and 2 more"},
		{map[string]string{r.File(0).Path: long}, r.File(0).Path + " (expected "},
		{map[string]string{r.File(0).Path: strings.Repeat("x", int(r.File(0).Size))}, r.File(0).Path + " (its byte 0 "},
		{map[string]string{Marker: "{}"}, "another recipe"},
		{map[string]string{Marker: string(small(t, 7).JSON())}, "another recipe"},
		{map[string]string{Marker: string(r.JSON()), "thesis.tex": long}, "thesis.tex"},
		{map[string]string{".benchpin-tmp-12": "left", "thesis.tex": long}, "thesis.tex"},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		before := snapshot(t, dir)
		_, err := Generate(t.Context(), folder(t, dir), r, Options{Manifest: filepath.Join(t.TempDir(), "m.json")})
		if !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want ErrOccupied with %q", err, c.want)
		}
		if after := snapshot(t, dir); after != before {
			t.Errorf("the folder changed from\n%s\nto\n%s", before, after)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := Generate(t.Context(), folder(t, dir), r, Options{}); !errors.Is(err, store.ErrIrregular) {
		t.Errorf("a symbolic link gave %v", err)
	}
}

// TestResume: with the marker, whatever state the recipe's own files are in, the result is the same.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	st, r := folder(t, dir), small(t, 8)
	want := generate(t, st, r, Options{})
	if err := os.WriteFile(filepath.Join(dir, Marker), r.JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	bend(t, filepath.Join(dir, r.File(2).Path), 900)
	if err := os.Truncate(filepath.Join(dir, r.File(4).Path), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, r.File(30).Path)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "train/.benchpin-tmp-00ff"), []byte("half a fi"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "manifest.json")
	if h := generate(t, st, r, Options{Manifest: path}); h.Root != want.Root {
		t.Errorf("root %s, want %s", h.Root, want.Root)
	}
	checkPinned(t, st, path, want)
}

// TestKilled kills a generating process at random moments until it is done; the end must be that of an undisturbed one.
func TestKilled(t *testing.T) {
	for name, r := range killed(t) {
		t.Run(name, func(t *testing.T) { testKilled(t, name, r) })
	}
}

func testKilled(t *testing.T, name string, r Recipe) {
	if dir := os.Getenv("BENCHPIN_TEST_GENERATE"); dir != "" { // the process that is killed
		generate(t, folder(t, filepath.Join(dir, "data")), r, Options{Workers: 2, Manifest: filepath.Join(dir, "manifest.json")})
		return
	}
	want := generate(t, nullStore{io.Discard}, r, Options{})
	dir := t.TempDir()
	kills, states := 0, make(map[string]bool)
	for delay := 0; ; delay++ {
		if delay > 200 {
			t.Fatal("never done")
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$/^"+name+"$")
		cmd.Env = append(os.Environ(), "BENCHPIN_TEST_GENERATE="+dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		killAt := after(delay)
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after %d kills: %v\n%s", kills, err, &out)
			}
		case <-killAt:
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				kills++
				states[state(t, dir)] = true
				continue
			}
		}
		break
	}
	if kills < 3 {
		t.Errorf("only %d kills came in time", kills)
	}
	t.Logf("%d kills, %d different states of the folder", kills, len(states))
	checkPinned(t, folder(t, filepath.Join(dir, "data")), filepath.Join(dir, "manifest.json"), want)
}

// state counts the files that a killed process left, by kind.
func state(t testing.TB, dir string) string {
	var marker, temporary, files int
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		switch {
		case err != nil || info.IsDir():
		case info.Name() == Marker:
			marker++
		case store.IsTemporary(path):
			temporary++
		default:
			files++
		}
		return nil
	})
	return fmt.Sprint(marker, temporary, files)
}

// fullFolder is a folder on a device that fills up.
type fullFolder struct {
	*store.Folder
	full store.Store
	free int64
}

func (f fullFolder) Create(name string, size int64) (store.Writer, error) {
	return f.full.Create(name, size)
}
func (f fullFolder) FreeSpace() (int64, error) { return f.free, nil }

func TestFullDisk(t *testing.T) {
	r := small(t, 9)
	dir := t.TempDir()
	st := folder(t, dir)
	need := r.TotalBytes()
	// Too little from the start: nothing is written.
	_, err := Generate(t.Context(), fullFolder{st, st, need - 1}, r, Options{})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes are to be written and %d are free, 1 too few", need, need-1)) {
		t.Errorf("error %v", err)
	}
	if got := snapshot(t, dir); got != "" {
		t.Errorf("files were written:\n%s", got)
	}
	// Full in between: the error tells the file, no part of a file stays, and the rest is made once there is room.
	path := filepath.Join(t.TempDir(), "m.json")
	_, err = Generate(t.Context(), fullFolder{st, storetest.FailWrites(st, need/2, unix.ENOSPC), need}, r, Options{Manifest: path})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), ".npz") {
		t.Errorf("error %v", err)
	}
	if left := snapshot(t, dir); strings.Contains(left, ".benchpin-tmp-") || !strings.Contains(left, Marker) {
		t.Errorf("left behind:\n%s", left)
	}
	if left := snapshot(t, filepath.Dir(path)); left != "" {
		t.Errorf("a manifest of an unfinished data set:\n%s", left)
	}
	// The files that are there need no room again.
	have := int64(0)
	for i := range r.Files() {
		if info, err := st.Stat(r.File(i).Path); err == nil {
			have += info.Size
		}
	}
	if have == 0 {
		t.Fatal("no file was finished before the disk was full")
	}
	h := generate(t, fullFolder{st, st, need - have}, r, Options{Manifest: path})
	checkPinned(t, st, path, h)
}

func TestCancel(t *testing.T) {
	dir := t.TempDir()
	st, r := folder(t, dir), small(t, 10)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	calls := 0
	_, err := Generate(ctx, st, r, Options{Workers: 2, Progress: func(p Progress) {
		if calls++; p.Files == 7 {
			cancel(why)
		}
	}})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want the cause", err)
	}
	if left := snapshot(t, dir); strings.Contains(left, ".benchpin-tmp-") || !strings.Contains(left, Marker) || strings.Count(left, ".npz") == r.Files() {
		t.Errorf("left behind:\n%s", left)
	}
	if h := generate(t, st, r, Options{}); h.Root != generate(t, folder(t, t.TempDir()), r, Options{}).Root {
		t.Error("a cancelled data set was completed to another root")
	}
}

func TestTwoAtOnce(t *testing.T) {
	dir := t.TempDir()
	st, r := folder(t, dir), small(t, 11)
	var inner error
	once := false
	generate(t, st, r, Options{Progress: func(Progress) {
		if !once {
			once = true
			_, inner = Generate(context.Background(), folder(t, dir), r, Options{})
		}
	}})
	if !errors.Is(inner, ErrBusy) {
		t.Errorf("a second one at the same time gave %v", inner)
	}
}

func TestManifestInsideData(t *testing.T) {
	dir := t.TempDir()
	_, err := Generate(t.Context(), folder(t, filepath.Join(dir, "data")), small(t, 12), Options{Manifest: filepath.Join(dir, "data/x/manifest.json")})
	if err == nil || !strings.Contains(err.Error(), "lies in the data folder") {
		t.Errorf("error %v", err)
	}
	if _, err := Generate(t.Context(), folder(t, dir), Recipe{}, Options{}); err == nil {
		t.Error("an empty recipe was generated")
	}
}

// nullStore takes files and forgets them.
type nullStore struct{ w io.Writer }

func (nullStore) Open(string) (store.File, error)                        { return nil, os.ErrNotExist }
func (nullStore) List(context.Context, func(store.Info) error) error     { return os.ErrNotExist }
func (nullStore) Remove(string) error                                    { return nil }
func (s nullStore) Create(name string, size int64) (store.Writer, error) { return nullWriter{s.w}, nil }

type nullWriter struct{ io.Writer }

// WriteFront makes w see bytes for the second time, which nobody who looks at them may be given.
func (n nullWriter) WriteFront([]byte) error {
	if n.Writer != io.Discard {
		return errors.New("what was written is gone")
	}
	return nil
}

func (nullWriter) Commit() error { return nil }
func (nullWriter) Abort() error  { return nil }
