package sigstoretest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-openapi/runtime"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
)

// entryID is the name of the one entry of the log.
const entryID = "0000000000000000000000000000000000000000000000000000000000000000"

// Sigstore is a certificate authority like Fulcio, a log like Rekor v1, and a timestamp authority.
type Sigstore struct {
	// Fulcio and Rekor are where they answer.
	Fulcio, Rekor string
	Timestamps    *Timestamps
	// Tiles, where it is not nil, is the log that the trusted root has in the place of that at Rekor.
	Tiles *Tiles
	// Shift moves the span in which certificates are valid.
	Shift time.Duration
	// Silent makes both answer with nothing that was asked for.
	Silent bool

	root, intermediate *x509.Certificate
	key                *ecdsa.PrivateKey
	log                *ca.VirtualSigstore
	asked              atomic.Int64
}

// New starts all three; they end with the test.
func New(t testing.TB) *Sigstore {
	t.Helper()
	s := &Sigstore{Timestamps: NewTimestamps(t)}
	var rootKey *ecdsa.PrivateKey
	var err error
	s.root, rootKey, err = ca.GenerateRootCa()
	must(t, err)
	s.intermediate, s.key, err = ca.GenerateFulcioIntermediate(s.root, rootKey)
	must(t, err)
	s.log, err = ca.NewVirtualSigstore()
	must(t, err)
	for path, handle := range map[*string]func(*http.Request) (any, error){&s.Fulcio: s.certify, &s.Rekor: s.enter} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.asked.Add(1)
			answer, err := handle(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if s.Silent {
				answer = map[string]any{}
			}
			if r.URL.Path == "/api/v1/log/entries" {
				w.Header().Set("ETag", entryID)
				w.WriteHeader(http.StatusCreated)
			}
			_ = json.NewEncoder(w).Encode(answer)
		}))
		t.Cleanup(server.Close)
		*path = server.URL
	}
	return s
}

// Asked is how many requests the authority and the log got.
func (s *Sigstore) Asked() int { return int(s.asked.Load()) }

// TrustedRoot is its trusted_root.json; logs false leaves the log out, and so does not demand it.
func (s *Sigstore) TrustedRoot(t testing.TB, logs bool) []byte {
	t.Helper()
	since, until := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	all := map[string]*root.TransparencyLog{}
	if logs && s.Tiles != nil {
		all[hex.EncodeToString(s.Tiles.id)] = s.Tiles.trusted()
	} else if logs {
		for id, l := range s.log.RekorLogs() {
			raw, err := hex.DecodeString(id)
			must(t, err)
			l.ID = raw
			all[id] = l
		}
	}
	tr, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{Root: s.root, Intermediates: []*x509.Certificate{s.intermediate},
			ValidityPeriodStart: since, ValidityPeriodEnd: until, URI: "https://fulcio.example"}}, nil,
		[]root.TimestampingAuthority{&root.SigstoreTimestampingAuthority{Root: s.Timestamps.Root, Intermediates: []*x509.Certificate{s.Timestamps.Intermediate},
			Leaf: s.Timestamps.Leaf, ValidityPeriodStart: since, ValidityPeriodEnd: until, URI: "https://tsa.example"}}, all)
	must(t, err)
	out, err := tr.MarshalJSON()
	must(t, err)
	return out
}

// Token is an OpenID Connect token, which nobody signed and the authority believes.
func Token(email, issuer string) string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	return part(map[string]string{"alg": "none"}) + "." + part(map[string]any{"sub": email, "email": email, "email_verified": true, "iss": issuer}) + ".x"
}

// certify answers as Fulcio does.
func (s *Sigstore) certify(r *http.Request) (any, error) {
	var ask struct {
		Request struct {
			Key struct {
				Content string `json:"content"`
			} `json:"publicKey"`
			Proof []byte `json:"proofOfPossession"`
		} `json:"publicKeyRequest"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		return nil, err
	}
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return nil, errors.New("no token")
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	var who struct{ Email, Iss string }
	if err := json.Unmarshal(claims, &who); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(ask.Request.Key.Content))
	if block == nil {
		return nil, errors.New("no key")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(who.Email))
	if public, ok := key.(*ecdsa.PublicKey); !ok || !ecdsa.VerifyASN1(public, digest[:], ask.Request.Proof) {
		return nil, errors.New("no proof of possession")
	}
	leaf, err := ca.GenerateLeafCert(who.Email, who.Iss, time.Now().Add(s.Shift), publicOnly{key}, s.intermediate, s.key)
	if err != nil {
		return nil, err
	}
	chain := map[string]any{"chain": map[string]any{"certificates": []string{string(certificates(leaf)), string(certificates(s.intermediate)), string(certificates(s.root))}}}
	return map[string]any{"signedCertificateEmbeddedSct": chain}, nil
}

// publicOnly stands for a key pair whose secret another has.
type publicOnly struct{ key crypto.PublicKey }

// Public returns the public half.
func (p publicOnly) Public() crypto.PublicKey { return p.key }

// Sign signs nothing.
func (p publicOnly) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("no secret")
}

// enter answers as Rekor does, for the only entry of a new log.
func (s *Sigstore) enter(r *http.Request) (any, error) {
	proposed, err := models.UnmarshalProposedEntry(r.Body, runtime.JSONConsumer())
	if err != nil {
		return nil, err
	}
	entry, err := types.CreateVersionedEntry(proposed)
	if err != nil {
		return nil, err
	}
	body, err := types.CanonicalizeEntry(r.Context(), entry)
	if err != nil {
		return nil, err
	}
	id, err := s.log.RekorLogID()
	if err != nil {
		return nil, err
	}
	text, at, index := base64.StdEncoding.EncodeToString(body), time.Now().Unix(), int64(0)
	promise, err := s.log.RekorSignPayload(tlog.RekorPayload{Body: text, IntegratedTime: at, LogIndex: index, LogID: id})
	if err != nil {
		return nil, err
	}
	proof, err := s.log.GetInclusionProof(body)
	if err != nil {
		return nil, err
	}
	return map[string]any{entryID: map[string]any{"body": text, "integratedTime": at, "logID": id, "logIndex": index,
		"verification": map[string]any{"signedEntryTimestamp": promise, "inclusionProof": proof}}}, nil
}
