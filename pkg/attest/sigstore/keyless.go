package sigstore

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/benchpin/benchpin/pkg/attest"
)

// KeylessOptions say whom to ask for a certificate, and who logs.
type KeylessOptions struct {
	// Fulcio is the address of a Fulcio-compatible certificate authority, Token the OpenID Connect token for it.
	Fulcio, Token string
	// Rekor is the address of a Rekor v1 log; "" logs nothing, and then a timestamp must prove the time (Stamped).
	Rekor string
	// Trust verifies what they answer; its identities are not used.
	Trust Options
}

// Keyless signs with a key that exists for as long as the value does, and a short-lived certificate that says whose it is. It is an
// attest.Signer. The certificate is for minutes: make one when there is something to sign.
type Keyless struct {
	// Identity is whom the authority certified.
	Identity Identity

	keypair     sign.Keypair
	certificate []byte
	logs        []sign.Transparency
	verifier    *Verifier
}

// NewKeyless makes a key and has it certified. The authority gets the token and the public key.
func NewKeyless(ctx context.Context, o KeylessOptions) (*Keyless, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k := &Keyless{}
	pair, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	k.keypair = pair
	fail := func(err error) (*Keyless, error) {
		return nil, fmt.Errorf("certificate authority %s: %w", o.Fulcio, err)
	}
	if k.certificate, err = sign.NewFulcio(&sign.FulcioOptions{BaseURL: o.Fulcio}).GetCertificate(ctx, pair,
		&sign.CertificateProviderOptions{IDToken: o.Token}); err != nil {
		return fail(err)
	}
	c, err := x509.ParseCertificate(k.certificate)
	if err != nil {
		return fail(err)
	}
	s, err := certificate.SummarizeCertificate(c)
	if err != nil {
		return fail(err)
	}
	k.Identity = Identity{SAN: s.SubjectAlternativeName, Issuer: s.Issuer}
	o.Trust.Identities = []Identity{k.Identity}
	if k.verifier, err = NewVerifier(o.Trust); err != nil {
		return fail(err)
	}
	if o.Rekor != "" {
		k.logs = append(k.logs, sign.NewRekor(&sign.RekorOptions{BaseURL: o.Rekor}))
	}
	return k, nil
}

// GetCertificate returns the certificate that is there already, so that all signatures of the value share one.
func (k *Keyless) GetCertificate(_ context.Context, pair sign.Keypair, _ *sign.CertificateProviderOptions) ([]byte, error) {
	if pair != k.keypair {
		return nil, errors.New("the certificate is of another key")
	}
	return k.certificate, nil
}

// SignPayload signs and logs a payload. The log publishes the certificate, with the identity in it, and the digest of the payload.
func (k *Keyless) SignPayload(ctx context.Context, payloadType string, payload []byte) ([]byte, error) {
	b, err := k.bundle(ctx, &sign.DSSEData{Data: payload, PayloadType: payloadType})
	if err != nil {
		return nil, fmt.Errorf("sign as %s: %w", k.Identity.SAN, err)
	}
	raw, err := protojson.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("write bundle: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("write bundle: %w", err)
	}
	return out.Bytes(), nil
}

// bundle has the bundle made. sigstore-go panics at a log's answer that lacks what was asked for.
func (k *Keyless) bundle(ctx context.Context, content sign.Content) (b *protobundle.Bundle, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the answer of the log lacks what was asked for")
		}
	}()
	return sign.Bundle(content, k.keypair, sign.BundleOptions{CertificateProvider: k, TransparencyLogs: k.logs, Context: ctx})
}

// Trust is the identity that was certified, and nobody else.
func (k *Keyless) Trust() attest.Trust { return attest.Trust{Witness: k.verifier} }
