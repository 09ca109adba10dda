package sigstore

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/benchpin/benchpin/pkg/attest"
)

// KeylessOptions say whom to ask for a certificate, and who logs.
type KeylessOptions struct {
	// Fulcio is the address of a Fulcio-compatible certificate authority; Token returns the OpenID Connect token for it, and is asked anew
	// for every certificate.
	Fulcio string
	Token  func() (string, error)
	// Rekor is the address of a Rekor log, "" for none, and RekorVersion that of its interface: 1, which 0 stands for, or 2. Without a log, and with
	// one of version 2, whose entries prove no time, a timestamp must (Stamped).
	Rekor        string
	RekorVersion uint32
	// Trust verifies what they answer; its identities are not used.
	Trust Options
}

// Keyless signs with keys that exist for as long as the value does, and short-lived certificates that say whose they are. It is an
// attest.Signer, for one goroutine at a time. A certificate is for minutes: one that is over, or nearly, is replaced by that of a new key when
// there is something to sign, for the same identity or not at all.
type Keyless struct {
	// Identity is whom the authority certified.
	Identity Identity

	o           KeylessOptions
	now         func() time.Time
	keypair     sign.Keypair
	certificate []byte
	until       time.Time
	logs        []sign.Transparency
	verifier    *Verifier
}

// margin is how much of its time a certificate must have left to be signed with: a log and an authority are asked after that.
const margin = 2 * time.Minute

// NewKeyless makes a key and has it certified, so that what is wrong shows before there is something to sign. The authority gets the token and
// the public key.
func NewKeyless(ctx context.Context, o KeylessOptions) (*Keyless, error) {
	k := &Keyless{o: o, now: time.Now}
	if o.Rekor != "" {
		k.logs = append(k.logs, sign.NewRekor(&sign.RekorOptions{BaseURL: o.Rekor, Version: o.RekorVersion}))
	}
	if err := k.certify(ctx); err != nil {
		return nil, err
	}
	o.Trust.Identities = []Identity{k.Identity}
	var err error
	if k.verifier, err = NewVerifier(o.Trust); err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", o.Fulcio, err)
	}
	return k, nil
}

// certify makes a key and has it certified.
func (k *Keyless) certify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fail := func(err error) error { return fmt.Errorf("certificate authority %s: %w", k.o.Fulcio, err) }
	token, err := k.o.Token()
	if err != nil {
		return fail(err)
	}
	pair, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	raw, err := sign.NewFulcio(&sign.FulcioOptions{BaseURL: k.o.Fulcio}).GetCertificate(ctx, pair, &sign.CertificateProviderOptions{IDToken: token})
	if err != nil {
		return fail(err)
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		return fail(err)
	}
	s, err := certificate.SummarizeCertificate(c)
	if err != nil {
		return fail(err)
	}
	who := Identity{SAN: s.SubjectAlternativeName, Issuer: s.Issuer}
	if k.certificate != nil && who != k.Identity {
		return fail(fmt.Errorf("it certified %s first, and now %s: one signer is one identity", signerName(k.Identity.SAN, k.Identity.Issuer), signerName(who.SAN, who.Issuer)))
	}
	k.keypair, k.certificate, k.until, k.Identity = pair, raw, c.NotAfter, who
	return nil
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
	if k.now().Add(margin).After(k.until) {
		if err := k.certify(ctx); err != nil {
			return nil, fmt.Errorf("sign as %s: %w", k.Identity.SAN, err)
		}
	}
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
