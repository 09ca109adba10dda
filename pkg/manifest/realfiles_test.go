package manifest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
)

// TestHundredThousandFiles pins and verifies as many real files as the made-up entries of BenchmarkScale begin with, and finds the one that
// is changed, the one that is gone and the one that came.
func TestHundredThousandFiles(t *testing.T) {
	const n = 100_000
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	name := func(i int) string {
		return filepath.Join(data, fmt.Sprintf("%03d", i/1000), fmt.Sprintf("file_%06d.bin", i))
	}
	for i := range n {
		if i%1000 == 0 {
			if err := os.MkdirAll(filepath.Dir(name(i)), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name(i), fmt.Appendf(nil, "%d", i), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	st, err := store.NewFolder(data, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	start := time.Now()
	took := func(what string) {
		t.Logf("%s: %d files in %.1f s", what, n, time.Since(start).Seconds())
		start = time.Now()
	}
	path := filepath.Join(dir, "m.json")
	f, err := Create(path, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	if err := Build(context.Background(), st, f, BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	if h, err := f.Commit(); err != nil || h.Count != int64(n) {
		t.Fatalf("%d files, %v", h.Count, err)
	}
	took("pin")
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if r, err := Verify(context.Background(), m, st, VerifyOptions{}); err != nil || r.Files != int64(n) {
		t.Fatalf("%+v, %v", r, err)
	}
	took("verify")
	if r, err := Verify(context.Background(), m, st, VerifyOptions{MetadataOnly: true}); err != nil || r.Skipped != int64(n) {
		t.Fatalf("%+v, %v", r, err)
	}
	took("verify, metadata only")
	for what, err := range map[string]error{
		"changed": os.WriteFile(name(n/2), []byte("xxxx"), 0o666), "removed": os.Remove(name(n / 3)), "added": os.WriteFile(name(n/4)+".new", nil, 0o666),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	r, err := Verify(context.Background(), m, st, VerifyOptions{})
	var mm *MismatchError
	if !errors.As(err, &mm) || len(r.Mismatches) != 3 || r.Mismatches[0].Kind != Extra || r.Mismatches[1].Kind != Missing || r.Mismatches[2].Kind != Changed {
		t.Errorf("%+v, %v", r, err)
	}
}
