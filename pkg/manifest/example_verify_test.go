package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// Pin a folder, change a file, and learn which.
func ExampleVerify() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data, err := store.NewFolder(filepath.Join(dir, "data"), store.FolderOptions{Uncached: true})
	if err != nil {
		log.Fatal(err)
	}
	put := func(name, content string) {
		w, err := data.Create(name, int64(len(content)))
		if err != nil {
			log.Fatal(err)
		}
		defer w.Abort()
		if _, err := w.Write([]byte(content)); err != nil {
			log.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			log.Fatal(err)
		}
	}
	put("train/a.npy", "first")
	put("train/b.npy", "second")

	ctx := context.Background()
	out, err := manifest.Create(filepath.Join(dir, "manifest.json"), manifest.Meta{})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Abort()
	if err := manifest.Build(ctx, data, out, manifest.BuildOptions{}); err != nil {
		log.Fatal(err)
	}
	header, err := out.Commit()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(header.Count, "files,", header.Bytes, "bytes")

	put("train/b.npy", "altered")
	m, err := manifest.Open(filepath.Join(dir, "manifest.json"))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	_, err = manifest.Verify(ctx, m, data, manifest.VerifyOptions{})
	var mismatch *manifest.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Println(mismatch.Path, "is", mismatch.Kind)
	}
	// Output:
	// 2 files, 11 bytes
	// train/b.npy is changed
}
