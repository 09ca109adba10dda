package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// newRegistry starts a registry with the Referrers API in this process and returns its address without a scheme.
func newRegistry(atEnd func(func())) string {
	r := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	srv := httptest.NewServer(r)
	atEnd(func() {
		srv.Close()
		r.Close()
	})
	return strings.TrimPrefix(srv.URL, "http://")
}

// registry starts a registry for as long as the script runs, and sets REGISTRY to its address.
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: registry")
	}
	ts.Setenv("REGISTRY", newRegistry(func(end func()) { ts.Defer(end) }))
}

// bundles writes the attestations of an archive to files: bundles ARCHIVE NAME makes NAME.0, NAME.1 ...
func extractBundles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bundles ARCHIVE NAME")
	}
	ts.Check(writeBundles(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

func writeBundles(dir, name string) error {
	l, err := oci.Read(context.Background(), dir)
	if err != nil {
		return err
	}
	defer l.Close()
	for i, b := range l.Bundles {
		raw, err := b.Blob.Bytes(oci.MaxBundleBytes)
		if err != nil {
			return err
		}
		if err := os.WriteFile(fmt.Sprintf("%s.%d", name, i), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}
