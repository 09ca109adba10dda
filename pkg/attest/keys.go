package attest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
)

// KeyKind is a signature scheme.
type KeyKind string

// The kinds of key. Every other kind is refused.
const (
	// ECDSAP256 is ECDSA over P-256 with SHA-256, the default: every tool of the field takes it.
	ECDSAP256 KeyKind = "ecdsa-p256"
	// Ed25519 is pure Ed25519.
	Ed25519 KeyKind = "ed25519"
)

// Errors about keys, for errors.Is.
var (
	// ErrNoKey: a verification was asked for without a public key to verify with. It is an error of usage, not a failed check.
	ErrNoKey = errors.New("no public key was given")
	// ErrKeyKind: a key of a kind that is not signed or verified with here.
	ErrKeyKind = errors.New("unsupported kind of key")
)

// PrivateKey signs statements.
type PrivateKey struct {
	signer signature.Signer
	secret crypto.Signer
	public PublicKey
}

// GenerateKey returns a new random key.
func GenerateKey(kind KeyKind) (*PrivateKey, error) {
	switch kind {
	case ECDSAP256:
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("generate key: %w", err)
		}
		return newPrivateKey(k)
	case Ed25519:
		_, k, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("generate key: %w", err)
		}
		return newPrivateKey(k)
	}
	return nil, fmt.Errorf("generate key: %w: %q; use %s or %s", ErrKeyKind, kind, ECDSAP256, Ed25519)
}

func newPrivateKey(secret any) (*PrivateKey, error) {
	k := &PrivateKey{}
	var err error
	switch s := secret.(type) {
	case *ecdsa.PrivateKey:
		if s.Curve != elliptic.P256() {
			return nil, fmt.Errorf("%w: ECDSA over %s; use a P-256 or Ed25519 key", ErrKeyKind, s.Curve.Params().Name)
		}
		k.secret = s
		k.signer, err = signature.LoadECDSASigner(s, crypto.SHA256)
	case ed25519.PrivateKey:
		k.secret = s
		k.signer, err = signature.LoadED25519Signer(s)
	default:
		return nil, fmt.Errorf("%w: %T; use a P-256 or Ed25519 key", ErrKeyKind, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("load private key: %w", err)
	}
	k.public, err = NewPublicKey(k.secret.Public())
	return k, err
}

// Public returns the public half.
func (k *PrivateKey) Public() PublicKey { return k.public }

// sign returns the signature of a message: ASN.1 DER for ECDSA, 64 bytes for Ed25519.
func (k *PrivateKey) sign(message []byte) ([]byte, error) {
	sig, err := k.signer.SignMessage(bytes.NewReader(message))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return sig, nil
}

// PublicKey verifies statements.
type PublicKey struct {
	key      crypto.PublicKey
	der      []byte
	kind     KeyKind
	verifier signature.Verifier
	limited  bool
}

// NewPublicKey takes a *ecdsa.PublicKey over P-256 or an ed25519.PublicKey.
func NewPublicKey(key crypto.PublicKey) (PublicKey, error) {
	p := PublicKey{key: key}
	var err error
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return PublicKey{}, fmt.Errorf("%w: ECDSA over %s; use a P-256 or Ed25519 key", ErrKeyKind, k.Curve.Params().Name)
		}
		p.kind = ECDSAP256
		p.verifier, err = signature.LoadECDSAVerifier(k, crypto.SHA256)
	case ed25519.PublicKey:
		p.kind = Ed25519
		p.verifier, err = signature.LoadED25519Verifier(k)
	default:
		return PublicKey{}, fmt.Errorf("%w: %T; use a P-256 or Ed25519 key", ErrKeyKind, key)
	}
	if err != nil {
		return PublicKey{}, fmt.Errorf("load public key: %w", err)
	}
	p.der, err = x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("load public key: %w", err)
	}
	return p, nil
}

// Kind returns the kind of the key.
func (p PublicKey) Kind() KeyKind { return p.kind }

// Hint is how a bundle names the key that signed it: base64 of the SHA-256 of the key's DER form. It is no secret and proves nothing.
func (p PublicKey) Hint() string {
	sum := sha256.Sum256(p.der)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// WithValidity returns the same key, limited to signatures made in a span of time. A signature by a bare key carries no trusted
// time, so that verification with such a key fails, rather than leaving the span out of account.
func (p PublicKey) WithValidity(from, until time.Time) PublicKey {
	p.limited = !from.IsZero() || !until.IsZero()
	return p
}

// verify reports whether sig is a signature of message by this key. One signature has one accepted form: DER for ECDSA (sigstore's
// verifier also takes the raw pair of numbers), 64 bytes for Ed25519.
func (p PublicKey) verify(message, sig []byte) error {
	if p.kind == ECDSAP256 {
		var pair struct{ R, S *big.Int }
		if rest, err := asn1.Unmarshal(sig, &pair); err != nil || len(rest) > 0 {
			return errors.New("the signature is not in ASN.1 DER form")
		}
	}
	return p.verifier.VerifySignature(bytes.NewReader(sig), bytes.NewReader(message))
}
