package main

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

const overwriteUsage = "let checkpoints replace files of the same names that are not those of this very workload"

func (a *app) runCommand() *cobra.Command {
	var (
		flags       workloadFlags
		data        dataFlags
		pinned      pinnedFlags
		out         string
		checkpoints string
		verify      verifyFlags
		effect      bool
		overwrite   bool
		journal     string
		cold        coldFlag
		redact      bool
		registered  string
		watch       liveFlags
		bracket     bracketFlags
		stamp       stampFlags
		asJSON      bool
	)
	cmd := &cobra.Command{
		Use:     "run WORKLOAD [OVERRIDE...]",
		Short:   "Verify the data set, run the workload on it, write the run folder",
		GroupID: groupMain,
		Long: `Verify the data set against its manifest, run the workload on it, and write the run folder: record.json and the raw step times.

The data set may be one that nobody generated, pinned by "benchpin data pin". Its files are read as what --format says, or else the
manifest, the workload, or their names; "raw" reads any file as one sample. The workload "pinned" takes any folder.

Started by an MPI launcher (mpirun -np 4 benchpin run ...), the processes carry the run out together and make one record. --accelerators is
the number of all, --accelerators-per-process that of each; without either it is the workload's, but one for each process at least.

Every attempt is entered into a hash-chained journal before it begins and when it ends, however it ends; the record holds the journal's head
and the number of this attempt with the same workload on the same data ("benchpin journal show").

--not-before-value draws the order of samples with a value that nobody knew before a time, and --timestamp-url has a third party see the
transcript's root afterwards: together they bound the run from outside, and "benchpin verify" says which throughput that proves.

Exit code 3: the run is complete and misses a threshold. 4: the data set is not what its manifest says. With verification before the
run nothing was run then and nothing is printed; where it was found during the run or after it, the run folder holds what there is,
marked incomplete. 130: interrupted; what there is stands in the run folder, marked incomplete.`,
		Example: `  benchpin data generate quickstart --data ./qs
  benchpin run quickstart --data ./qs --checkpoints ./checkpoints --out ./results
  benchpin run pinned --data ./qs --manifest ./pinned.json --out ./as-it-is`,
		Args:        oneWorkload,
		Annotations: map[string]string{several: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			world, ctx, free, err := a.together(cmd)
			if err != nil {
				return err
			}
			defer free()
			verify.set(&flags)
			if err := pinned.set(cmd, &flags); err != nil {
				return err
			}
			cold.set(&flags)
			resolved, err := a.loadFor(cmd, &flags, args, world.Size())
			if err != nil {
				return err
			}
			if err := verify.check(resolved.Workload); err != nil {
				return err
			}
			if err := data.complete(resolved.Workload); err != nil {
				return err
			}
			tool, err := environment.Tool(a.toolVersion(), commit)
			if err != nil {
				return err
			}
			notBefore, err := bracket.notBefore(a.now())
			if err != nil {
				return err
			}
			stamper, err := stamp.stamp(a)
			if err != nil {
				return err
			}
			id := pipeline.NewID(a.now())
			if out == "" {
				out = filepath.Join("runs", id)
			}
			if journal == "" {
				journal = pipeline.JournalBeside(out)
			}
			notify, end := a.notify()
			defer end()
			if world.Rank() == 0 {
				unlive, err := watch.start(a, &notify, data.data, out, data.manifest, journalFile(journal))
				if err != nil {
					return err
				}
				defer unlive()
			}
			var plain *report.PlainReads
			notify.PlainReads = func(p *report.PlainReads) { plain = p }
			rec, err := pipeline.Run(ctx, pipeline.RunOptions{Workload: resolved, Data: data.data, Manifest: data.manifest,
				Checkpoints: checkpoints, OverwriteCheckpoints: overwrite, Out: out, ID: id, Journal: journalFile(journal), Workers: data.workers, Redact: redact, SampleSeed: verify.seed, Preregistered: registered, ObserverEffect: effect,
				NotBefore: notBefore, Stamp: stamper, Tool: tool, World: world, Notify: notify})
			end()
			if rec == nil {
				return err
			}
			a.notef("run folder: %s", out)
			if asJSON {
				return errors.Join(err, a.printRecord(rec))
			}
			return errors.Join(err, report.SummaryWithReads(a.stdout, rec, plain, a.style()...))
		},
	}
	flags.add(cmd)
	flags.addProcesses(cmd)
	cold.add(cmd)
	data.add(cmd)
	pinned.add(cmd)
	cmd.Flags().StringVar(&out, "out", "", "run `folder`; results are never overwritten (default: runs/<id>)")
	cmd.Flags().StringVar(&checkpoints, "checkpoints", "", "`folder`, or s3://BUCKET[/PREFIX], that checkpoints are written to (default: checkpoint.checkpoint_folder)")
	verify.add(cmd)
	cmd.Flags().BoolVar(&effect, "observer-effect", false, "with --verify inline: run the timed part four times, in turns without hashing and with it, and record the difference in AU")
	cmd.Flags().BoolVar(&overwrite, "overwrite-checkpoints", false, overwriteUsage)
	cmd.Flags().StringVar(&journal, "journal", "", "`file` of the journal that every attempt is entered into, or none (default: journal.jsonl beside the run folder)")
	cmd.Flags().StringVar(&registered, "preregistered", "", "`file` of the pre-registration that the run must keep to (\"preregister\" makes one)")
	bracket.add(cmd)
	stamp.add(cmd)
	cmd.Flags().BoolVar(&redact, "redact", false, "leave host names and serial numbers out of the record")
	watch.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the record")
	return cmd
}

// printRecord writes the record in its canonical form.
func (a *app) printRecord(r *record.Record) error {
	b, err := r.Canonical()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(b)
	return err
}
