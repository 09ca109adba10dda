package sigstore

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// ErrRoots: a file of trusted roots that holds none, or something else.
var ErrRoots = errors.New("not usable as trusted roots")

// Options are what a Verifier trusts. Nothing is built in.
type Options struct {
	// TrustedRoot is a Sigstore trusted_root.json: certificate authorities, logs and timestamp authorities.
	TrustedRoot []byte
	// TimestampRoots are certificates in PEM form of timestamp authorities: one or more self-signed roots, and intermediates.
	TimestampRoots []byte
	// Identities are those who are accepted by certificate, of an authority of TrustedRoot; none for nobody.
	Identities []Identity
}

// Verifier judges certificates, timestamps and log entries. It opens no socket and is safe for concurrent use. It is an attest.Witness.
type Verifier struct {
	material   root.TrustedMaterialCollection
	identities []verify.CertificateIdentity
}

// NewVerifier returns a Verifier that trusts what o says. Without any root there is nothing to trust: ErrRoots.
func NewVerifier(o Options) (*Verifier, error) {
	v := &Verifier{}
	if o.TrustedRoot != nil {
		tr, err := root.NewTrustedRootFromJSON(o.TrustedRoot)
		if err != nil {
			return nil, fmt.Errorf("trusted root: %w: expected a Sigstore trusted_root.json: %w", ErrRoots, err)
		}
		v.material = append(v.material, tr)
	}
	if o.TimestampRoots != nil {
		tsas, err := parseTimestampRoots(o.TimestampRoots)
		if err != nil {
			return nil, fmt.Errorf("timestamp roots: %w", err)
		}
		v.material = append(v.material, tsas)
	}
	if len(v.material) == 0 {
		return nil, fmt.Errorf("%w: none were given", ErrRoots)
	}
	for _, i := range o.Identities {
		m, err := matcher(i)
		if err != nil {
			return nil, err
		}
		v.identities = append(v.identities, m)
	}
	if len(v.identities) > 0 && !authoritiesOf(v.material) {
		return nil, fmt.Errorf("%w: identities are certified by somebody, and there is no certificate authority in a trusted root", ErrRoots)
	}
	return v, nil
}

// NewWitness returns who judges by what a policy trusts beside keys: nil where it trusts nobody. Errors are NewVerifier's.
func NewWitness(t attest.Trusted) (attest.Witness, error) {
	if t.Empty() {
		return nil, nil
	}
	v, err := NewVerifier(Options{TrustedRoot: t.Root, TimestampRoots: t.TimestampRoots, Identities: t.Identities})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// authorities are timestamp authorities and nothing else.
type authorities struct {
	root.BaseTrustedMaterial
	tsas []root.TimestampingAuthority
}

// TimestampingAuthorities returns them.
func (a *authorities) TimestampingAuthorities() []root.TimestampingAuthority { return a.tsas }

// parseTimestampRoots makes an authority of every self-signed certificate, with all others as intermediates.
func parseTimestampRoots(data []byte) (*authorities, error) {
	var roots, others []*x509.Certificate
	for rest := bytes.TrimSpace(data); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%w: expected certificates in PEM form and nothing else", ErrRoots)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRoots, err)
		}
		if c.CheckSignatureFrom(c) == nil {
			roots = append(roots, c)
		} else {
			others = append(others, c)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%w: found %d certificates, none of which is a self-signed root", ErrRoots, len(others))
	}
	a := &authorities{}
	named := map[string]*x509.Certificate{}
	for _, r := range roots {
		// Authorities are told apart by their names: two roots of one name are two authorities, one root that is there twice is one.
		name := r.Subject.String()
		if first, ok := named[name]; ok && !first.Equal(r) {
			name = fmt.Sprintf("%s (SHA-256 %x)", name, sha256.Sum256(r.Raw))
		}
		if _, ok := named[name]; ok {
			continue
		}
		named[name] = r
		a.tsas = append(a.tsas, &root.SigstoreTimestampingAuthority{Root: r, Intermediates: others, URI: name})
	}
	return a, nil
}

// Identifies reports whether anybody is accepted by certificate.
func (v *Verifier) Identifies() bool { return len(v.identities) > 0 }

// Examine judges the certificate, and all timestamps and log entries of a bundle. See attest.Witness.
func (v *Verifier) Examine(raw []byte, key *attest.PublicKey) (attest.Testimony, error) {
	b := &bundle.Bundle{}
	if err := b.UnmarshalJSON(raw); err != nil {
		return attest.Testimony{}, fault.New(fault.VerificationMaterial, "", "sigstore-go refuses the bundle: "+err.Error())
	}
	if key == nil {
		if !v.Identifies() {
			return attest.Testimony{}, fault.New(fault.Identity, "verificationMaterial.certificate", "no identity is accepted")
		}
		return v.certified(b)
	}
	material, err := v.with(key)
	if err != nil {
		return attest.Testimony{}, err
	}
	var t attest.Testimony
	if t.Times, err = timestamps(b, material); err != nil {
		return attest.Testimony{}, fault.New(fault.Timestamp, "verificationMaterial.timestampVerificationData", err.Error())
	}
	logged, err := logEntries(b, material)
	if err != nil {
		return attest.Testimony{}, fault.New(fault.LogEntry, "verificationMaterial.tlogEntries", err.Error())
	}
	t.Times = append(t.Times, logged...)
	return t, nil
}

// Timestamped judges a timestamp over a message. See attest.Witness.
func (v *Verifier) Timestamped(answer, message []byte) (attest.TrustedTime, error) {
	var faults []error
	for _, tsa := range v.material.TimestampingAuthorities() {
		t, err := tsa.Verify(answer, message)
		if err == nil {
			return attest.TrustedTime{Time: t.Time, Kind: "timestamp", By: t.URI}, nil
		}
		faults = append(faults, err)
	}
	if len(faults) == 0 {
		faults = append(faults, errors.New("no timestamp authority is trusted"))
	}
	return attest.TrustedTime{}, fault.New(fault.Timestamp, "", errors.Join(faults...).Error())
}

// with adds the key to what is trusted: log entries are compared with it.
func (v *Verifier) with(key *attest.PublicKey) (root.TrustedMaterial, error) {
	verifier, err := signature.LoadDefaultVerifier(key.Crypto())
	if err != nil {
		return nil, fault.New(fault.VerificationMaterial, "verificationMaterial.publicKey", err.Error())
	}
	hint, expiring := key.Hint(), root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	keys := root.NewTrustedPublicKeyMaterial(func(id string) (root.TimeConstrainedVerifier, error) {
		if id != hint {
			return nil, fmt.Errorf("it names the key %q, and %q signed", id, hint)
		}
		return expiring, nil
	})
	return append(v.material[:len(v.material):len(v.material)], keys), nil
}

// timestamps are all timestamps of a bundle, every one of which must hold.
func timestamps(b *bundle.Bundle, material root.TrustedMaterial) ([]attest.TrustedTime, error) {
	all, err := b.Timestamps()
	if err != nil {
		return nil, err
	}
	verified, faults, err := verify.VerifySignedTimestamp(b, material)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	if len(verified) != len(all) {
		return nil, fmt.Errorf("%d of %d timestamps hold", len(verified), len(all))
	}
	var times []attest.TrustedTime
	for _, t := range verified {
		times = append(times, attest.TrustedTime{Time: t.Time, Kind: "timestamp", By: t.URI})
	}
	return times, nil
}

// logEntries are the times of all log entries of a bundle, every one of which must be in a trusted log. The entry of a newer log proves no
// time: it is seen, and not counted.
func logEntries(b *bundle.Bundle, material root.TrustedMaterial) ([]attest.TrustedTime, error) {
	all, err := b.TlogEntries()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	verified, err := verify.VerifyTlogEntry(b, material, len(all), true)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if err := sameEntry(e); err != nil {
			return nil, err
		}
	}
	var times []attest.TrustedTime
	for _, t := range verified {
		times = append(times, attest.TrustedTime{Time: t.Time, Kind: "log", By: t.URI})
	}
	return times, nil
}
