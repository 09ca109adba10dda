package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// TestKept: what a plan says is kept of files is what a run has of them in memory, whether a recipe says paths and sizes or not.
func TestKept(t *testing.T) {
	const n = 60_000
	for _, c := range []struct {
		name, dataset, verify string
		generated             bool
	}{
		{"sizes by the recipe", "format: npz, record_length_bytes: 1024", "before", true},
		{"companions", "format: indexed_binary, record_length_bytes: 400", "after", true},
		{"nobody generated them", "format: npy", "inline", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf("framework: pytorch\ndataset: {%s, num_files_train: %d}\nreader: {data_loader: pytorch, batch_size: 1}\nbenchpin: {verify: %s}\n",
				c.dataset, n, c.verify)
			resolved, err := workload.Load(workload.Source{Name: "many.yaml", Data: []byte(text)}, workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := resolved.Workload
			r, err := datagen.FromWorkload(w)
			if err != nil {
				t.Fatal(err)
			}
			meta := manifest.Meta{}
			if c.generated {
				meta = manifest.Meta{Recipe: r.JSON(), Layout: r.Layout()}
			}
			path := filepath.Join(t.TempDir(), "m.json")
			f, err := manifest.Create(path, meta)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Abort()
			for _, s := range r.Sorted() {
				if err := f.Add(manifest.Entry{Path: s.Path, Size: s.Size}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.Commit(); err != nil {
				t.Fatal(err)
			}
			m, err := manifest.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			d, err := openFiles(context.Background(), m, w)
			if err != nil {
				t.Fatal(err)
			}
			known := make([]store.Info, len(d.byEntry))
			var again []store.Info
			if c.verify == workload.VerifyAfter {
				again = make([]store.Info, len(d.byEntry))
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			held, want := float64(after.HeapAlloc)-float64(before.HeapAlloc), float64(keptOf(w, len(d.byEntry), d.named()))
			t.Logf("%.1f bytes a file, %.1f by the plan", held/n, want/n)
			// Slices that grew have room to spare.
			if held < 0.9*want || held > 1.25*want+1<<20 {
				t.Errorf("%.0f bytes are held, and the plan says %.0f", held, want)
			}
			runtime.KeepAlive(d)
			runtime.KeepAlive(known)
			runtime.KeepAlive(again)
		})
	}
}
