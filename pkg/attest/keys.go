package attest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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
	// ECDSAP384 is ECDSA over P-384 with SHA-384.
	ECDSAP384 KeyKind = "ecdsa-p384"
	// Ed25519 is pure Ed25519.
	Ed25519 KeyKind = "ed25519"
	// RSA is RSA of 2048, 3072 or 4096 bits with SHA-256, by PKCS #1 v1.5 or PSS. It is verified with, and never signed with.
	RSA KeyKind = "rsa"
)

// SigningKinds are the kinds that keys are made of and signed with.
func SigningKinds() []KeyKind { return []KeyKind{ECDSAP256, ECDSAP384, Ed25519} }

// Errors about keys, for errors.Is.
var (
	// ErrNoKey: a verification was asked for without a public key to verify with. It is an error of usage, not a failed check.
	ErrNoKey = errors.New("no public key was given")
	// ErrKeyKind: a key of a kind that is not signed or verified with here.
	ErrKeyKind = errors.New("unsupported kind of key")
)

// PrivateKey signs statements. The secret is in memory, or with a program that signs (LoadSigner).
type PrivateKey struct {
	signer signature.Signer
	secret crypto.Signer // nil where a program keeps it
	public PublicKey
}

// GenerateKey returns a new random key of one of the SigningKinds.
func GenerateKey(kind KeyKind) (*PrivateKey, error) {
	var secret any
	var err error
	switch kind {
	case ECDSAP256:
		secret, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ECDSAP384:
		secret, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case Ed25519:
		_, secret, err = ed25519.GenerateKey(rand.Reader)
	default:
		return nil, fmt.Errorf("generate key: %w: %q; use one of %v", ErrKeyKind, kind, SigningKinds())
	}
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return newPrivateKey(secret)
}

func newPrivateKey(secret any) (*PrivateKey, error) {
	s, ok := secret.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: %T; use one of %v", ErrKeyKind, secret, SigningKinds())
	}
	k := &PrivateKey{secret: s}
	var err error
	if k.public, err = NewPublicKey(s.Public()); err != nil {
		return nil, err
	}
	switch s := secret.(type) {
	case *ecdsa.PrivateKey:
		k.signer, err = signature.LoadECDSASigner(s, k.public.hash())
	case ed25519.PrivateKey:
		k.signer, err = signature.LoadED25519Signer(s)
	default:
		return nil, fmt.Errorf("%w: %s is verified with and not signed with; use one of %v", ErrKeyKind, k.public.kind, SigningKinds())
	}
	if err != nil {
		return nil, fmt.Errorf("load private key: %w", err)
	}
	return k, nil
}

// Public returns the public half.
func (k *PrivateKey) Public() PublicKey { return k.public }

// sign returns the signature of a message: ASN.1 DER for ECDSA, 64 bytes for Ed25519. A program that keeps the key is run for it.
func (k *PrivateKey) sign(message []byte) ([]byte, error) {
	sig, err := k.signer.SignMessage(bytes.NewReader(message))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return sig, nil
}

// PublicKey verifies statements.
type PublicKey struct {
	key  crypto.PublicKey
	der  []byte
	kind KeyKind
	// verifiers are the schemes of the key's kind: one, or for RSA two, whose signatures cannot be taken for each other.
	verifiers []signature.Verifier
	limited   bool
	from      time.Time
	until     time.Time
}

// NewPublicKey takes a *ecdsa.PublicKey over P-256 or P-384, an ed25519.PublicKey, or a *rsa.PublicKey of 2048, 3072 or 4096 bits.
func NewPublicKey(key crypto.PublicKey) (PublicKey, error) {
	p := PublicKey{key: key}
	var err error
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			p.kind = ECDSAP256
		case elliptic.P384():
			p.kind = ECDSAP384
		default:
			return PublicKey{}, fmt.Errorf("%w: ECDSA over %s; use P-256 or P-384", ErrKeyKind, k.Curve.Params().Name)
		}
		err = p.use(signature.LoadECDSAVerifier(k, p.hash()))
	case ed25519.PublicKey:
		p.kind = Ed25519
		err = p.use(signature.LoadED25519Verifier(k))
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); (bits != 2048 && bits != 3072 && bits != 4096) || k.E != 65537 {
			return PublicKey{}, fmt.Errorf("%w: RSA of %d bits, exponent %d; expected 2048, 3072 or 4096 bits and 65537", ErrKeyKind, bits, k.E)
		}
		p.kind = RSA
		err = errors.Join(p.use(signature.LoadRSAPKCS1v15Verifier(k, p.hash())), p.use(signature.LoadRSAPSSVerifier(k, p.hash(), nil)))
	default:
		return PublicKey{}, fmt.Errorf("%w: %T; use ECDSA over P-256 or P-384, Ed25519 or RSA", ErrKeyKind, key)
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

// use adds a scheme.
func (p *PublicKey) use(v signature.Verifier, err error) error {
	p.verifiers = append(p.verifiers, v)
	return err
}

// hash is the hash function that goes with the kind, as Sigstore pairs them. Ed25519 has its own.
func (p PublicKey) hash() crypto.Hash {
	if p.kind == ECDSAP384 {
		return crypto.SHA384
	}
	return crypto.SHA256
}

// Kind returns the kind of the key.
func (p PublicKey) Kind() KeyKind { return p.kind }

// Crypto returns the key as the standard library has it.
func (p PublicKey) Crypto() crypto.PublicKey { return p.key }

// Hint is how a bundle names the key that signed it: base64 of the SHA-256 of the key's DER form. It is no secret and proves nothing.
func (p PublicKey) Hint() string {
	sum := sha256.Sum256(p.der)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// WithValidity returns the same key, limited to signatures made in a span of time; a zero time is no bound. Where nothing in a
// bundle proves when it was signed, verification with such a key fails, rather than leaving the span out of account.
func (p PublicKey) WithValidity(from, until time.Time) PublicKey {
	p.from, p.until, p.limited = from, until, !from.IsZero() || !until.IsZero()
	return p
}

// verify reports whether sig is a signature of message by this key. One ECDSA signature has one accepted form, DER (sigstore's verifier
// also takes the raw pair of numbers).
func (p PublicKey) verify(message, sig []byte) error {
	if p.kind == ECDSAP256 || p.kind == ECDSAP384 {
		var pair struct{ R, S *big.Int }
		if rest, err := asn1.Unmarshal(sig, &pair); err != nil || len(rest) > 0 {
			return errors.New("the signature is not in ASN.1 DER form")
		}
	}
	err := ErrNoKey
	for _, v := range p.verifiers {
		if err = v.VerifySignature(bytes.NewReader(sig), bytes.NewReader(message)); err == nil {
			return nil
		}
	}
	return err
}
