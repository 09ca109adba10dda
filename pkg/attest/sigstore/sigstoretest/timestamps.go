// Package sigstoretest runs, in the process of a test, the third parties that package sigstore asks. It is for tests alone: its keys live
// as long as the test, and it certifies whatever it is asked to.
package sigstoretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// Timestamps is a timestamp authority.
type Timestamps struct {
	// URL is where it answers.
	URL string
	// Root, Intermediate and Leaf are its certificates.
	Root, Intermediate, Leaf *x509.Certificate
	// Clock is what it says the time is; nil is the time. Answer, if not nil, replaces what it answers.
	Clock  func() time.Time
	Answer func(reply []byte) []byte

	key   *ecdsa.PrivateKey
	asked atomic.Int64
}

// NewTimestamps starts an authority that ends with the test.
func NewTimestamps(t testing.TB) *Timestamps {
	t.Helper()
	a := &Timestamps{}
	root, rootKey, err := ca.GenerateRootCa()
	must(t, err)
	intermediate, intermediateKey, err := ca.GenerateTSAIntermediate(root, rootKey)
	must(t, err)
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a.Root, a.Intermediate = root, intermediate
	a.Leaf, err = ca.GenerateTSALeafCert(time.Now().Add(-time.Minute), a.key, intermediate, intermediateKey)
	must(t, err)
	server := httptest.NewServer(http.HandlerFunc(a.answer))
	t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

// PEM are the certificates of those who certify it.
func (a *Timestamps) PEM() []byte { return certificates(a.Root, a.Intermediate) }

// Asked is how many timestamps it was asked for.
func (a *Timestamps) Asked() int { return int(a.asked.Load()) }

func (a *Timestamps) answer(w http.ResponseWriter, r *http.Request) {
	a.asked.Add(1)
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ask, err := timestamp.ParseRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := time.Now()
	if a.Clock != nil {
		now = a.Clock()
	}
	reply, err := (&timestamp.Timestamp{HashAlgorithm: ask.HashAlgorithm, HashedMessage: ask.HashedMessage, Time: now, Nonce: ask.Nonce,
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, AddTSACertificate: ask.Certificates}).CreateResponseWithOpts(a.Leaf, a.key, ask.HashAlgorithm)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if a.Answer != nil {
		reply = a.Answer(reply)
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	_, _ = w.Write(reply)
}

func certificates(all ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range all {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
