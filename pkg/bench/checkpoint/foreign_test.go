package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
)

// TestOwn: what a plan wrote is its own, whatever of it is there, and nothing else is.
func TestOwn(t *testing.T) {
	cfg := Config{Seed: 7, Ranks: 2, Framework: "pytorch", ModelSizeBytes: 40000, NumLayers: 2, LayerParameters: []int64{9000}, Tensor: 1, ZeroStage: 1,
		OptimizationGroups: []int64{100}}
	plan, err := NewPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	st, err := store.NewFolder(dir, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	pt := Point{Number: 1, Epoch: 1, Step: 3}
	own := func(p *Plan) error { return errors.Join(p.Own(st, pt, 0), p.Own(st, pt, 1)) }
	if err := own(plan); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	for rank := range cfg.Ranks {
		if _, err := NewWriter(plan, st).Save(t.Context(), pt, rank); err != nil {
			t.Fatal(err)
		}
	}
	if err := own(plan); err != nil {
		t.Errorf("its own: %v", err)
	}
	cfg.Seed++
	other, err := NewPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := own(other); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "byte 0 of tensor") {
		t.Errorf("of another seed: %v", err)
	}
	file := filepath.Join(dir, pt.Name(), plan.Files(0)[0].Name)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := own(plan); err != nil {
		t.Errorf("one is missing: %v", err)
	}
	for what, place := range map[string]func() error{
		"another length": func() error { return os.WriteFile(file, []byte("mine"), 0o666) },
		"other bytes":    func() error { return os.WriteFile(file, make([]byte, plan.Files(0)[0].Size), 0o666) },
		"a folder":       func() error { return os.Mkdir(file, 0o777) },
		"a link":         func() error { return os.Symlink("/nowhere", file) },
	} {
		if err := place(); err != nil {
			t.Fatal(err)
		}
		if err := own(plan); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), plan.Files(0)[0].Name) {
			t.Errorf("%s: %v", what, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
