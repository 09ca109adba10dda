package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestPlacesApartFromData: nothing is written into the data folder, whatever path leads there, and nothing is made before that is known.
func TestPlacesApartFromData(t *testing.T) {
	w := small(t)
	l, _ := generated(t, w.Workload)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(l.Data(), link); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "good")
	for name, o := range map[string]RunOptions{
		"run folder":                 {Out: filepath.Join(l.Data(), "runs", "x"), Checkpoints: good},
		"checkpoints":                {Out: good, Checkpoints: filepath.Join(l.Data(), "checkpoints")},
		"run folder by a link":       {Out: filepath.Join(link, "x"), Checkpoints: good},
		"checkpoints by a link":      {Out: good, Checkpoints: filepath.Join(link, "x", "y")},
		"the data folder as results": {Out: l.Data(), Checkpoints: good},
	} {
		o.Workload, o.Data, o.Manifest = w, l.Data(), l.Manifest()
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrInsideData) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{filepath.Join(link, "m.json"), filepath.Join(l.Data(), "m.json")} {
		if _, err := Generate(t.Context(), GenerateOptions{Workload: w.Workload, Data: l.Data(), Manifest: path}); !errors.Is(err, ErrInsideData) {
			t.Errorf("generate with manifest %s: %v", path, err)
		}
		if _, err := Pin(t.Context(), PinOptions{Data: l.Data(), Manifest: path}); !errors.Is(err, ErrInsideData) {
			t.Errorf("pin with manifest %s: %v", path, err)
		}
	}
	if _, err := os.Stat(good); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
	names, err := os.ReadDir(l.Data())
	if err != nil || len(names) != 1 {
		t.Errorf("expected only train in the data folder, found %v, %v", names, err)
	}

	// As DLIO's program, nothing is generated first either.
	dlio := small(t, "dataset.data_folder="+filepath.Join(t.TempDir(), "data"), "workflow.generate_data=true")
	_, err = DLIO(t.Context(), DLIOOptions{Workload: dlio, Out: filepath.Join(dlio.Workload.Dataset.DataFolder, "out")})
	if _, there := os.Stat(dlio.Workload.Dataset.DataFolder); !errors.Is(err, ErrInsideData) || !errors.Is(there, os.ErrNotExist) {
		t.Errorf("DLIO: %v, %v", err, there)
	}
	// A folder of checkpoints that nothing is written to is no matter.
	none := small(t, "workflow.checkpoint=false", "checkpoint.checkpoint_folder="+l.Data())
	if err := apartForRun(none.Workload, l.Data(), good, l.Data(), l.Manifest()); err != nil {
		t.Errorf("no checkpoints: %v", err)
	}

	turned := Layout{t.TempDir()}
	if err := os.Symlink("..", turned.Data()); err != nil {
		t.Fatal(err)
	}
	out, err := Pipeline(t.Context(), Options{Workload: w, Dir: turned.Dir})
	if !errors.Is(err, ErrInsideData) || out.Run != "" {
		t.Errorf("the data folder leads above the pipeline's: %v", err)
	}
	if names, _ := os.ReadDir(turned.Dir); len(names) != 1 {
		t.Errorf("something was made: %v", names)
	}
}
