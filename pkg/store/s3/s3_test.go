package s3

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// inMemory is a server that keeps objects in the memory of the test.
func inMemory(t *testing.T) (endpoint string) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("data"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	return srv.URL
}

func bucket(t *testing.T, endpoint, uri string, change func(*Options)) *Bucket {
	t.Helper()
	o := Options{Endpoint: endpoint, AccessKey: "key", SecretKey: "secret-secret", PartSize: MinPart}
	if change != nil {
		change(&o)
	}
	b, err := Open(context.Background(), uri, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestContractInMemory(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"whole": nil, "ranged": func(o *Options) { o.Ranged = true },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return bucket(t, inMemory(t), "s3://data/some/prefix", change) },
				storetest.Flat, storetest.Loses)
		})
	}
}
