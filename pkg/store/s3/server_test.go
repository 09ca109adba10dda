package s3

import (
	"bytes"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3/s3test"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// TestContractOfRealServer runs the suite that every store passes against a server that people run, and that checks signatures.
func TestContractOfRealServer(t *testing.T) {
	endpoint := s3test.Versity(t, "data")
	n := 0
	storetest.Run(t, func(t *testing.T) store.Store {
		n++
		return bucket(t, endpoint, "s3://data/"+string(rune('a'+n)), func(o *Options) { o.Ranged = n%2 == 0 })
	}, storetest.Flat, storetest.Loses)
}

// TestAbandonOfRealServer gives up what was left there.
func TestAbandonOfRealServer(t *testing.T) { abandon(t, s3test.Versity(t, "data")) }

// TestLostAnswersOfRealServer finds an upload complete although the answer that said so was lost.
func TestLostAnswersOfRealServer(t *testing.T) {
	lostAnswers(t, s3test.Versity(t, "data"), true, false)
}

// TestWrongCredentials wants a refusal that says what to look at.
func TestWrongCredentials(t *testing.T) {
	b := bucket(t, s3test.Versity(t, "data"), "s3://data", func(o *Options) { o.SecretKey = "another" })
	_, err := b.Stat("f")
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("AWS_SECRET_ACCESS_KEY")) {
		t.Errorf("stat: %v", err)
	}
}
