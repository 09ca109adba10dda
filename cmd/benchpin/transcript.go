package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/audit"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
)

func (a *app) transcriptCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "transcript", Short: "Compute what a run must read, and check what one says it read", GroupID: groupParts, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.transcriptExpectedCommand(), a.transcriptCheckCommand())
	return cmd
}

// expectedDocument is what "transcript expected" prints with --json.
type expectedDocument struct {
	Workload     string                       `json:"workload"`
	Data         string                       `json:"data,omitempty"`
	Accelerators int                          `json:"accelerators"`
	Epochs       int                          `json:"epochs"`
	Root         string                       `json:"root"`
	Ranks        []string                     `json:"ranks"`
	Entries      record.Int                   `json:"entries"`
	Evaluation   *record.EvaluationTranscript `json:"evaluation,omitempty"`
}

func (a *app) transcriptExpectedCommand() *cobra.Command {
	var (
		flags        workloadFlags
		pinned       pinnedFlags
		manifestPath string
		value        string
		entries      string
		epoch, rank  int
		asJSON       bool
	)
	cmd := &cobra.Command{
		Use:   "expected WORKLOAD [OVERRIDE...]",
		Short: "Compute the transcript that a run of the workload must have, with no data at hand",
		Long: `Compute the transcript that a run of the workload must have: the digest of every rank's ordered account, and the root over them. No data is
read. For a data set that the workload generates no manifest is needed, because what is read follows from its recipe; for data that nobody
generated --manifest is.

With --entries the account itself is printed, one line a read: part, epoch, step, rank, sample, file, position, bytes, path.`,
		Example: `  benchpin transcript expected quickstart
  benchpin transcript expected quickstart --entries csv --epoch 1 --rank 0`,
		Args: oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			if entries != "" && entries != "jsonl" && entries != "csv" {
				return usagef("--entries %s: expected jsonl or csv", entries)
			}
			if entries != "" && asJSON {
				return usagef("--entries prints one line a read and --json one document: give one of them")
			}
			if entries == "" && (cmd.Flags().Changed("epoch") || cmd.Flags().Changed("rank")) {
				return usagef("--epoch and --rank choose among the lines of --entries")
			}
			if cmd.Flags().Changed("epoch") && epoch < 1 || cmd.Flags().Changed("rank") && rank < 0 {
				return usagef("--epoch %d --rank %d: epochs count from 1, ranks from 0", epoch, rank)
			}
			if err := pinned.set(cmd, &flags); err != nil {
				return err
			}
			resolved, err := a.load(cmd, &flags, args)
			if err != nil {
				return err
			}
			account, err := pipeline.ExpectedAccount(cmd.Context(), resolved, manifestPath, value)
			if err != nil {
				return err
			}
			defer account.Close()
			if epoch > account.Plan.Epochs || rank >= account.Plan.Accelerators {
				return usagef("--epoch %d --rank %d: the run has epochs 1 to %d and ranks 0 to %d", epoch, rank, account.Plan.Epochs, account.Plan.Accelerators-1)
			}
			if entries != "" {
				return a.printReads(cmd.Context(), account, entries, bench.Which{Epoch: epoch, Rank: rank})
			}
			return a.printExpected(cmd.Context(), account, asJSON)
		},
	}
	flags.add(cmd)
	pinned.add(cmd)
	cmd.Flags().StringVar(&manifestPath, "manifest", "", "`file` of the manifest's header, for data that nobody generated")
	cmd.Flags().StringVar(&value, "not-before-value", "", "public `value` that the run draws its order with (\"run --not-before-value\")")
	cmd.Flags().StringVar(&entries, "entries", "", "print every read in order, as `jsonl` or csv")
	cmd.Flags().IntVar(&epoch, "epoch", 0, "with --entries: only this epoch, from 1 (0: all)")
	cmd.Flags().IntVar(&rank, "rank", -1, "with --entries: only this rank, from 0 (-1: all)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// printExpected prints the digests of an account.
func (a *app) printExpected(ctx context.Context, account *pipeline.Account, asJSON bool) error {
	t, err := account.Transcript(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(expectedDocument{Workload: account.Workload.Digest.String(), Data: account.Root, Accelerators: account.Plan.Accelerators,
			Epochs: account.Plan.Epochs, Root: t.Root, Ranks: t.Ranks, Entries: t.Entries, Evaluation: t.Evaluation})
	}
	show := func(name, root string, ranks []string, entries record.Int) {
		a.printf("%-11s %s  %d entries\n", name, root, entries)
		for i, rank := range ranks {
			a.printf("  rank %-4d %s\n", i, rank)
		}
	}
	show("transcript", t.Root, t.Ranks, t.Entries)
	if e := t.Evaluation; e != nil {
		show("evaluation", e.Root, e.Ranks, e.Entries)
	}
	return nil
}

// readColumns are the columns of the account, in both forms.
var readColumns = []string{"part", "epoch", "step", "rank", "sample", "file", "position", "bytes", "path"}

// printReads prints the account itself. It stops where standard output does.
func (a *app) printReads(ctx context.Context, account *pipeline.Account, form string, which bench.Which) error {
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	values := make([]string, len(readColumns))
	fill := func(r *bench.Read) {
		values[0] = "training"
		if r.Evaluation {
			values[0] = "evaluation"
		}
		for i, v := range [...]uint64{uint64(r.Epoch), uint64(r.Step), uint64(r.Rank), r.Sample, uint64(r.File), uint64(r.Position), r.Logical} {
			values[i+1] = strconv.FormatUint(v, 10)
		}
		values[8] = r.Path
	}
	var flush func() error
	var line func(*bench.Read) error
	if form == "csv" {
		w := csv.NewWriter(out)
		if err := w.Write(readColumns); err != nil {
			return err
		}
		line = func(r *bench.Read) error { fill(r); return w.Write(values) }
		flush = func() error { w.Flush(); return w.Error() }
	} else {
		// Paths of a manifest have no characters that JSON escapes but these two.
		escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		line = func(r *bench.Read) error {
			fill(r)
			_, err := fmt.Fprintf(out, `{"part":"%s","epoch":%s,"step":%s,"rank":%s,"sample":%s,"file":%s,"position":%s,"bytes":%s,"path":"%s"}`+"\n",
				values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7], escape.Replace(values[8]))
			return err
		}
		flush = func() error { return nil }
	}
	err := account.Each(ctx, which, line)
	if err == nil {
		err = flush()
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return err
}

func (a *app) transcriptCheckCommand() *cobra.Command {
	var (
		manifestPath string
		recompute    string
		from         string
		asJSON       bool
	)
	cmd := &cobra.Command{
		Use:   "check RUN|ARCHIVE",
		Short: "Compute the transcript of a run again, and compare every rank",
		Long: `Compute the transcript that a run must have, from the workload in its record and the manifest, and compare it with the record, rank by
rank. An archive holds its manifest; for a run folder on a generated data set none is needed, for any other --manifest is. Signatures are not
looked at: "benchpin verify" does that, and checks the transcript with everything else.

The transcript of a run that hashed what it read (--verify inline) holds a digest of every sample's bytes. --recompute N makes the files of N
samples again from the recipe, reads them as the run did, and compares the digests; which samples follows from --from, a value that nobody
knew before the run, or from chance. --recompute all does so with every sample.

Exit code 4 when anything differs; every rank, and every sample, that does is named.`,
		Example: "  benchpin transcript check ./results",
		Args:    exactly("RUN|ARCHIVE"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			again, err := recomputeOf(recompute, from)
			if err != nil {
				return err
			}
			r, err := pipeline.OpenResult(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.Close()) }()
			report, err := pipeline.TranscriptCheck(cmd.Context(), r, manifestPath, again)
			if err != nil {
				return err
			}
			if asJSON {
				if err := a.printJSON(report); err != nil {
					return err
				}
			}
			return a.judgeTranscript(report, asJSON)
		},
	}
	cmd.Flags().StringVar(&manifestPath, "manifest", "", "`file` of the manifest's header, for a run folder")
	cmd.Flags().StringVar(&recompute, "recompute", "", "make the digests of `N` samples that were read again from the recipe, or of all")
	cmd.Flags().StringVar(&from, "from", "", "with --recompute N: public `value` that draws the samples (default: chance)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// recomputeOf is what --recompute and --from ask for.
func recomputeOf(samples, from string) (*pipeline.Recompute, error) {
	switch samples {
	case "":
		if from != "" {
			return nil, usagef("--from draws the samples of --recompute N")
		}
		return nil, nil
	case "all":
		return &pipeline.Recompute{}, nil
	}
	n, err := strconv.ParseInt(samples, 10, 64)
	if err != nil || n < 1 {
		return nil, usagef("--recompute %s: expected a number of samples, or all", samples)
	}
	if from == "" {
		from = rand.Text()
	}
	return &pipeline.Recompute{Samples: n, From: from}, nil
}

// mostNamed bounds the differing ranks that are named one by one.
const mostNamed = 20

func (a *app) judgeTranscript(t *pipeline.TranscriptReport, quiet bool) error {
	if len(t.Differences) == 0 {
		if !quiet {
			a.printf("%s  as expected: %d ranks, %d entries\n", t.Expected, t.Ranks, t.Entries)
			a.printRecomputed(t.Recomputed)
		}
		return nil
	}
	ranks, rest := 0, 0
	for i, d := range t.Differences {
		if d.Rank != nil {
			ranks++
		} else if strings.HasPrefix(d.Field, "digest of sample ") {
			rest++
		}
		if i < mostNamed {
			a.notef("benchpin: %s", d)
		}
	}
	text := fmt.Sprintf("the transcript of run %s is not what its workload and data set give: %d of %d ranks differ", t.Run, ranks, t.Ranks)
	if t.Recomputed != nil {
		text += fmt.Sprintf(", and %d of %d digests that were made again", rest, t.Recomputed.Samples)
	}
	if len(t.Differences) > mostNamed {
		text += fmt.Sprintf(" (the first %d differences are named)", mostNamed)
	}
	if t.Status == record.StatusIncomplete {
		text += "; the run is incomplete, and its transcript covers what was read until it ended"
	}
	return &codedError{exitVerify, errors.New(text)}
}

// printRecomputed says what was made again, and what that says of the rest.
func (a *app) printRecomputed(r *pipeline.Recomputed) {
	if r == nil {
		return
	}
	a.printf("digests of %d of %d samples, in %d files, made again from the recipe: all equal\n", r.Samples, r.Of, r.Files)
	if r.From != "" {
		a.printf("drawn from %q\n", r.From)
	}
	for _, s := range r.Assurance {
		if s.Method != audit.All {
			a.printf("other digests for at least %.4g %% of the samples would have been found with %g %% (%s)\n", 100*s.Share, 100*s.Confidence, s.Method)
		}
	}
}
