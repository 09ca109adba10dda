package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// newRegistry starts a registry with the Referrers API in this process and returns its address without a scheme.
func newRegistry(atEnd func(func())) string { return newRegistryFor(atEnd, "", "") }

// newRegistryFor starts one that wants a user and a password, where user is not "".
func newRegistryFor(atEnd func(func()), user, password string) string {
	r := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if u, p, _ := q.BasicAuth(); user != "" && (u != user || p != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.ServeHTTP(w, q)
	}))
	atEnd(func() {
		srv.Close()
		r.Close()
	})
	return strings.TrimPrefix(srv.URL, "http://")
}

// registry starts a registry for as long as the script runs, and sets REGISTRY to its address: registry [USER PASSWORD].
func startRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || (len(args) != 0 && len(args) != 2) {
		ts.Fatalf("usage: registry [USER PASSWORD]")
	}
	args = append(args, "", "")
	ts.Setenv("REGISTRY", newRegistryFor(func(end func()) { ts.Defer(end) }, args[0], args[1]))
}

// registryConfig writes a file of credentials as docker and podman have it: config auth|wrong|helper|store REGISTRY FILE [USER PASSWORD].
func registryConfig(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: config KIND REGISTRY FILE [USER PASSWORD]")
	}
	text := map[string]string{"helper": fmt.Sprintf(`{"credHelpers":{%q:"fake"}}`, args[1]), "store": `{"credsStore":"fake"}`}[args[0]]
	if text == "" {
		text = fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, args[1], base64.StdEncoding.EncodeToString([]byte(args[3]+":"+args[4])))
	}
	file := ts.MkAbs(args[2])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, []byte(text), 0o600))
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
