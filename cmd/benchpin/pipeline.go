package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/workload"
)

func (a *app) pipelineCommand() *cobra.Command {
	var (
		flags      workloadFlags
		data       string
		exclude    []string
		certify    bool
		pinned     pinnedFlags
		dir        string
		sign       signFlags
		workers    int
		verify     verifyFlags
		overwrite  bool
		journal    string
		redact     bool
		registered string
		watch      liveFlags
		bracket    bracketFlags
		asJSON     bool
		cold       coldFlag
	)
	cmd := &cobra.Command{
		Use:     "pipeline WORKLOAD [OVERRIDE...]",
		Short:   "The whole way: generate, pin, verify, run, attest, archive, verify again",
		GroupID: groupMain,
		Long: `Go the whole way with one workload: generate its data set from its seed, pin it in a manifest, verify it, run, attest the result, archive
it, and verify the archive again. Everything goes below --dir: data/, manifest.json, runs/<id>/, archive/, checkpoints/, and the
journal of all attempts, journal.jsonl.

With --data a folder is taken as it is: it is pinned, verified, run on and left alone, and nothing is generated.

Without --key a key pair is made in DIR/keys/. Such a key proves only that nothing changed since; sign with a key of yours to say who
ran it. The page at the end says what was checked, by whom it can be checked, and what it does not show.

Started by an MPI launcher (mpirun -np 4 benchpin pipeline ...), the processes generate and run together; the first one signs and archives.`,
		Example: `  benchpin pipeline quickstart --dir ./demo
  benchpin pipeline quickstart --dir ./two --accelerators 4 ++workload.train.epochs=2
  benchpin pipeline pinned --data ./qs --dir ./as-it-is-too`,
		Args:        oneWorkload,
		Annotations: map[string]string{several: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			world, ctx, free, err := a.together(cmd)
			if err != nil {
				return err
			}
			defer free()
			verify.set(&flags)
			cold.set(&flags)
			if err := pinned.set(cmd, &flags); err != nil {
				return err
			}
			if len(exclude) > 0 && data == "" {
				return usagef("--exclude: expected --data FOLDER beside it: a generated data set has no files that are none of its own")
			}
			if _, err := manifest.ParseExclude(exclude); err != nil {
				return usagef("--exclude: %w", err)
			}
			resolved, err := a.loadFor(cmd, &flags, args, world.Size())
			if err != nil {
				return err
			}
			if err := verify.check(resolved.Workload); err != nil {
				return err
			}
			var key attest.Signer
			if world.Rank() == 0 {
				if key, err = a.signer(ctx, &sign); err != nil {
					return err
				}
			}
			notBefore, err := bracket.notBefore(a.now())
			if err != nil {
				return err
			}
			var stamper func(context.Context, []byte) ([]byte, error)
			if len(sign.timestamps) > 0 && world.Rank() == 0 {
				stamper = stampBy(sign.timestamps[0], key.Trust().Witness)
			}
			tool, err := environment.Tool(a.toolVersion(), commit)
			if err != nil {
				return err
			}
			if journal == "" {
				journal = pipeline.Layout{Dir: dir}.Journal()
			}
			notify, end := a.notify()
			defer end()
			if world.Rank() == 0 {
				unlive, err := watch.start(a, &notify, cmp.Or(data, pipeline.Layout{Dir: dir}.Data()), append(ofLayout(dir), journalFile(journal))...)
				if err != nil {
					return err
				}
				defer unlive()
			}
			var plain *report.PlainReads
			notify.PlainReads = func(p *report.PlainReads) { plain = p }
			out, err := pipeline.Pipeline(ctx, pipeline.Options{Workload: resolved, Data: data, Exclude: exclude, Certify: certify, Dir: dir,
				Journal: journalFile(journal), Key: key, Workers: workers, SampleSeed: verify.seed, Preregistered: registered, NotBefore: notBefore, Stamp: stamper, Redact: redact, OverwriteCheckpoints: overwrite,
				Tool: tool, World: world, Notify: notify})
			end()
			defer out.Close()
			if out.Record != nil {
				if perr := a.printResult(out, plain, publicHalf(sign.key, key), sign.again(key), asJSON); perr != nil {
					return errors.Join(err, perr)
				}
			}
			return err
		},
	}
	flags.add(cmd)
	flags.addProcesses(cmd)
	cold.add(cmd)
	cmd.Flags().StringVar(&data, "data", "", "`folder`, or s3://BUCKET[/PREFIX], of a data set to take as it is, instead of generating one; nothing is written into it")
	cmd.Flags().StringArrayVar(&exclude, "exclude", nil, "with --data: leave out files and folders of this `pattern`, as \"data pin\" does; may be repeated")
	pinned.add(cmd)
	cmd.Flags().BoolVar(&certify, "certify", false, "measure how much of the data set repeats and how far it compresses, and attest it with the result")
	cmd.Flags().StringVar(&dir, "dir", "benchpin", "`folder` of everything that is made")
	sign.add(cmd, "key", "to sign with"+keyForms+" (default: one is made in DIR/keys)", nil)
	cmd.Flags().IntVar(&workers, "workers", 0, "files that are generated or hashed at once (0: as many as the cores keep busy)")
	verify.add(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite-checkpoints", false, overwriteUsage)
	cmd.Flags().StringVar(&journal, "journal", "", "`file` of the journal that every attempt is entered into, or none (default: DIR/journal.jsonl)")
	cmd.Flags().StringVar(&registered, "preregistered", "", "`file` of the pre-registration that the run must keep to (\"preregister\" makes one)")
	bracket.add(cmd)
	cmd.Flags().BoolVar(&redact, "redact", false, "leave host names and serial numbers out of the record")
	watch.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the record")
	return cmd
}

// printResult prints the record, or the page of the result and the verdict on its archive.
// public is the file of the public key, where the pipeline has not made it; trust are the flags that name whom else to trust, and who signed where
// no key did; plain is what was measured after a run that missed its AU.
func (a *app) printResult(out *pipeline.Outcome, plain *report.PlainReads, public, trust string, asJSON bool) error {
	if asJSON {
		return a.printRecord(out.Record)
	}
	if err := report.SummaryWithReads(a.stdout, out.Record, plain, a.style()...); err != nil {
		return err
	}
	if out.Verification == nil {
		return nil
	}
	a.printf("\n")
	if out.Archive == "" {
		return a.printVerdict("not kept", out.Verification)
	}
	if err := a.printVerdict(out.Archive, out.Verification); err != nil {
		return err
	}
	policy := trust
	if !strings.Contains(trust, " --certificate-identity ") {
		policy = " --key " + quoted(cmp.Or(out.PublicKey, public, "YOUR.pub")) + trust
	}
	if out.Record.Dataset.Verification.Mode == workload.VerifyNone {
		policy += " --allow-unverified"
	}
	a.printf("\nrun       %s\narchive   %s\nverify    benchpin verify %s%s\n", out.Run, out.Archive, quoted(out.Archive), policy)
	return nil
}

// quoted makes a path safe to paste into a shell.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune(safeInShell, r) }) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

const safeInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-+@%:,="
