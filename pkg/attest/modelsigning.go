package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// SignModel signs the payload of a statement in the OpenSSF model signing format (pkg/export) and returns the Sigstore bundle. It is no attestation
// of an archive, and VerifyBundle does not accept it: that format names the key by another hint, the SHA-256 of its PEM form in hex, and its
// subjects have no blake3. Its programs verify with ECDSA alone, so that every other kind of key is ErrKeyKind.
func SignModel(k *PrivateKey, payload []byte) ([]byte, error) {
	if kind := k.Public().kind; kind != ECDSAP256 && kind != ECDSAP384 {
		return nil, fmt.Errorf("%w: %s; programs of this format verify with ECDSA keys only", ErrKeyKind, kind)
	}
	sig, err := k.sign(preAuthEncoding(payloadType, payload))
	if err != nil {
		return nil, err
	}
	hint := sha256.Sum256(k.Public().PEM())
	return strictjson.Marshal(bundle{
		MediaType:            oci.BundleType,
		VerificationMaterial: verificationMaterial{PublicKey: publicKeyHint{Hint: hex.EncodeToString(hint[:])}},
		Envelope:             envelope{Payload: payload, PayloadType: payloadType, Signatures: []envelopeSignature{{Sig: sig}}},
	})
}
