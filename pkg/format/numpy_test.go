package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// missing skips a test for the given reason, or fails it where CI=true: there, every peer must have been installed.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// numpy returns a command that runs testdata/peer.py, or another script, under a Python that has numpy.
func numpy(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import numpy").Run() == nil {
			cmd := exec.Command(python, args...)
			cmd.Stderr = os.Stderr
			return cmd
		}
	}
	missing(t, "no python3 with numpy here (Debian: python3-numpy)")
	return nil
}

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestNumpyLoadsOurs lets numpy load a file of every element type in several shapes: it must see the values that the
// stream defines, and save them again to the very same bytes.
func TestNumpyLoadsOurs(t *testing.T) {
	cmd := numpy(t, "testdata/peer.py", "check")
	dir := t.TempDir()
	var cases []map[string]any
	s := stream.New("benchpin/test", 1, 11)
	for _, name := range []string{"npy", "npz"} {
		f, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for di, d := range dtypes() {
			shapes := []Layout{
				{Dims: []int{7, 5}, Samples: 1}, {Dims: []int{64, 64, 16}, Samples: 1}, {Dims: []int{1, 1}, Samples: 1},
				{Dims: []int{33, 9}, Samples: 130}, {Dims: []int{100000}, Samples: 3}, {Dims: nil, Samples: 17},
				{Dims: []int{1, 2, 1, 3, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1}, Samples: 2},
			}
			for si, l := range shapes {
				l.DType = d.DType
				index := uint64(1000*di + si)
				file := fmt.Sprintf("%s-%d.%s", d.Name, si, name)
				var out bytes.Buffer
				if err := f.Write(&out, l, d.Seeded(s, index), make([]byte, MinBuffer+17*si)); err != nil {
					t.Fatal(err)
				}
				raw := make([]byte, l.PayloadBytes())
				s.Fill(raw, index, 0)
				for path, b := range map[string][]byte{file: out.Bytes(), file + ".raw": raw} {
					if err := os.WriteFile(filepath.Join(dir, path), b, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				dims := append([]int{}, l.Dims...)
				cases = append(cases, map[string]any{"file": file, "format": name, "dtype": d.Name, "dims": dims, "samples": l.Samples})
			}
		}
	}
	writeJSON(t, filepath.Join(dir, "cases.json"), cases)
	cmd.Args = append(cmd.Args, dir)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("%d cases, 0 bad", len(cases))) {
		t.Fatalf("numpy disagrees: %v\n%s", err, out)
	}
}

// TestWeLoadNumpys reads what numpy wrote: stored, compressed, several arrays, any order, other header versions.
func TestWeLoadNumpys(t *testing.T) {
	dir := t.TempDir()
	if err := numpy(t, "testdata/peer.py", "write", dir).Run(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		File    string
		Samples int
		Bytes   int64
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 50 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		data, err := os.ReadFile(filepath.Join(dir, c.File))
		if err != nil {
			t.Fatal(err)
		}
		f, err := ByName(strings.TrimPrefix(filepath.Ext(c.File), "."))
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{MinBuffer, 5000, 1 << 20} {
			for k := range c.Samples {
				got, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, size))
				if want := (Sample{Logical: c.Bytes, Asked: int64(len(data))}); err != nil || got != want {
					t.Fatalf("%s sample %d, buffer %d: %+v, %v; want %+v", c.File, k, size, got, err, want)
				}
			}
			if _, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), c.Samples, make([]byte, size)); err == nil {
				t.Fatalf("%s: sample %d of %d was read", c.File, c.Samples, c.Samples)
			}
		}
	}
}

// TestNumpyHeaders compares headers for shapes around every boundary of the padding.
func TestNumpyHeaders(t *testing.T) {
	type query struct {
		descr string
		shape []int
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var queries []query
	var in [][]any
	for _, d := range dtypes() {
		for n := 1; n <= 32; n++ {
			for range 6 {
				shape := make([]int, n)
				for i := range shape {
					shape[i] = 1 + rng.IntN(1<<(1+rng.IntN(40)))
				}
				queries = append(queries, query{d.Descr, shape})
				in = append(in, []any{d.Descr, shape})
			}
		}
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := numpy(t, "testdata/peer.py", "headers")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != len(queries) {
		t.Fatalf("%d headers for %d shapes", len(lines), len(queries))
	}
	exact := 0 // headers where numpy adds 64 spaces although none are needed
	for i, q := range queries {
		h := appendNPYHeader(nil, q.descr, q.shape)
		if got := hex.EncodeToString(h); got != lines[i] {
			t.Fatalf("%s %v\n got %s\nwant %s", q.descr, q.shape, got, lines[i])
		}
		if spaces := len(h) - len(bytes.TrimRight(h, " \n")) - 1 - (npyGrowth - len(fmt.Sprint(q.shape[0]))); spaces == npyAlign {
			exact++
		}
	}
	if exact == 0 {
		t.Error("no shape met the boundary where the padding is 64")
	}
}

// TestBigNumpy compares files beyond 2 GiB and 4 GiB, where zip's 64-bit records begin.
func TestBigNumpy(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("writes files of 2 and 4 GiB; set BENCHPIN_LONG=1 (make test-long)")
	}
	for _, side := range []int{46341, 65600} {
		path := filepath.Join(t.TempDir(), "big.npz")
		if err := numpy(t, "testdata/peer.py", "big", path, fmt.Sprint(side)).Run(); err != nil {
			t.Fatal(err)
		}
		theirs, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		l := Layout{Dims: []int{side, side}, Samples: 1, DType: dtypes()[5].DType}
		f := newNPZ()
		size, err := f.Size(l)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := theirs.Stat(); err != nil || info.Size() != size {
			t.Fatalf("numpy wrote %d bytes, Size says %d (%v)", info.Size(), size, err)
		}
		want, got := sha256.New(), sha256.New()
		if _, err := io.Copy(want, theirs); err != nil {
			t.Fatal(err)
		}
		if err := f.Write(got, l, zeros{}, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Errorf("side %d: the file differs from numpy's", side)
		}
		if s, err := f.ReadSample(theirs, size, 0, make([]byte, 1<<20)); err != nil || s.Logical != l.SampleBytes() {
			t.Errorf("side %d: read %+v, %v", side, s, err)
		}
	}
}

type zeros struct{}

func (zeros) Fill(p []byte, _ int64) { clear(p) }
