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

// pandas returns a command that runs testdata/pandaspeer.py.
func pandas(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import pandas").Run() == nil {
			cmd := exec.Command(python, append([]string{"testdata/pandaspeer.py"}, args...)...)
			cmd.Stderr = os.Stderr
			return cmd
		}
	}
	missing(t, "no python3 with pandas here (Debian: python3-pandas)")
	return nil
}

// TestPandasReadsOurs lets pandas, which DLIO reads tables with, open a table of every element type in every compression: it must see the
// values that the stream defines, to the last bit.
func TestPandasReadsOurs(t *testing.T) {
	dir := t.TempDir()
	cmd := pandas(t, "check", dir)
	var cases []map[string]any
	s := stream.New("benchpin/test", 1, 13)
	shapes := []Layout{{Dims: []int{7, 5}, Samples: 1}, {Dims: []int{64}, Samples: 30}, {Dims: nil, Samples: 17}, {Dims: []int{1500}, Samples: 4}}
	seen := map[string]bool{}
	for _, sp := range specimens() {
		if sp.spec.Name != "csv" {
			continue
		}
		seen[sp.spec.Compression] = true
		f := sp.format(t)
		for di, d := range sp.types(t) {
			for si, l := range shapes {
				l.DType = d
				index := uint64(1000*di + si)
				file := fmt.Sprintf("%s-%s-%d.%s", sp, d.Name, si, Extension(f))
				var out bytes.Buffer
				if err := f.Write(&out, l, d.Seeded(s, index), nil); err != nil {
					t.Fatal(err)
				}
				raw := make([]byte, l.PayloadBytes())
				s.Fill(raw, index, 0)
				for name, b := range map[string][]byte{file: out.Bytes(), file + ".raw": raw} {
					if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				cases = append(cases, map[string]any{"file": file, "compression": sp.spec.Compression, "dtype": d.Name, "samples": l.Samples})
			}
		}
	}
	if len(seen) != 5 {
		t.Fatalf("compressions %v", seen)
	}
	writeJSON(t, filepath.Join(dir, "cases.json"), cases)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf(" %d cases, 0 bad", len(cases))) {
		t.Fatalf("pandas disagrees: %v\n%s", err, out)
	}
}

// TestWeReadPandas reads what DataFrame.to_csv wrote.
func TestWeReadPandas(t *testing.T) {
	dir := t.TempDir()
	if err := pandas(t, "write", dir).Run(); err != nil {
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
	if len(cases) != 30 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		f, err := New(Spec{Name: c.Format, Compression: c.Compression})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, c.File))
		if err != nil {
			t.Fatal(err)
		}
		p := pair{f: f, data: data, size: int64(len(data))}
		for k := range len(c.Logical) + 1 {
			_, _, err := p.read(t, k, MinBuffer+k)
			if (err != nil) != (k == len(c.Logical)) {
				t.Errorf("%s row %d of %d: %v", c.File, k, len(c.Logical), err)
			}
		}
	}
}
