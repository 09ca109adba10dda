package sigstoretest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	rekortiles "github.com/sigstore/rekor-tiles/v2/pkg/generated/protobuf"
	tilesnote "github.com/sigstore/rekor-tiles/v2/pkg/note"
	"github.com/sigstore/rekor-tiles/v2/pkg/types/hashedrekord"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/signature"
	"golang.org/x/mod/sumdb/note"
	"google.golang.org/protobuf/encoding/protojson"
)

// Tiles is a log like Rekor v2: entries have a proof of inclusion and no time. Every entry is the only one of a new tree.
type Tiles struct {
	// URL is where it answers.
	URL string
	// Silent makes it answer with nothing that was asked for; Answer, if not nil, may change an entry.
	Silent bool
	Answer func(*protorekor.TransparencyLogEntry)

	key    *ecdsa.PrivateKey
	signer note.Signer
	id     []byte

	mu    sync.Mutex
	asked int
}

// NewTiles starts a log that ends with the test.
func NewTiles(t testing.TB) *Tiles {
	t.Helper()
	l := &Tiles{}
	server := httptest.NewServer(http.HandlerFunc(l.answer))
	t.Cleanup(server.Close)
	l.URL = server.URL
	var err error
	l.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	u, err := url.Parse(l.URL)
	must(t, err)
	signer, err := signature.LoadSigner(l.key, crypto.SHA256)
	must(t, err)
	l.signer, err = tilesnote.NewNoteSigner(context.Background(), u.Hostname(), signer)
	must(t, err)
	_, l.id, err = tilesnote.KeyHash(u.Hostname(), l.key.Public())
	must(t, err)
	return l
}

// Asked is how many entries it was asked for.
func (l *Tiles) Asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// trusted is the log as a trusted root names it.
func (l *Tiles) trusted() *root.TransparencyLog {
	return &root.TransparencyLog{BaseURL: l.URL, ID: l.id, HashFunc: crypto.SHA256, PublicKey: l.key.Public(), SignatureHashFunc: crypto.SHA256,
		ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour)}
}

func (l *Tiles) answer(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	entry, err := l.enter(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if l.Answer != nil {
		l.Answer(entry)
	}
	out, err := protojson.Marshal(entry)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if l.Silent {
		out = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(out)
}

// enter judges an entry as rekor-tiles does, and logs it.
func (l *Tiles) enter(r *http.Request) (*protorekor.TransparencyLogEntry, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/api/v2/log/entries" {
		return nil, fmt.Errorf("%s %s: expected an entry", r.Method, r.URL.Path)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	var ask rekortiles.CreateEntryRequest
	if err := protojson.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	algorithms, err := signature.NewAlgorithmRegistryConfig([]protocommon.PublicKeyDetails{protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256})
	if err != nil {
		return nil, err
	}
	request := ask.GetHashedRekordRequestV002()
	entry, err := hashedrekord.ToLogEntry(request, algorithms)
	if err != nil {
		return nil, err
	}
	raw, err := protojson.Marshal(entry)
	if err != nil {
		return nil, err
	}
	canonical, err := jsoncanonicalizer.Transform(raw)
	if err != nil {
		return nil, err
	}
	leaf, err := hashedrekord.ToEntryHash(request.Digest, request.Signature)
	if err != nil {
		return nil, err
	}
	// A tree of one leaf has that leaf as its root.
	checkpoint, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n1\n%s\n", l.signer.Name(), base64.StdEncoding.EncodeToString(leaf))}, l.signer)
	if err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{LogIndex: 0, LogId: &protocommon.LogId{KeyId: bytes.Clone(l.id)}, KindVersion: &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.2"},
		CanonicalizedBody: canonical, InclusionProof: &protorekor.InclusionProof{LogIndex: 0, RootHash: leaf, TreeSize: 1, Checkpoint: &protorekor.Checkpoint{Envelope: string(checkpoint)}}}, nil
}
