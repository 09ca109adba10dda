package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/compare"
	"github.com/benchpin/benchpin/pkg/explain"
)

// The formats of report and compare.
const (
	formatTable    = "table"
	formatMarkdown = "markdown"
	formatCSV      = "csv"
	formatJSON     = "json"
)

func (a *app) compareCommand() *cobra.Command {
	var (
		anyway, asJSON bool
		format         string
		remote         registryFlags
	)
	cmd := &cobra.Command{
		Use:     "compare RUN|ARCHIVE|REFERENCE...",
		Short:   "Compare runs with the first one, and tell differences from noise",
		GroupID: groupMain,
		Long: `Compare each run with the first one: every figure in both, their ratio, its confidence interval from the step times, and whether the
difference is more than the noise of the steps. Several runs of one configuration are summarised, each once. A run is a run folder, an archive in
OCI layout, or a reference to one in a registry; the step times must be those that the record names, and signatures are not checked: "benchpin verify" does that.

Runs that are no like things are refused, with what differs: an incomplete run, another data root, another schedule, other rules, another
workload. --anyway compares them all the same, and says so on top. docs/compare.md says how the interval comes about.

Exit code 5: the runs are no like things, and nothing was compared. A difference in figures is no failure.`,
		Example: "  benchpin compare ./results ./results",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("expected at least two run folders or archives, found %d: %q (see %q)", len(args), args, cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && cmd.Flags().Changed("format") && format != formatJSON {
				return usagef("--json and --format %s: choose one", format)
			} else if asJSON {
				format = formatJSON
			}
			if err := knownFormat(format); err != nil {
				return err
			}
			found, done, err := a.resultsAt(cmd.Context(), args, &remote)
			if err != nil {
				return err
			}
			defer done()
			runs := make([]compare.Run, 0, len(args))
			for _, at := range found {
				r, err := readForComparing(cmd.Context(), at)
				if err != nil {
					return err
				}
				runs = append(runs, r)
			}
			res, err := compare.Compare(runs, anyway, compare.Options{})
			if err != nil {
				return err
			}
			switch format {
			case formatJSON:
				err = a.printJSON(res)
			case formatCSV:
				err = res.WriteCSV(a.stdout)
			case formatMarkdown:
				err = res.WriteMarkdown(a.stdout)
			default:
				err = res.WriteText(a.stdout, a.style()...)
			}
			if err == nil && res.Refused {
				err = &codedError{exitDiffers, fmt.Errorf("not compared, because these are not like things: %s; --anyway compares them all the same", res.Reasons())}
			}
			return err
		},
	}
	remote.add(cmd)
	cmd.Flags().BoolVar(&anyway, "anyway", false, "compare runs that are no like things")
	cmd.Flags().StringVar(&format, "format", formatTable, "table, markdown, csv or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	return cmd
}

// knownFormat refuses a format that does not exist.
func knownFormat(format string) error {
	switch format {
	case formatTable, formatMarkdown, formatCSV, formatJSON:
		return nil
	}
	return usagef("--format %q: expected table, markdown, csv or json", format)
}

// readForComparing reads a record and the sums of its step times, of which nothing stays open.
func readForComparing(ctx context.Context, at resultAt) (r compare.Run, err error) {
	o, err := explain.Open(ctx, at.path)
	if err != nil {
		return compare.Run{}, err
	}
	defer func() {
		if cerr := o.Close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	r = compare.Run{Name: at.name, Record: o.Record}
	if o.Steps == nil {
		return r, nil
	}
	f, err := stats.Open(o.Steps, o.Steps.Bytes)
	if err != nil {
		return compare.Run{}, fmt.Errorf("%s: %s: %w", at.name, o.Steps.Name, err)
	}
	defer f.Close()
	m := &o.Workload.Output.Metric
	r.Steps, err = compare.Read(ctx, f, compare.WindowOf(int64(o.Record.Plan.StepsPerEpoch), int64(m.ExcludeStartSteps), int64(m.ExcludeEndSteps)))
	if err != nil {
		return compare.Run{}, fmt.Errorf("%s: %s: %w", at.name, o.Steps.Name, err)
	}
	return r, nil
}
