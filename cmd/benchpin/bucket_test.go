package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchpin/benchpin/pkg/store/s3"
)

// bucket NAME starts an object server with an empty bucket, for as long as the script runs, and sets what the environment says of it.
func bucket(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bucket NAME")
	}
	backend := s3mem.New()
	ts.Check(backend.CreateBucket(args[0]))
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	ts.Defer(srv.Close)
	ts.Setenv("AWS_ENDPOINT_URL", srv.URL)
	ts.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	ts.Setenv("AWS_SECRET_ACCESS_KEY", "something-secret")
}

// put FILE URI writes a file into a bucket: s3://BUCKET/KEY.
func put(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: put FILE s3://BUCKET/KEY")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	dir, name := filepath.Split(args[1][len(s3.Scheme):])
	st, err := s3.Open(context.Background(), s3.Scheme+dir, s3.Options{Endpoint: ts.Getenv("AWS_ENDPOINT_URL"),
		AccessKey: ts.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: ts.Getenv("AWS_SECRET_ACCESS_KEY")})
	ts.Check(err)
	defer st.Close()
	w, err := st.Create(name, int64(len(b)))
	ts.Check(err)
	_, err = w.Write(b)
	ts.Check(err)
	ts.Check(w.Commit())
}
