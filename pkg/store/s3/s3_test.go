package s3

import (
	"context"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3/s3test"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// inMemory is a server that keeps objects in the memory of the test.
func inMemory(t *testing.T) (endpoint string) { return s3test.InMemory(t, "data") }

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
		"whole": nil, "ranged": func(o *Options) { o.Ranged = true }, "ahead": fetchingAhead,
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return bucket(t, inMemory(t), "s3://data/some/prefix", change) },
				storetest.Flat, storetest.Loses)
		})
	}
}
