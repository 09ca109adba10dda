package sigstore

import (
	"errors"
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// ErrIdentity: an identity that cannot be demanded.
var ErrIdentity = errors.New("not an identity to verify with")

// Identity is who a certificate must be of; see attest.Identity.
type Identity = attest.Identity

// matcher is the identity as sigstore-go takes it.
func matcher(i Identity) (verify.CertificateIdentity, error) {
	if err := i.Check(); err != nil {
		return verify.CertificateIdentity{}, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	// sigstore-go looks for a pattern anywhere in the text: "dev@example.com" would match "dev@example.com.evil.org".
	whole := func(pattern string) string {
		if pattern == "" {
			return ""
		}
		return `\A(?:` + pattern + `)\z`
	}
	m, err := verify.NewShortCertificateIdentity(i.Issuer, whole(i.IssuerPattern), i.SAN, whole(i.SANPattern))
	if err != nil {
		return verify.CertificateIdentity{}, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	return m, nil
}

// certified judges a bundle whose signer has a certificate. What the trusted root names is demanded: an entry in one of its logs where it has
// logs, a certificate that one of its certificate logs took where it has such; and in any case a trusted time, at which the certificate was
// valid.
func (v *Verifier) certified(b *bundle.Bundle) (attest.Testimony, error) {
	var t attest.Testimony
	refuse := func(class fault.Class, field string, err error) (attest.Testimony, error) {
		return attest.Testimony{}, fault.New(class, "verificationMaterial."+field, err.Error())
	}
	var err error
	if t.Times, err = timestamps(b, v.material); err != nil {
		return refuse(fault.Timestamp, "timestampVerificationData", err)
	}
	logged, err := logEntries(b, v.material)
	if err != nil {
		return refuse(fault.LogEntry, "tlogEntries", err)
	}
	if t.Times = append(t.Times, logged...); len(t.Times) == 0 {
		return refuse(fault.Identity, "certificate", errors.New("no trusted time proves that the certificate was valid when it signed"))
	}
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1)}
	if len(v.material.RekorLogs()) > 0 {
		if entries, err := b.TlogEntries(); err != nil || len(entries) == 0 {
			return refuse(fault.LogEntry, "tlogEntries", errors.New("the trusted root has logs, and the bundle has no entry of any"))
		}
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(v.material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	checker, err := verify.NewVerifier(v.material, options...)
	if err != nil {
		return refuse(fault.Identity, "certificate", err)
	}
	var who []verify.PolicyOption
	for _, i := range v.identities {
		who = append(who, verify.WithCertificateIdentity(i))
	}
	// The statement's subjects are compared by who asked: all of them, with both digests.
	result, err := checker.Verify(b, verify.NewPolicy(verify.WithoutArtifactUnsafe(), who...))
	if err != nil {
		return refuse(fault.Identity, "certificate", err)
	}
	c := result.Signature.Certificate
	t.Signer = signerName(c.SubjectAlternativeName, c.Issuer)
	return t, nil
}

// signerName is how an identity is written down.
func signerName(san, issuer string) string {
	return fault.Printable(fmt.Sprintf("identity %.200s, by %.200s", san, issuer))
}

// authoritiesOf reports whether there is anybody who certifies.
func authoritiesOf(m root.TrustedMaterial) bool { return len(m.FulcioCertificateAuthorities()) > 0 }
