package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// python returns a command that runs testdata/records.py, which needs numpy for the values that elements stand for.
func python(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return numpy(t, append([]string{"testdata/records.py"}, args...)...)
}

// peerShapes are the files that peers are shown of a format.
func peerShapes() []Layout {
	return []Layout{
		{Dims: []int{7, 5}, Samples: 1}, {Dims: []int{64, 64}, Samples: 3, File: 7}, {Dims: nil, Samples: 17}, {Dims: []int{1}, Samples: 1, File: 10},
		{Dims: []int{33, 9, 2}, Samples: 130, File: 1999}, {Dims: []int{9000}, Samples: 4}, {Dims: []int{127}, Samples: 2}, {Dims: []int{16384}, Samples: 2},
	}
}

// TestPeersReadOurs lets Python read what the record formats write: with both checksums of a TFRecord, by numpy's array types and
// memory maps, by its csv, gzip, bz2, lzma and zipfile modules. It must see the values that the stream defines, and the place of
// every sample where the companions say.
func TestPeersReadOurs(t *testing.T) {
	cmd := python(t, "check")
	dir := t.TempDir()
	var cases []map[string]any
	s := stream.New("benchpin/test", 1, 12)
	for _, sp := range specimens() {
		switch sp.spec.Name {
		case "tfrecord", "indexed_binary", "mmap_indexed_binary", "csv", "synthetic":
		case "npz":
			if sp.spec.Compression == "" {
				continue
			}
		default:
			continue
		}
		f := sp.format(t)
		for di, d := range sp.types(t) {
			for si, l := range peerShapes() {
				if sp.spec.Name == "tfrecord" && l.PayloadBytes() > 17000 {
					continue // Python computes a CRC-32C byte by byte
				}
				l.DType = d
				l = sp.fitted(l)
				index := uint64(1000*di + si)
				file := fmt.Sprintf("train/%s-%s-%d.%s", sp, d.Name, si, Extension(f))
				var out bytes.Buffer
				if err := f.Write(&out, l, d.Seeded(s, index), make([]byte, MinBuffer+17*si)); err != nil {
					t.Fatal(err)
				}
				raw := make([]byte, l.PayloadBytes())
				s.Fill(raw, index, 0)
				files := map[string][]byte{file: out.Bytes(), file + ".raw": raw}
				if c, ok := f.(Companioned); ok {
					for _, c := range c.Companions() {
						var out bytes.Buffer
						if err := c.Write(&out, l); err != nil {
							t.Fatal(err)
						}
						files[c.Path(file)] = out.Bytes()
					}
				}
				for path, b := range files {
					path = filepath.Join(dir, path)
					if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, b, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				cases = append(cases, map[string]any{"file": file, "format": sp.spec.Name, "compression": sp.spec.Compression, "dtype": d.Name,
					"dims": append([]int{}, l.Dims...), "samples": l.Samples, "number": l.File})
			}
		}
	}
	writeJSON(t, filepath.Join(dir, "cases.json"), cases)
	cmd.Args = append(cmd.Args, dir)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("%d cases, 0 bad", len(cases))) {
		t.Fatalf("peers disagree: %v\n%s", err, out)
	}
}

// theirs is a file that Python wrote.
type theirs struct {
	File, Format, Compression string
	Index                     []string // companions
	Logical                   []int64  // of each sample, -1 where it is not said
	Bad                       bool     // reading each sample must fail
}

// TestWeReadPeers reads what Python wrote: records of other makers, indexes of several widths, compressed tables.
func TestWeReadPeers(t *testing.T) {
	dir := t.TempDir()
	if err := python(t, "write", dir).Run(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []theirs
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 8 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		f, err := New(Spec{Name: c.Format, Compression: c.Compression})
		if err != nil {
			t.Fatal(err)
		}
		read := func(name string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		p := pair{f: f, data: read(c.File)}
		p.size = int64(len(p.data))
		for _, name := range c.Index {
			p.idx = append(p.idx, read(name))
		}
		for k, want := range c.Logical {
			for _, buf := range []int{MinBuffer, 5001, 1 << 20} {
				got, _, err := p.read(t, k, buf)
				if (err != nil) != c.Bad || !c.Bad && got.Logical != want {
					t.Errorf("%s sample %d, buffer %d: %+v, %v; want %d bytes, bad %v", c.File, k, buf, got, err, want, c.Bad)
				}
			}
			if len(c.Index) == 0 || c.Format != "tfrecord" {
				continue
			}
			if got, err := f.ReadSample(bytes.NewReader(p.data), p.size, k, nil); (err != nil) != c.Bad || !c.Bad && got.Logical != want {
				t.Errorf("%s sample %d, without its index: %+v, %v; want %d bytes, bad %v", c.File, k, got, err, want, c.Bad)
			}
		}
		if _, _, err := p.read(t, len(c.Logical), MinBuffer); err == nil {
			t.Errorf("%s: sample %d of %d was read", c.File, len(c.Logical), len(c.Logical))
		}
	}
}
