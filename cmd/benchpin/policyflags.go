package main

import (
	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
)

// policyFlags are a policy file and the flags that are short for parts of one.
type policyFlags struct {
	file     string
	flags    attest.Policy
	verified string
	age      string
	ageFrom  string
	set      func(flag string) bool // whether a flag was given
	figures  []string
}

func (f *policyFlags) add(cmd *cobra.Command) {
	p := &f.flags
	f.set = cmd.Flags().Changed
	cmd.Flags().StringVar(&f.file, "policy", "", "YAML `file` that says what is demanded, and by which keys (docs/policy.md)")
	cmd.Flags().IntVar(&p.Signers, "signers", 0, "how many distinct keys must stand for each predicate that is demanded (default predicate: the result)")
	cmd.Flags().StringArrayVar(&p.Predicates, "predicate", nil, "predicate `type` that an accepted key must attest; may be repeated")
	cmd.Flags().StringArrayVar(&p.DataRoots, "data-root", nil, "accepted `root` of the data set; may be repeated")
	cmd.Flags().StringVar(&f.verified, "verified", "", "least of how the run compared its data set with the manifest: `level` sample or all (before, after, inline)")
	cmd.Flags().StringArrayVar(&f.figures, "figure", nil, "`bound` on a figure of the record, such as au>=90 or load_seconds_p99<=0.5; may be repeated")
	cmd.Flags().StringVar(&f.age, "max-age", "", "how long ago the run may have finished, by the host's clock: `span` such as 36h or 90d")
	cmd.Flags().StringVar(&f.ageFrom, "max-age-from", "", "from `when` --max-age counts: finished (default: the host's clock), or trusted_time (the first trusted time of the result's signature too)")
	cmd.Flags().StringArrayVar(&p.RuleEditions, "rule-edition", nil, "accepted `edition` of rules, named by a pre-registration under an accepted key; may be repeated")
	cmd.Flags().StringVar(&p.Tool.Minimum, "tool-minimum", "", "least `version` of the program that made the record")
	cmd.Flags().StringArrayVar(&p.Tool.Binaries, "tool-binary", nil, "accepted `digest` of the program that made the record; may be repeated")
	cmd.Flags().StringArrayVar(&p.Workload.Digests, "workload-digest", nil, "accepted `digest` of the resolved workload; may be repeated")
	cmd.Flags().BoolVar(&p.Preregistered, "require-preregistration", false, "refuse results that no accepted key registered")
	cmd.Flags().BoolVar(&p.PreregisteredBefore, "require-preregistration-before", false, "refuse results of which no trusted time says that an accepted key registered them before the run began")
	cmd.Flags().BoolVar(&p.RequireTime, "require-timestamp", false, "refuse results that no timestamp or log entry by a trusted third party proves to have been signed by some time")
	cmd.Flags().BoolVar(&p.AllowUnverified, "allow-unverified", false, "accept runs whose data set was not compared with its manifest")
	cmd.Flags().BoolVar(&p.RequireThresholds, "require-thresholds", false, "refuse results that do not meet their thresholds")
	cmd.Flags().BoolVar(&p.AllowUnavailable, "allow-unavailable", false, "accept that a check is not made which takes another build of benchpin")
}

// demands is what the flags demand, without the file.
func (f *policyFlags) demands() (attest.Policy, error) {
	none := attest.Policy{}
	if f.set != nil && f.set("signers") && f.flags.Signers < 1 {
		return none, usagef("--signers %d: expected 1 to 64", f.flags.Signers)
	}
	p := f.flags
	for _, text := range f.figures {
		name, b, err := attest.ParseBound(text)
		if err != nil {
			return none, usagef("--figure %w", err)
		}
		p = p.And(attest.Policy{Figures: map[string]attest.Bounds{name: b}})
	}
	if f.age != "" {
		age, err := attest.ParseAge(f.age)
		if err != nil {
			return none, usagef("--max-age %w", err)
		}
		p.MaximumAge = age
	}
	if p.AgeFrom = attest.AgeFrom(f.ageFrom); p.AgeFrom != "" && p.MaximumAge == 0 {
		return none, usagef("--max-age-from: expected --max-age beside it")
	}
	switch p.Verification = attest.VerificationLevel(f.verified); p.Verification {
	case "", attest.VerifiedSample, attest.VerifiedAll:
	default:
		return none, usagef("--verified %q: expected %s or %s", f.verified, attest.VerifiedSample, attest.VerifiedAll)
	}
	if err := p.Check(); err != nil {
		return none, &usageError{err}
	}
	return p, nil
}
