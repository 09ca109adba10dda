package attest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// ErrVerification is what a failed verification is, for errors.Is.
var ErrVerification = errors.New("verification failed")

// Check is the outcome of one check of an archive.
type Check struct {
	// Name is a short, stable name, such as "signatures".
	Name string `json:"name"`
	// Class says who can know that it is true: "C" anyone can compute it again, "W" a third party witnessed it, "H" the host only
	// says so.
	Class string `json:"class"`
	OK    bool   `json:"ok"`
	// Evidence says what was compared with what.
	Evidence string `json:"evidence"`
	// Digest is that of what the check is about (Verification.Digest); "" until somebody asks for it, and where it could not be read.
	Digest string `json:"digest,omitempty"`
	// Limits says what the check does not show.
	Limits string `json:"limits"`
	// Problem is everything that is wrong, one line each, naming the part; "" when OK.
	Problem string `json:"problem,omitempty"`
	// Faults are the same, for programs.
	Faults []*fault.Fault `json:"faults,omitempty"`
	// Waived is true for a check that is not OK, because this build cannot make it, where the policy accepts that
	// (Policy.AllowUnavailable).
	Waived bool `json:"waived,omitempty"`
}

// unavailable reports whether the check is not OK only because another build must make it.
func (c *Check) unavailable() bool {
	for _, f := range c.Faults {
		if f.Class != fault.Unavailable {
			return false
		}
	}
	return !c.OK && len(c.Faults) > 0
}

// NewCheck returns a check that passed when there are no faults.
func NewCheck(name string, class record.Class, evidence, limits string, faults ...*fault.Fault) Check {
	c := Check{Name: name, Class: string(class), OK: len(faults) == 0, Evidence: fault.Printable(evidence), Limits: limits, Faults: faults}
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.Error()
	}
	c.Problem = strings.Join(lines, "\n")
	return c
}

// Verification is an archive that was checked: all checks, and the content that was checked, which is what to work on from here.
// Content is nil where it was refused. Close frees it.
type Verification struct {
	// Checks are in the order in which they were made.
	Checks []Check
	// Archive are the digests of the archive's OCI manifest, zero when it could not be read.
	Archive oci.Digests
	// Record was parsed from the verified bytes, and RecordBytes are these bytes.
	Record      *record.Record
	RecordBytes []byte
	// Manifest reads from verified content; it is non-nil only after all entries were checked against the header.
	Manifest *manifest.Manifest
	// Groups are the group digests of the manifest, checked against its entries; nil where the archive has none.
	Groups *manifest.Groups
	// Certificate is the data set's certificate, nil where the archive has none, or it was refused.
	Certificate *certificate.Certificate
	// Keys are the hints of the keys, and the identities in certificates, whose signatures were accepted.
	Keys []string
	// Preregistered is the hint of the accepted key that signed what the run was registered with; "" where there is none.
	Preregistered string
	// PreregisteredBefore is true where a trusted time says that it was signed before the run began.
	PreregisteredBefore bool
	// RuleEdition is the edition of rules that the accepted pre-registration names; "" where it names none.
	RuleEdition string
	// Attestations say of every bundle what it counts for, in the order of the archive.
	Attestations []Attestation

	layout *oci.Layout
}

// Add appends a check that the caller made of the same content.
func (v *Verification) Add(c Check) { v.Checks = append(v.Checks, c) }

// Waive applies the policy to checks that this build cannot make. Whoever appends checks calls it after them.
func (v *Verification) Waive(p Policy) {
	for i := range v.Checks {
		v.Checks[i].Waived = p.AllowUnavailable && v.Checks[i].unavailable()
	}
}

// OK reports whether there are checks and all passed, but for those that the policy waives.
func (v *Verification) OK() bool {
	for _, c := range v.Checks {
		if !c.OK && !c.Waived {
			return false
		}
	}
	return len(v.Checks) > 0
}

// Err returns nil when all checks passed or are waived, else an error that wraps ErrVerification and every fault.
func (v *Verification) Err() error {
	if v.OK() {
		return nil
	}
	all := []error{ErrVerification}
	for _, c := range v.Checks {
		if c.Waived {
			continue
		}
		for _, f := range c.Faults {
			all = append(all, fmt.Errorf("%s: %w", c.Name, f))
		}
		if !c.OK && len(c.Faults) == 0 {
			all = append(all, fmt.Errorf("%s: %s", c.Name, c.Problem))
		}
	}
	return errors.Join(all...)
}

// File returns the verified content of a file that the record lists, such as steps.parquet; nil when it is not there or was refused.
func (v *Verification) File(name string) *oci.Blob {
	if v.layout == nil {
		return nil
	}
	if l := v.layout.Layer(name); l != nil {
		return l.Blob
	}
	return nil
}

// Close frees the content, after which Manifest and files must not be used.
func (v *Verification) Close() error {
	if v.layout == nil {
		return nil
	}
	return v.layout.Close()
}
