package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/report/html"
)

// htmlFlags are those of the page for browsers.
type htmlFlags struct {
	file string
	acceptFlags
}

func (f *htmlFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "html", "", "write a page for browsers to `file`, with pictures, or to standard output if it is -; several runs stand side by side")
	f.addTrust(cmd, "with --html, verify archives with this public `KEY` and show what was found: a file, env://NAME or SCHEME://KEY; may be repeated")
	cmd.Flags().StringVar(&f.policy.file, "policy", "", "with --html, YAML `file` that says what archives must fulfil, and by which keys (docs/policy.md)")
}

// check refuses what does not go together.
func (f *htmlFlags) check(format *formatFlags) error {
	switch {
	case f.file == "" && f.given():
		return usagef("--key, --policy and what else is for verifying belongs to the page of --html; \"benchpin verify\" verifies an archive")
	case f.file != "" && (format.json || format.format != "" || format.badge != ""):
		return usagef("--html writes a page, and --json, --format and --badge ask for something else: choose one")
	}
	return nil
}

// reportHTML writes the page. Archives that do not verify are on it as such, and make the exit code 4.
func (a *app) reportHTML(ctx context.Context, args []string, f *htmlFlags, remote *registryFlags) error {
	if len(args) > html.MostRuns {
		return usagef("a page shows at most %d runs, found %d", html.MostRuns, len(args))
	}
	var trusted []attest.PublicKey
	var demands attest.Policy
	if f.given() {
		var err error
		if trusted, demands, err = f.resolve(ctx, a, false); err != nil {
			return err
		}
	}
	results, done, err := a.resultsAt(ctx, args, remote)
	if err != nil {
		return err
	}
	defer done()
	if f.file != "-" {
		if err := mustBeReplaceable("--html", f.file, "a page that benchpin wrote", html.IsPage, results); err != nil {
			return err
		}
	}
	var runs []html.Run
	var failed error
	for _, at := range results {
		path := at.path
		run, err := pipeline.ReportRun(ctx, path)
		damage := err
		if err != nil && f.given() {
			// What does not verify has a page too, which says so, as long as there is a record to speak of.
			run, err = pipeline.ReportDamaged(ctx, path)
		}
		if err != nil {
			return cmp.Or(damage, err)
		}
		run.Name = at.name
		if run.Archive != "" && f.given() {
			notHeld, err := verifyForPage(ctx, path, trusted, demands, &run)
			if err != nil {
				return err
			}
			if damage != nil && notHeld == nil {
				return damage
			}
			if failed == nil && notHeld != nil {
				failed = fmt.Errorf("%s: %w", at.name, notHeld)
			}
		}
		runs = append(runs, run)
	}
	if err := a.writePage(f.file, runs); err != nil {
		return err
	}
	return failed
}

// verifyForPage verifies an archive. The first error says what did not hold, the second that nothing could be verified.
func verifyForPage(ctx context.Context, path string, trusted []attest.PublicKey, demands attest.Policy, run *html.Run) (notHeld, err error) {
	v, err := pipeline.Verify(ctx, path, trusted, demands)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if found := v.Archive.SHA256Digest().String(); found != run.Archive {
		return nil, fmt.Errorf("%s changed while it was read: it was the archive %s, and is %s", path, run.Archive, found)
	}
	h := verdictHeader(path, v)
	run.Verification = &html.Verification{Holds: v.OK(), Signers: h.Keys, Assurance: h.Assurance}
	for _, one := range v.Attestations {
		for _, seen := range one.Times {
			if text := seen.String(); one.Status == attest.Holds && !slices.Contains(run.Verification.Times, text) {
				run.Verification.Times = append(run.Verification.Times, text)
			}
		}
	}
	run.Verification.Notes = attestationNotes(v.Attestations)
	for _, c := range v.Checks {
		run.Verification.Checks = append(run.Verification.Checks, pageCheck(v, c))
	}
	return failedChecks(v), nil
}

// writePage writes the page whole or not at all.
func (a *app) writePage(name string, runs []html.Run) error {
	var b bytes.Buffer
	if err := html.Write(&b, runs, html.Options{Writer: "benchpin " + a.toolVersion()}); err != nil {
		return err
	}
	if name == "-" {
		_, err := a.stdout.Write(b.Bytes())
		return err
	}
	if err := writeWhole(name, b.Bytes()); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err := fmt.Fprintf(a.stdout, "page    %s\n", name)
	return err
}
