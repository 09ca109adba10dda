package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python finds a Python that has the modules. Without one the test fails in CI and is skipped elsewhere.
func python(t *testing.T, modules ...string) string {
	t.Helper()
	for _, exe := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(exe, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return exe
		}
	}
	missing(t, "no python3 with "+strings.Join(modules, ", ")+" (Debian: python3, python3-torch)")
	return ""
}

// missing ends a test whose peer is not there: a failure in CI, a skip elsewhere.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// long skips a test that belongs to the long suite.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("BENCHPIN_LONG") != "1" {
		t.Skip("long suite: set BENCHPIN_LONG=1")
	}
}

type peerJob struct {
	Torch bool       `json:"torch"`
	Files []peerFile `json:"files"`
	Big   []int64    `json:"big,omitempty"`
}

type peerFile struct {
	Path    string       `json:"path"`
	Twin    string       `json:"twin"`
	Tensors []peerTensor `json:"tensors"`
}

type peerTensor struct {
	Name     string `json:"name"`
	Content  string `json:"content"`
	Elements int64  `json:"elements"`
	Type     string `json:"type"`
}

func ask(t *testing.T, exe string, job peerJob) string {
	t.Helper()
	in, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, filepath.Join("testdata", "check.py"))
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// saved writes the last rank's part of one checkpoint of each configuration and says what a reader has to find in it.
func saved(t *testing.T, configs ...Config) []peerFile {
	t.Helper()
	var files []peerFile
	for _, c := range configs {
		rank := c.Ranks - 1
		if c.ModelType != "transformer" {
			rank = 0
		}
		p, st, pt := plan(t, c), folder(t), Point{Number: 2, Epoch: 3, Step: 17}
		if _, err := NewWriter(p, st).Save(context.Background(), pt, rank); err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Files(rank) {
			fill := p.content(pt.Number, rank, &f)
			dir := t.TempDir()
			pf := peerFile{Path: filepath.Join(st.Root(), pt.Name(), f.Name), Twin: filepath.Join(dir, "twin.pt")}
			for k, tn := range f.Tensors {
				buf := make([]byte, tn.Bytes())
				fill(buf, k, 0)
				name := filepath.Join(dir, fmt.Sprint(k))
				if err := os.WriteFile(name, buf, 0o666); err != nil {
					t.Fatal(err)
				}
				pf.Tensors = append(pf.Tensors, peerTensor{tn.Name, name, tn.Elements, tn.Type.Name})
			}
			files = append(files, pf)
		}
	}
	return files
}

// deep has so many tensors that memo numbers leave one byte, keys leave one digit, and one dictionary takes two
// batches.
func deep() Config {
	c := config()
	c.ModelSizeBytes = 1 << 16
	c.NumLayers, c.LayerParameters = 1000, []int64{3, 300}
	for i := range 25 {
		c.OptimizationGroups = append(c.OptimizationGroups, int64(i+1))
	}
	return c
}

// transformers are transformers of all types and divisions.
func transformers() []Config {
	var list []Config
	for i, types := range [][2]string{{"fp16", "fp32"}, {"bf16", "fp64"}, {"fp32", "bf16"}, {"int8", "uint8"}, {"fp64", "fp16"}} {
		c := small(4)
		c.ModelDatatype, c.OptimizerDatatype = types[0], types[1]
		switch i {
		case 0:
			c.ZeroStage = 3
		case 1:
			c.Tensor, c.Pipeline, c.ZeroStage = 2, 2, 1
		case 2:
			c.Tensor, c.ZeroStage = 4, 2
		default:
			c.Pipeline = 4
		}
		list = append(list, c)
	}
	return list
}

func TestPythonReadsTheArchives(t *testing.T) {
	ask(t, python(t, "zipfile", "pickletools"), peerJob{Files: saved(t, append(transformers(), config(), full(), deep())...)})
}

// TestTorchReadsAndWritesTheSameBytes: torch.load gives the seeded bytes, and torch.save of them gives our file, byte
// for byte.
func TestTorchReadsAndWritesTheSameBytes(t *testing.T) {
	long(t)
	ask(t, python(t, "torch"), peerJob{Torch: true, Files: saved(t, append(transformers(), config(), full(), deep())...)})
}

// TestTorchBeyond4GiB compares an archive with sizes and offsets of 64 bits with the one that PyTorch makes. It needs 9
// GB of memory.
func TestTorchBeyond4GiB(t *testing.T) {
	long(t)
	b := &builder{}
	state := []entry{b.tensor("a", 100), b.tensor("b", 1<<32+100), b.tensor("c", 1000)}
	out := ask(t, python(t, "torch"), peerJob{Big: []int64{100, 1<<32 + 100, 1000}})
	arc := newArchive(state, b.tensors)
	src := newSource(arc, func(dst []byte, _ int, _ int64) { clear(dst) })
	h, buf := sha256.New(), make([]byte, pieceSize)
	for n := src.read(buf); n > 0; n = src.read(buf) {
		h.Write(buf[:n])
	}
	if found := fmt.Sprintf("%d %x\n", arc.size, h.Sum(nil)); found != out {
		t.Errorf("found %sPyTorch has %s", found, out)
	}
}
