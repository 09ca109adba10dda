package attest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// Identity is who a certificate must be of: a subject alternative name (an e-mail address, a URI), and the OpenID Connect issuer who
// vouched for it, each exactly or as a pattern. A pattern is a regular expression (RE2) for the whole text.
type Identity struct {
	SAN           string `json:"san,omitempty"`
	SANPattern    string `json:"san_pattern,omitempty"`
	Issuer        string `json:"issuer,omitempty"`
	IssuerPattern string `json:"issuer_pattern,omitempty"`
}

// Check returns what makes it no identity to demand: a part that is absent, one that is given twice, a pattern that is none.
func (i Identity) Check() error {
	for _, one := range []struct{ what, exact, pattern string }{{"identity", i.SAN, i.SANPattern}, {"issuer", i.Issuer, i.IssuerPattern}} {
		if (one.exact == "") == (one.pattern == "") {
			return fmt.Errorf("the %s must be given either exactly or as a pattern", one.what)
		}
		if _, err := regexp.Compile(one.pattern); err != nil {
			return fmt.Errorf("the %s: %w", one.what, err)
		}
	}
	return nil
}

// Trusted is whom a policy trusts beside keys. The zero value trusts nobody. Package sigstore makes a Witness of it.
type Trusted struct {
	// Identities are those who are accepted by certificate.
	Identities []Identity
	// Root is a Sigstore trusted_root.json: certificate authorities, logs and timestamp authorities.
	Root []byte
	// TimestampRoots are root and intermediate certificates of timestamp authorities, in PEM form.
	TimestampRoots []byte
}

// Empty reports whether nobody is trusted.
func (t Trusted) Empty() bool { return len(t.Identities) == 0 && !t.rooted() }

// rooted reports whether it has roots.
func (t Trusted) rooted() bool { return t.Root != nil || t.TimestampRoots != nil }

// AcceptTrusted returns whom to trust beside keys: those of the document, and those given by other means where the document says nothing of
// them. Where it names keys or identities, no identity may be given beside it; where it names roots, no root.
func (d *PolicyDocument) AcceptTrusted(given Trusted) (Trusted, error) {
	t := d.Trusted
	if len(given.Identities) > 0 {
		if d.Hints != nil || len(t.Identities) > 0 {
			return Trusted{}, errors.New("the policy says who is accepted, and an identity that is given beside it would add somebody; add it there, or leave it out here")
		}
		t.Identities = given.Identities
	}
	if given.rooted() {
		if t.rooted() {
			return Trusted{}, errors.New("the policy says which roots are trusted, and others are given beside it; add them there, or leave them out here")
		}
		t.Root, t.TimestampRoots = given.Root, given.TimestampRoots
	}
	return t, nil
}

// AgeFrom says from when the age of a result is counted.
type AgeFrom string

// From what an age is counted, from the least that is demanded. Each demands those before it too.
const (
	// AgeFromFinish: the end of the run, by the host's clock.
	AgeFromFinish AgeFrom = "finished"
	// AgeFromTrustedTime: the earliest trusted time of a statement of the result that holds, or of the transcript's root.
	AgeFromTrustedTime AgeFrom = "trusted_time"
	// AgeFromNotBefore: the time from which a public value was known that the order of samples was drawn with.
	AgeFromNotBefore AgeFrom = "not_before"
)

// rank is -1 for what is no such thing; "" is the lowest.
func (a AgeFrom) rank() int {
	return slices.Index([]AgeFrom{"", AgeFromFinish, AgeFromTrustedTime, AgeFromNotBefore}, a)
}

// policyRoots is where a policy document says that the content of a file is: there, or in the file.
type policyTrustedRoot struct {
	File string `json:"file"`
	JSON string `json:"json"`
}

type policyTimestampRoots struct {
	File string `json:"file"`
	PEM  string `json:"pem"`
}

// trusted loads whom the document trusts beside keys.
func (r *policyReader) trusted(d policyDocument) (t Trusted, errs []error) {
	folder := filepath.Dir(r.name)
	load := func(pointer, file, text string) []byte {
		if file == "" && text == "" {
			return nil
		}
		if file == "" {
			return []byte(text)
		}
		data, err := readIn(folder, file)
		if err != nil {
			errs = append(errs, r.fail(pointer, "%s", err))
			return []byte{}
		}
		return data
	}
	t.Root = load("/trusted_root", d.TrustedRoot.File, d.TrustedRoot.JSON)
	t.TimestampRoots = load("/timestamp_roots", d.TimestampRoots.File, d.TimestampRoots.PEM)
	for i, who := range d.Identities {
		if err := who.Check(); err != nil {
			errs = append(errs, r.fail(fmt.Sprintf("/identities/%d", i), "%s", err))
		}
		if slices.Contains(t.Identities, who) {
			errs = append(errs, r.fail(fmt.Sprintf("/identities/%d", i), "the identity is there twice"))
		}
		t.Identities = append(t.Identities, who)
	}
	return t, errs
}

// readIn reads a file that is named from a folder.
func readIn(folder, name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limits.RootBytes+1))
	if err == nil && len(data) > limits.RootBytes {
		err = fmt.Errorf("%s: at most %d bytes of roots are read", name, limits.RootBytes)
	}
	return data, err
}
