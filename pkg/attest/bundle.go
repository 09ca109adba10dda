package attest

import (
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
// would have to be checked to mean anything; until they are, they are refused.
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
	payload, err := s.Encode()
	if err != nil {
		return nil, err
	}
	sig, err := k.sign(preAuthEncoding(payloadType, payload))
	if err != nil {
		return nil, err
	}
	out, err := strictjson.Marshal(bundle{
		MediaType:            oci.BundleType,
		VerificationMaterial: verificationMaterial{PublicKey: publicKeyHint{Hint: k.Public().Hint()}},
		Envelope:             envelope{Payload: payload, PayloadType: payloadType, Signatures: []envelopeSignature{{Sig: sig}}},
	})
	if err != nil {
		return nil, fmt.Errorf("write bundle: %w", err)
	}
	// What is written must be readable: the same code judges both.
	if _, err := VerifyBundle(out, []PublicKey{k.Public()}); err != nil {
		return nil, fmt.Errorf("write bundle: it would not verify: %w", err)
	}
	return out, nil
}

// Verified is a bundle whose signature was checked.
type Verified struct {
	// Statement was parsed from the signed bytes, and from nothing else.
	Statement *Statement
	// Key is the key, of those given, that made the signature.
	Key PublicKey
}

// VerifyBundle checks the form of a Sigstore bundle and its signature by one of the keys, then parses the signed payload as a
// statement. It does not compare the statement with anything: see Statement.CheckSubjects. Without keys it returns ErrNoKey; what is
// wrong with the bundle is a *fault.Fault. It is stricter than sigstore-go; docs/attestation.md lists where.
func VerifyBundle(data []byte, keys []PublicKey) (*Verified, error) {
	if err := checkKeys(keys); err != nil {
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

func checkKeys(keys []PublicKey) error {
	if len(keys) == 0 {
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
	if b.MediaType != oci.BundleType {
		return nil, fault.New(fault.BundleVersion, "mediaType", fmt.Sprintf("expected %q, found %q", oci.BundleType, shorten(b.MediaType)))
	}
	if b.Envelope.PayloadType != payloadType {
		return nil, fault.New(fault.PayloadType, "dsseEnvelope.payloadType",
			fmt.Sprintf("expected %q, found %q", payloadType, shorten(b.Envelope.PayloadType)))
	}
	if n := len(b.Envelope.Signatures); n != 1 {
		return nil, fault.New(fault.SignatureCount, "dsseEnvelope.signatures", fmt.Sprintf("expected one signature, found %d", n))
	}
	hint := b.VerificationMaterial.PublicKey.Hint
	if id := b.Envelope.Signatures[0].KeyID; id != "" && id != hint {
		return nil, fault.New(fault.VerificationMaterial, "dsseEnvelope.signatures[0].keyid",
			fmt.Sprintf("it names another key than verificationMaterial does: %q", shorten(id)))
	}
	return &b, nil
}

// verify finds the key that the bundle names and checks the signature with it.
func (b *bundle) verify(keys []PublicKey) (PublicKey, error) {
	hint := b.VerificationMaterial.PublicKey.Hint
	for _, k := range keys {
		if k.Hint() != hint {
			continue
		}
		if k.limited {
			return PublicKey{}, fault.New(fault.KeyValidity, "verificationMaterial",
				"the key is limited to a span of time, and nothing in the bundle proves when it was used")
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
