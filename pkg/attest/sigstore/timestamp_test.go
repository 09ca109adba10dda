package sigstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

// Each authority is asked once for each signature, and its answers stand in the order in which they were named.
func TestStamped(t *testing.T) {
	one, two := sigstoretest.NewTimestamps(t), sigstoretest.NewTimestamps(t)
	k := newKey(t)
	v, err := sigstore.NewVerifier(sigstore.Options{TimestampRoots: append(one.PEM(), two.PEM()...)})
	must(t, err)
	s := &sigstore.Stamped{Signer: k, URLs: []string{two.URL, one.URL}, Verifier: v}
	raw, err := s.SignPayload(context.Background(), kind, []byte(payload))
	must(t, err)
	public := k.Public()
	got, err := v.Examine(raw, &public)
	if err != nil || len(got.Times) != 2 || one.Asked() != 1 || two.Asked() != 1 {
		t.Errorf("%+v, %v, %d and %d requests", got, err, one.Asked(), two.Asked())
	}
	if trust := s.Trust(); trust.Witness != attest.Witness(v) || len(trust.Keys) != 1 || trust.Keys[0].Hint() != k.Public().Hint() {
		t.Errorf("it is verified by %+v", trust)
	}
	var b struct {
		VerificationMaterial struct {
			Data struct {
				All []any `json:"rfc3161Timestamps"`
			} `json:"timestampVerificationData"`
		} `json:"verificationMaterial"`
	}
	must(t, json.Unmarshal(raw, &b))
	if len(b.VerificationMaterial.Data.All) != 2 {
		t.Errorf("the bundle has %d timestamps", len(b.VerificationMaterial.Data.All))
	}
	// A root that is there twice is one authority all the same, and its timestamp counts once.
	if again, err := sigstore.NewVerifier(sigstore.Options{TimestampRoots: append(append(one.PEM(), two.PEM()...), append(one.PEM(), two.PEM()...)...)}); err != nil {
		t.Error(err)
	} else if got, err := again.Examine(raw, &public); err != nil || len(got.Times) != 2 {
		t.Errorf("roots twice: %+v, %v", got, err)
	}
	// One that fails fails all.
	two.Answer = func([]byte) []byte { return nil }
	if _, err := s.SignPayload(context.Background(), kind, []byte(payload)); err == nil || !strings.Contains(err.Error(), two.URL) {
		t.Errorf("expected an error that names the authority, found %v", err)
	}
}

// What is no answer to this request is refused: an authority, or somebody in between, that stalls, lies or says no.
func TestTimestampRefused(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	v := rootsOf(t, tsa)
	ask := func(ctx context.Context, url string) error {
		_, err := sigstore.Timestamp(ctx, url, []byte("message"), v, nil)
		return err
	}
	must(t, ask(context.Background(), tsa.URL))
	var old, large []byte
	tsa.Answer = func(reply []byte) []byte { old = reply; return reply }
	must(t, ask(context.Background(), tsa.URL))
	for name, c := range map[string]struct {
		answer func([]byte) []byte
		says   string
	}{
		"an old answer":          {func([]byte) []byte { return old }, "another request"},
		"nothing":                {func([]byte) []byte { return nil }, "no timestamp"},
		"noise":                  {func([]byte) []byte { return []byte("<html>") }, "its answer of 6 bytes is no timestamp: expected a response as in RFC 3161"},
		"at the limit":           {func([]byte) []byte { large = make([]byte, 1<<20); return large }, "no timestamp"},
		"one above the limit":    {func([]byte) []byte { return make([]byte, 1<<20+1) }, "more than 1048576 bytes"},
		"an answer cut short":    {func(r []byte) []byte { return r[:len(r)/2] }, "no timestamp"},
		"its signature is wrong": {func(r []byte) []byte { r[len(r)-1] ^= 1; return r }, "timestamp"},
	} {
		tsa.Answer = c.answer
		if err := ask(context.Background(), tsa.URL); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), tsa.URL) {
			t.Errorf("%s: expected %q, found %v", name, c.says, err)
		}
	}
	for status, says := range map[int]string{http.StatusServiceUnavailable: "503", http.StatusNotFound: "404", http.StatusNoContent: "204", http.StatusUnauthorized: "401"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if err := ask(context.Background(), server.URL); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
		if err := ask(context.Background(), server.URL); err == nil {
			t.Error("nobody there, and a timestamp")
		}
	}
	// One that stalls ends with the context.
	release := make(chan struct{})
	stalled := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer stalled.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := ask(ctx, stalled.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that stalls: %v", err)
	}
}

// What an authority learns is a digest: neither what is signed nor who signs.
func TestTimestampTellsADigest(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1<<12)
		n, _ := r.Body.Read(body)
		seen = append(seen, string(body[:n]), r.URL.String())
		for name, all := range r.Header {
			seen = append(seen, name, strings.Join(all, " "))
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	const secret = "a message that stays here"
	if _, err := sigstore.Timestamp(context.Background(), server.URL, []byte(secret), rootsOf(t, sigstoretest.NewTimestamps(t)), nil); err == nil {
		t.Fatal("a timestamp by nobody")
	}
	if all := strings.Join(seen, "\n"); all == "" || strings.Contains(all, "message") || strings.Contains(all, "benchpin") {
		t.Errorf("it was told %q", all)
	}
}
