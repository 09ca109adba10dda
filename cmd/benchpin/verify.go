package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/workload"
)

func (a *app) verifyCommand() *cobra.Command {
	var (
		accept  acceptFlags
		remote  registryFlags
		review  reviewFlags
		explain bool
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:     "verify ARCHIVE|REFERENCE",
		Short:   "Verify an archive offline and print what holds, and what that does not show",
		GroupID: groupMain,
		Long: `Verify an archive: every digest, every signature, every statement, and everything in the record that follows from the rest of the archive,
by computing it again. Nothing is asked of any network, unless a reference is given, HOST/REPOSITORY:TAG or HOST/REPOSITORY@DIGEST: then the
archive and every attestation that refers to it are pulled first. Every check is printed with its class:

  C  anyone can compute it again from the archive     W  a third party witnessed it     H  only the host says so

Exit code 4 when any check failed. Without a key, from --key or from a policy, nothing is verified: a signature by an unknown key proves nothing.

--policy FILE says what is demanded beyond that everything in the archive is true (docs/policy.md). The other flags are short for parts of it, and
both must hold: a flag never widens what the file accepts.

Timestamps and log entries are judged by --trusted-root and --timestamp-roots; without either, a bundle that carries some does not count.

--attest KEY, or --fulcio-url without a key, signs, when every check passed, that it did: a verification summary, which --out writes and --attach
attaches to the archive. With --attest-failed it signs too, when one failed, that and which: a summary that says FAILED, is shown, and counts for
nothing. --timestamp-url has the signature timestamped. How far the result rests on the word of one party is said in one word: self-attested,
third-party or reproduced. It follows from which keys signed what.`,
		Example: `  benchpin verify ./demo/archive --key ./demo/keys/benchpin.pub
  benchpin verify ./demo/archive --key ./demo/keys/benchpin.pub --verified all --max-age 1d`,
		Args: exactly("ARCHIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := review.check(); err != nil {
				return err
			}
			if err := notRunFolder(args[0]); err != nil {
				return err
			}
			trusted, demands, err := accept.resolve(cmd.Context(), a, false)
			if err != nil {
				return err
			}
			if err := review.sign.check(!demands.Trusted.Empty()); err != nil {
				return err
			}
			dir, done, err := a.archiveAt(cmd.Context(), args[0], &remote)
			if err != nil {
				return err
			}
			defer done()
			v, err := pipeline.Verify(cmd.Context(), dir, trusted, demands)
			if err != nil {
				return err
			}
			defer v.Close()
			var origins []attest.Origin
			if explain {
				origins = v.Origins()
			}
			if asJSON {
				d := verdictDocument(v)
				d.Digests = origins
				err = a.printJSON(d)
			} else if err = a.printVerdict(args[0], v); err == nil {
				a.printOrigins(origins)
			}
			if err != nil {
				return err
			}
			failed := failedChecks(v)
			if !review.sign.asked() || (failed != nil && !review.failed) {
				return failed
			}
			err = a.review(cmd.Context(), args[0], &review, &remote, v, demands, trusted)
			if failed != nil && err != nil {
				a.notef("that it failed was not signed: %v", err)
			}
			return cmp.Or(failed, err)
		},
	}
	remote.add(cmd)
	accept.addTrust(cmd, "public `KEY`: a file, env://NAME or SCHEME://KEY; may be repeated, any of them is accepted")
	review.add(cmd, &accept.trust)
	accept.policy.add(cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "say of every digest what was hashed, and how to do it by hand")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// verdict is what "verify --json" prints.
type verdict struct {
	Verdict string         `json:"verdict"`
	Archive string         `json:"archive,omitempty"`
	Keys    []string       `json:"keys"`
	Checks  []attest.Check `json:"checks"`
	// Assurance says how far the result rests on the word of one party, and why; absent where the archive did not verify.
	Assurance *assurance `json:"assurance,omitempty"`
	// Attestations say of every bundle what it counts for.
	Attestations []attest.Attestation `json:"attestations"`
	// Digests say where every digest comes from, where that was asked for.
	Digests []attest.Origin `json:"digests,omitempty"`
}

type assurance struct {
	Level   attest.Assurance `json:"level"`
	Because string           `json:"because"`
}

const (
	verdictHolds  = "verified"
	verdictFailed = "failed"
)

func verdictDocument(v *attest.Verification) verdict {
	d := verdict{Verdict: verdictFailed, Archive: v.Archive.SHA256Digest().String(), Keys: v.Keys, Checks: slices.Clone(v.Checks),
		Attestations: append([]attest.Attestation{}, v.Attestations...)}
	for i := range d.Checks {
		d.Checks[i].Digest = v.Digest(d.Checks[i].Name)
	}
	if v.OK() {
		d.Verdict = verdictHolds
	}
	if level, because := v.Assurance(); level != attest.NoAssurance {
		d.Assurance = &assurance{level, because}
	}
	return d
}

// printOrigins says where digests come from, after the verdict.
func (a *app) printOrigins(origins []attest.Origin) {
	if len(origins) > 0 {
		a.printf("\nWhere the digests come from (commands are for the folder of the archive)\n")
	}
	for _, o := range origins {
		a.printf("\n %s  %s\n   %s\n", fault.Printable(o.Name), fault.Printable(o.Digest), fault.Printable(o.Hashed))
		if o.Command != "" {
			a.printf("   $ %s\n", o.Command)
		}
	}
}

// printVerdict prints the page of an archive's checks.
func (a *app) printVerdict(archive string, v *attest.Verification) error {
	checks := make([]report.Check, len(v.Checks))
	for i, c := range v.Checks {
		checks[i] = pageCheck(v, c)
	}
	return report.Verdict(a.stdout, verdictHeader(archive, v), checks, a.style()...)
}

// pageCheck is a check as pages show it.
func pageCheck(v *attest.Verification, c attest.Check) report.Check {
	return report.Check{Name: c.Name, Class: c.Class, Evidence: c.Evidence, Digest: v.Digest(c.Name), Limits: c.Limits, OK: c.OK, Problem: c.Problem,
		Unchecked: unchecked(c), Waived: c.Waived}
}

// verdictHeader says what was judged.
func verdictHeader(archive string, v *attest.Verification) report.VerdictHeader {
	h := report.VerdictHeader{Archive: archive}
	if v.Archive != (oci.Digests{}) {
		h.Archive += " (" + v.Archive.SHA256Digest().String() + ")"
	}
	for _, hint := range v.Keys {
		if strings.HasPrefix(hint, "identity ") {
			h.Keys = append(h.Keys, hint)
			continue
		}
		h.Keys = append(h.Keys, "SHA-256 of the public key "+hint)
	}
	r := v.Record
	if r == nil {
		return h
	}
	h.Run, h.Workload, h.Status = r.ID, fmt.Sprintf("%s (%s)", r.Workload.Name, r.Workload.Digest), r.Status
	h.DataRoot, h.TranscriptRoot, h.Verification = r.Dataset.Root, r.Transcript.Root, r.Dataset.Verification.Mode
	h.Result = fmt.Sprintf("AU %s, %s, %s", report.FigureText(r.Metrics.AU), report.FigureText(r.Metrics.SamplesPerSecond),
		report.FigureText(r.Metrics.BytesPerSecond))
	if r.Plan.Epochs == 0 {
		noun := "checkpoints"
		if len(r.Checkpoints.Saves) == 1 {
			noun = "checkpoint"
		}
		h.Result = fmt.Sprintf("%d %s written, %d read back", len(r.Checkpoints.Saves), noun, len(r.Checkpoints.Loads))
		for _, phase := range []string{"save", "load"} {
			if f, ok := r.Metrics.Other[phase+"_checkpoint_bytes_per_second_mean"]; ok {
				h.Result += fmt.Sprintf(", %s %s", phase, report.FigureText(f))
			}
		}
	}
	if level, because := v.Assurance(); level != attest.NoAssurance {
		h.Assurance = string(level) + ": " + because
	}
	h.Notes = []string{"a signature says that the holder of the key stands for this result, not that the host measured truly"}
	if r.Dataset.Verification.Mode == workload.VerifyNone {
		h.Notes = append(h.Notes, "the data set was not compared with its manifest (benchpin.verify: none); only a policy that allows it accepts this "+
			"result: benchpin verify --allow-unverified")
	}
	if text := report.ReplayText(r); text != "" {
		h.Notes = append(h.Notes, "this run says that it repeats "+text)
	}
	if v.Manifest != nil {
		h.Notes = append(h.Notes, originNotes(v.Manifest.Header())...)
	}
	h.Notes = append(h.Notes, attestationNotes(v.Attestations)...)
	h.Notes = append(h.Notes, report.Cautions(r)...)
	return h
}

// attestationNotes names the bundles that are there and do not count.
func attestationNotes(all []attest.Attestation) []string {
	var notes []string
	for _, one := range all {
		switch one.Status {
		case attest.Other:
			if p := one.Replay; p != nil {
				notes = append(notes, replayNote(one.Key, p))
				continue
			}
			if r := one.Review; r != nil {
				what := "was verified"
				if !r.Passed() {
					what = "did NOT verify (" + failedNames(r) + ")"
				}
				notes = append(notes, fmt.Sprintf("the holder of %s signed that this archive %s, at %s by their clock, under the policy with "+
					"SHA-256 %s; whether that is true is not judged here", attest.SignerText(one.Key), what, r.TimeVerified, r.Policy.Digest["sha256"]))
				continue
			}
			notes = append(notes, fmt.Sprintf("%s also attests %s about this archive; whether that is true is not judged here", attest.SignerText(one.Key), one.PredicateType))
		case attest.NotCounted:
			notes = append(notes, fmt.Sprintf("%s does not count: %s", one.Part, one.Detail))
		}
	}
	return notes
}

// failedNames names the checks that a review says failed.
func failedNames(r *attest.Review) string {
	names := make([]string, len(r.Failed))
	for i, f := range r.Failed {
		names[i] = f.Check
	}
	return strings.Join(names, ", ")
}

// originNotes says what a manifest leaves out and what its data set was derived from.
func originNotes(h *manifest.Header) []string {
	var notes []string
	if l := h.Lineage; l != nil {
		const most = 5
		var from []string
		for i, p := range l.From {
			if i == most {
				from = append(from, fmt.Sprintf("%d more", len(l.From)-most))
				break
			}
			from = append(from, fmt.Sprintf("%s (root %s)", p.Name, p.Root))
		}
		notes = append(notes, fmt.Sprintf("the data set was derived from %s by %.200q: so says the one who pinned it (benchpin data lineage)",
			strings.Join(from, ", "), l.By))
	}
	if n := len(h.Exclude); n > 0 {
		notes = append(notes, fmt.Sprintf("the manifest leaves out by intent what these patterns match: %.300q", h.Exclude))
	}
	return notes
}

// unchecked reports whether a check is not OK only because it could not be made.
func unchecked(c attest.Check) bool {
	for _, f := range c.Faults {
		if f.Class != fault.Unchecked && f.Class != fault.Unavailable {
			return false
		}
	}
	return !c.OK && len(c.Faults) > 0
}

// failedChecks is the error of an archive whose checks were printed already: it only counts them.
func failedChecks(v *attest.Verification) error {
	if v.OK() {
		return nil
	}
	failed, notMade, elsewhere := 0, 0, false
	for _, c := range v.Checks {
		switch {
		case c.OK:
		case unchecked(c):
			notMade++
			elsewhere = elsewhere || c.Faults[0].Class == fault.Unavailable
		default:
			failed++
		}
	}
	text := fmt.Sprintf("%d of %d checks failed", failed, len(v.Checks))
	if notMade > 0 {
		text += fmt.Sprintf(", %d could not be made", notMade)
	}
	if elsewhere {
		text += "; verify with a build that can make it, or accept that it was not made with --allow-unavailable"
	}
	return &codedError{exitVerify, fmt.Errorf("%w: %s", attest.ErrVerification, text)}
}
