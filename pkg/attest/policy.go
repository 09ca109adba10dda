package attest

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// Policy is what whoever verifies demands beyond that everything in the archive is true. The zero value is the default policy. Every
// demand that is not met is a fault of its own, so that all of them are listed (docs/policy.md).
type Policy struct {
	// AllowUnverified accepts runs whose data set was not compared with its manifest, or fewer files than the run reads. A sample
	// (benchpin.verify: sample) is accepted without: the verdict says what it would have found.
	AllowUnverified bool
	// RequireThresholds refuses results that do not meet their thresholds, or whose thresholds could not be judged.
	RequireThresholds bool
	// AllowUnavailable accepts that a check was not made which takes another build of this program: the verdict names it.
	AllowUnavailable bool

	// Witness judges certificates, log entries and timestamps; nil refuses bundles that carry any. It is no demand, and no part of a
	// document: it is made of Trusted.
	Witness Witness
	// Trusted is whom the Witness was made to trust.
	Trusted Trusted
	// RequireTime demands that a third party whom the Witness trusts saw a statement of every predicate that the archive carries: the
	// timestamp or log entry of a bundle can be taken out of it, and then proves nothing.
	RequireTime bool

	// Signers is how many distinct keys must stand for each of Predicates; less than 2 asks for nothing.
	Signers int
	// Predicates are the types that must be attested by an accepted key. Where there are none, Signers counts for ResultType.
	Predicates []string
	// DataRoots are the roots of data sets that are accepted; nil accepts every one, as in the lists below. A list that is empty and
	// not nil accepts none.
	DataRoots []string
	// Verification is the least that the record must say of how the data set was compared with its manifest; "" leaves that to the
	// default.
	Verification VerificationLevel
	// Figures are bounds on figures of the record, by name.
	Figures map[string]Bounds
	// Preregistered demands a pre-registration signed by an accepted key.
	Preregistered bool
	// PreregisteredBefore demands that besides, and that a trusted time says that it was signed before the run began.
	PreregisteredBefore bool
	// RuleEditions are the editions of rules that are accepted: a pre-registration by an accepted key must name one of them; nil asks for none.
	RuleEditions []string
	// MaximumAge is how old the result may be; 0 asks for nothing. AgeFrom says from when that is counted, "" from the end of the run.
	MaximumAge time.Duration
	AgeFrom    AgeFrom
	// NotBefore are public values, one of which the order of samples must have been drawn with; nil asks for none. Their times are those of
	// whoever verifies, and go before the record's.
	NotBefore []KnownValue
	// At is the time at which age is judged; the zero value is now.
	At time.Time
	// Tool and Workload say what may have been run.
	Tool     ToolPolicy
	Workload WorkloadPolicy
}

// VerificationLevel orders the modes in which a run compares its data set with the manifest: none < sample < all.
type VerificationLevel string

// The levels.
const (
	// VerifiedNone: nothing was compared, or nobody knows.
	VerifiedNone VerificationLevel = "none"
	// VerifiedSample: some files, drawn by a seed (mode sample).
	VerifiedSample VerificationLevel = "sample"
	// VerifiedAll: everything that the run reads (modes before, after and inline).
	VerifiedAll VerificationLevel = "all"
)

// rank is -1 for what is no level; "" asks for nothing and is the lowest.
func (l VerificationLevel) rank() int {
	return slices.Index([]VerificationLevel{"", VerifiedNone, VerifiedSample, VerifiedAll}, l)
}

// Bounds are the least and the most that a figure may be, both included; nil for no bound.
type Bounds struct {
	Minimum *float64 `json:"minimum,omitempty"`
	Maximum *float64 `json:"maximum,omitempty"`
}

// ToolPolicy says which programs may have made the record.
type ToolPolicy struct {
	// Versions are accepted as they are written; Minimum is the least semantic version.
	Versions []string `json:"versions,omitempty"`
	Minimum  string   `json:"minimum,omitempty"`
	// Commits are revisions of the source, Binaries BLAKE3 digests of the executable.
	Commits  []string `json:"commits,omitempty"`
	Binaries []string `json:"binaries,omitempty"`
	// Unmodified refuses programs built from source with uncommitted changes.
	Unmodified bool `json:"unmodified,omitempty"`
}

// WorkloadPolicy says which workloads may have been run.
type WorkloadPolicy struct {
	Names []string `json:"names,omitempty"`
	// Digests are those of the resolved workload. A name proves nothing, a digest all of it.
	Digests []string `json:"digests,omitempty"`
}

// And returns the policy that demands what both demand: of two bounds the narrower one, of two lists what is in both. What either
// accepts to be missing may be missing, unless the other demands it.
func (p Policy) And(q Policy) Policy {
	p.AllowUnverified = p.AllowUnverified || q.AllowUnverified
	p.AllowUnavailable = p.AllowUnavailable || q.AllowUnavailable
	p.RequireThresholds = p.RequireThresholds || q.RequireThresholds
	p.Preregistered = p.Preregistered || q.Preregistered
	p.PreregisteredBefore = p.PreregisteredBefore || q.PreregisteredBefore
	p.RequireTime = p.RequireTime || q.RequireTime
	if p.Witness == nil && p.Trusted.Empty() {
		p.Witness, p.Trusted = q.Witness, q.Trusted
	}
	p.Signers = max(p.Signers, q.Signers)
	p.Predicates = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(p.Predicates), q.Predicates...))))
	p.DataRoots = both(p.DataRoots, q.DataRoots)
	if q.Verification.rank() > p.Verification.rank() {
		p.Verification = q.Verification
	}
	p.Figures = maps.Clone(p.Figures)
	for name, b := range q.Figures {
		if p.Figures == nil {
			p.Figures = map[string]Bounds{}
		}
		p.Figures[name] = p.Figures[name].and(b)
	}
	p.RuleEditions = both(p.RuleEditions, q.RuleEditions)
	if p.NotBefore == nil {
		p.NotBefore = q.NotBefore
	}
	if q.AgeFrom.rank() > p.AgeFrom.rank() {
		p.AgeFrom = q.AgeFrom
	}
	if q.MaximumAge > 0 && (p.MaximumAge == 0 || q.MaximumAge < p.MaximumAge) {
		p.MaximumAge = q.MaximumAge
	}
	if p.At.IsZero() {
		p.At = q.At
	}
	p.Tool.Versions = both(p.Tool.Versions, q.Tool.Versions)
	p.Tool.Minimum = laterVersion(p.Tool.Minimum, q.Tool.Minimum)
	p.Tool.Commits = both(p.Tool.Commits, q.Tool.Commits)
	p.Tool.Binaries = both(p.Tool.Binaries, q.Tool.Binaries)
	p.Tool.Unmodified = p.Tool.Unmodified || q.Tool.Unmodified
	p.Workload.Names = both(p.Workload.Names, q.Workload.Names)
	p.Workload.Digests = both(p.Workload.Digests, q.Workload.Digests)
	return p
}

// both is what two lists accept together; nil accepts everything.
func both(a, b []string) []string {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	out := []string{}
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

func (b Bounds) and(c Bounds) Bounds {
	if b.Minimum == nil || (c.Minimum != nil && *c.Minimum > *b.Minimum) {
		b.Minimum = c.Minimum
	}
	if b.Maximum == nil || (c.Maximum != nil && *c.Maximum < *b.Maximum) {
		b.Maximum = c.Maximum
	}
	return b
}

// Check returns what cannot be demanded: texts that no record can hold, because they are malformed. Errors wrap ErrPolicy.
func (p Policy) Check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrPolicy}, args...)...))
	}
	if p.Signers < 0 || p.Signers > limits.Keys {
		bad("%d signers: expected 1 to %d", p.Signers, limits.Keys)
	}
	if p.AgeFrom.rank() < 0 {
		bad("%q is nothing that an age is counted from: expected %s, %s or %s", shorten(string(p.AgeFrom)), AgeFromFinish, AgeFromTrustedTime, AgeFromNotBefore)
	}
	if p.AgeFrom != "" && p.MaximumAge == 0 {
		bad("it says from when age is counted, and no age")
	}
	for what, list := range map[string][]string{"data set's root": p.DataRoots, "binary": p.Tool.Binaries, "workload": p.Workload.Digests} {
		for _, d := range list {
			if !blake3Text.MatchString(d) {
				bad("%s %q: expected blake3: and 64 lower-case hex digits", what, shorten(d))
			}
		}
	}
	if p.Tool.Minimum != "" && canonicalVersion(p.Tool.Minimum) == "" {
		bad("%q is no semantic version, such as v1.2.3", shorten(p.Tool.Minimum))
	}
	for _, name := range sortedKeys(p.Figures) {
		if b := p.Figures[name]; b.Minimum != nil && b.Maximum != nil && *b.Minimum > *b.Maximum {
			bad("%s: the minimum is greater than the maximum: nothing would pass", name)
		}
	}
	return errors.Join(errs...)
}

var blake3Text = regexp.MustCompile(`^blake3:[0-9a-f]{64}$`)

// PolicyDocument is a policy with the keys that it accepts.
type PolicyDocument struct {
	Policy
	// Keys are the accepted keys that the document holds or names a file of.
	Keys []PublicKey
	// Hints are those of all accepted keys, also of such that the document names by hint alone. It is nil where the document
	// says nothing of who is accepted, by key or by certificate, and then accepts every key that is given.
	Hints []string
}

// Accept returns the keys to verify with: those of the document, and those given by other means, all of which the document must
// accept. So a key on the command line never widens a policy.
func (d *PolicyDocument) Accept(given []PublicKey) ([]PublicKey, error) {
	keys := slices.Clone(d.Keys)
	for _, k := range given {
		if d.Hints != nil && !slices.Contains(d.Hints, k.Hint()) {
			return nil, fmt.Errorf("the policy does not accept the key %s; add it there, or leave it out here", k.Hint())
		}
		if !slices.ContainsFunc(keys, func(o PublicKey) bool { return o.Hint() == k.Hint() }) {
			keys = append(keys, k)
		}
	}
	return keys, nil
}
