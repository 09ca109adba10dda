package oci_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// Pack two layers, attach a bundle, change one file, and read what is wrong.
func ExampleRead() {
	parent, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent)
	ctx, dir := context.Background(), filepath.Join(parent, "archive")
	archive, err := oci.Pack(ctx, dir, []oci.Source{
		oci.FromBytes("a.txt", "text/plain", []byte("first")),
		oci.FromBytes("b.txt", "text/plain", []byte("second")),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(archive.SHA256Digest())
	if err := oci.Attach(ctx, dir, "https://example.com/v1", []byte(`{"a":"bundle"}`)); err != nil {
		fmt.Println(err)
		return
	}
	layout, err := oci.Read(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(layout.Layers), "layers,", len(layout.Bundles), "bundle,", len(layout.Faults), "faults")
	first := filepath.Join(dir, "blobs", "sha256", layout.Layer("a.txt").Blob.Hex())
	if err := layout.Close(); err != nil {
		fmt.Println(err)
		return
	}

	if err := os.WriteFile(first, []byte("forged"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	layout, err = oci.Read(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer layout.Close()
	for _, f := range layout.Faults {
		fmt.Println(f.Class, "in", f.Part[:len("a.txt")])
	}
	// Output:
	// sha256:5725ec8679eb34cc1f6e82aa4977c60e6e0159ba10412c01f362a75a8153a036
	// 2 layers, 1 bundle, 0 faults
	// digest-mismatch in a.txt
}
