package sigstore

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/digitorus/timestamp"

	"github.com/benchpin/benchpin/pkg/attest"
)

const (
	// answerBytes is the largest answer that is read from a server; real ones have some kilobytes.
	answerBytes = 1 << 20
	// patience is how long one request may take.
	patience = 30 * time.Second
)

// Stamped is a signer whose signatures are timestamped by RFC 3161 authorities. It is an attest.Signer.
type Stamped struct {
	// Signer signs.
	Signer attest.Signer
	// URLs are the authorities; each is asked for a timestamp of every signature, by http or https: what it answers is signed.
	URLs []string
	// Verifier is what the timestamps must verify with, before anything is kept.
	Verifier attest.Witness
	// Client asks; nil is http.DefaultClient.
	Client *http.Client
}

// SignPayload signs, and has the signature timestamped. Authorities learn its SHA-256 and nothing else.
func (s *Stamped) SignPayload(ctx context.Context, payloadType string, payload []byte) ([]byte, error) {
	b, err := s.Signer.SignPayload(ctx, payloadType, payload)
	if err != nil {
		return nil, err
	}
	return attest.AddTimestamps(b, func(signature []byte) ([][]byte, error) {
		var all [][]byte
		for _, url := range s.URLs {
			one, err := s.stamp(ctx, url, signature)
			if err != nil {
				return nil, fmt.Errorf("timestamp authority %s: %w", url, err)
			}
			all = append(all, one)
		}
		return all, nil
	})
}

// Trust is that of the signer, with the verifier of timestamps.
func (s *Stamped) Trust() attest.Trust {
	t := s.Signer.Trust()
	t.Witness = s.Verifier
	return t
}

// Timestamp asks an authority for a timestamp of a message, which must verify by v, and returns its answer. The authority learns the SHA-256 of the
// message and nothing else. A nil client is http.DefaultClient.
func Timestamp(ctx context.Context, url string, message []byte, v attest.Witness, client *http.Client) ([]byte, error) {
	answer, err := (&Stamped{Client: client}).stamp(ctx, url, message)
	if err == nil {
		_, err = v.Timestamped(answer, message)
	}
	if err != nil {
		return nil, fmt.Errorf("timestamp authority %s: %w", url, err)
	}
	return answer, nil
}

// stamp asks one authority. That the answer is signed by whom it should is the Verifier's to say; here is only seen that it answers this
// request, so that an old answer is no use to whoever sits in between.
func (s *Stamped) stamp(ctx context.Context, url string, signature []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(signature)
	ask, err := (&timestamp.Request{HashAlgorithm: crypto.SHA256, HashedMessage: digest[:], Certificates: true, Nonce: nonce}).Marshal()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(ask))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/timestamp-query")
	req.Header.Set("Accept", "application/timestamp-reply")
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return nil, fmt.Errorf("expected a timestamp, found status %s", resp.Status)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(answer) > answerBytes:
		return nil, fmt.Errorf("its answer has more than %d bytes", answerBytes)
	}
	t, err := timestamp.ParseResponse(answer)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "asn1:"):
		return nil, fmt.Errorf("its answer of %d bytes is no timestamp: expected a response as in RFC 3161", len(answer))
	case err != nil:
		return nil, fmt.Errorf("its answer is no timestamp: %w", err)
	case t.Nonce == nil || t.Nonce.Cmp(nonce) != 0, t.HashAlgorithm != crypto.SHA256, !bytes.Equal(t.HashedMessage, digest[:]):
		return nil, errors.New("its answer is the timestamp of another request")
	}
	return answer, nil
}
