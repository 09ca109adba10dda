package attest

import (
	"context"
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// payloadType is what a DSSE envelope with an in-toto statement says its payload is.
const payloadType = "application/vnd.in-toto+json"

// The Sigstore bundle v0.3, with the fields that an attestation by a bare key has. Others (certificates, log entries, timestamps)
// are checked where whoever verifies has a Witness, and refused where not.
type bundle struct {
	MediaType            string               `json:"mediaType"`
	VerificationMaterial verificationMaterial `json:"verificationMaterial"`
	Envelope             envelope             `json:"dsseEnvelope"`
}

type verificationMaterial struct {
	PublicKey publicKeyHint `json:"publicKey"`
}

type publicKeyHint struct {
	Hint string `json:"hint"`
}

type envelope struct {
	Payload     strictjson.Base64   `json:"payload"`
	PayloadType string              `json:"payloadType"`
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	Sig   strictjson.Base64 `json:"sig"`
	KeyID string            `json:"keyid,omitempty"`
}

// preAuthEncoding is what DSSE signs: type and payload, each with its length, so that neither can pass for the other.
func preAuthEncoding(payloadType string, payload []byte) []byte {
	b := []byte("DSSEv1 " + strconv.Itoa(len(payloadType)) + " " + payloadType + " " + strconv.Itoa(len(payload)) + " ")
	return append(b, payload...)
}

// SignStatement signs a statement and returns the Sigstore bundle that carries it. The bundle's form is fixed; only the signature of
// an ECDSA key differs from one call to the next. The statement must be one that VerifyBundle accepts.
func SignStatement(k *PrivateKey, s *Statement) ([]byte, error) {
	return signStatement(context.Background(), k, s)
}

func signStatement(ctx context.Context, by Signer, s *Statement) ([]byte, error) {
	payload, err := s.Encode()
	if err != nil {
		return nil, err
	}
	out, err := by.SignPayload(ctx, payloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("write bundle: %w", err)
	}
	// What is written must be readable: the same code judges both.
	trust := by.Trust()
	if _, err := verifyWitnessed(out, trust.Keys, trust.Witness); err != nil {
		return nil, fmt.Errorf("write bundle: it would not verify: %w", err)
	}
	return out, nil
}

// Verified is a bundle whose signature was checked.
type Verified struct {
	// Statement was parsed from the signed bytes, and from nothing else.
	Statement *Statement
	// Key is the key, of those given, that made the signature; empty where a certificate says who signed.
	Key PublicKey
	// Testimony is what third parties say of the signature, and was accepted.
	Testimony Testimony
}

// VerifyBundle checks the form of a Sigstore bundle and its signature by one of the keys, then parses the signed payload as a
// statement. It does not compare the statement with anything: see Statement.CheckSubjects. Without keys it returns ErrNoKey; what is
// wrong with the bundle is a *fault.Fault. It is stricter than sigstore-go; docs/attestation.md lists where.
func VerifyBundle(data []byte, keys []PublicKey) (*Verified, error) {
	if err := checkKeys(keys, nil); err != nil {
		return nil, err
	}
	b, err := parseBundle(data)
	if err != nil {
		return nil, err
	}
	key, err := b.verify(keys)
	if err != nil {
		return nil, err
	}
	s, err := ParseStatement(b.Envelope.Payload)
	if err != nil {
		return nil, inPayload(err)
	}
	return &Verified{Statement: s, Key: key}, nil
}

func checkKeys(keys []PublicKey, w Witness) error {
	if len(keys) == 0 && (w == nil || !w.Identifies()) {
		return fmt.Errorf("%w: what signed an attestation can only be known from a key that comes from elsewhere; give one with --key", ErrNoKey)
	}
	if len(keys) > limits.Keys {
		return fmt.Errorf("%d public keys were given, at most %d are taken", len(keys), limits.Keys)
	}
	for i, k := range keys {
		if len(k.verifiers) == 0 {
			return fmt.Errorf("%w: key %d is empty", ErrNoKey, i)
		}
	}
	return nil
}

// parseBundle checks everything about a bundle that can be said without a key.
func parseBundle(data []byte) (*bundle, error) {
	var b bundle
	if err := strictjson.Unmarshal(data, limits.BundleBytes, &b); err != nil {
		return nil, bundleFault(err)
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return &b, nil
}

// check is what must hold of every bundle, whoever signed it.
func (b *bundle) check() error {
	if b.MediaType != oci.BundleType {
		return fault.New(fault.BundleVersion, "mediaType", fmt.Sprintf("expected %q, found %q", oci.BundleType, shorten(b.MediaType)))
	}
	if b.Envelope.PayloadType != payloadType {
		return fault.New(fault.PayloadType, "dsseEnvelope.payloadType",
			fmt.Sprintf("expected %q, found %q", payloadType, shorten(b.Envelope.PayloadType)))
	}
	if n := len(b.Envelope.Signatures); n != 1 {
		return fault.New(fault.SignatureCount, "dsseEnvelope.signatures", fmt.Sprintf("expected one signature, found %d", n))
	}
	hint := b.VerificationMaterial.PublicKey.Hint
	if id := b.Envelope.Signatures[0].KeyID; id != "" && id != hint {
		return fault.New(fault.VerificationMaterial, "dsseEnvelope.signatures[0].keyid",
			fmt.Sprintf("it names another key than verificationMaterial does: %q", shorten(id)))
	}
	return nil
}

// verify finds the key that the bundle names and checks the signature with it. Nothing proves when it was made.
func (b *bundle) verify(keys []PublicKey) (PublicKey, error) {
	k, err := b.signer(keys)
	if err != nil {
		return PublicKey{}, err
	}
	if f := k.validAt(nil); f != nil {
		return PublicKey{}, f
	}
	return k, nil
}

// signer finds the key that the bundle names and checks the signature with it.
func (b *bundle) signer(keys []PublicKey) (PublicKey, error) {
	hint := b.VerificationMaterial.PublicKey.Hint
	for _, k := range keys {
		if k.Hint() != hint {
			continue
		}
		if err := k.verify(preAuthEncoding(b.Envelope.PayloadType, b.Envelope.Payload), b.Envelope.Signatures[0].Sig); err != nil {
			return PublicKey{}, fault.New(fault.BadSignature, "dsseEnvelope.signatures[0].sig",
				"it is not a signature of this payload by the key given: "+err.Error())
		}
		return k, nil
	}
	return PublicKey{}, fault.New(fault.UnknownKey, "verificationMaterial.publicKey.hint",
		fmt.Sprintf("it names the key %q, which is not among the keys given", shorten(hint)))
}
