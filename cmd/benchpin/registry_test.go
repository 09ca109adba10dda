package main

import (
	"net/http/httptest"
	"strings"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/rogpeppe/go-internal/testscript"
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
