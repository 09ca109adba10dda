package main

import (
	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/report"
)

func (a *app) reportCommand() *cobra.Command {
	var format formatFlags
	cmd := &cobra.Command{
		Use:     "report RUN|ARCHIVE [RUN|ARCHIVE...]",
		Short:   "Print the result page of a run, or the figures of several beside each other",
		GroupID: groupMain,
		Long: `Print the result page of a run folder, or of an archive in OCI layout. The record is read strictly, and nothing about it is proven by
printing it: "benchpin verify" does that, on an archive.

Several runs, or one with --format, are printed as tables: what they are, and their figures. "benchpin compare" says whether they may be
compared, and whether a difference is more than noise.`,
		Example: `  benchpin report ./results
  benchpin report ./results ./results --format markdown
  benchpin report ./results --badge ./au.svg`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected RUN or ARCHIVE, found no arguments (see %q)", cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(len(args)); err != nil {
				return err
			}
			runs, err := readRecords(cmd.Context(), args)
			if err != nil {
				return err
			}
			if format.badge != "" {
				if err := writeBadge(format.badge, runs[0].Record); err != nil {
					return err
				}
			}
			switch {
			case format.json:
				return a.printRecord(runs[0].Record)
			case format.format != "" || len(runs) > 1:
				return a.reportRuns(runs, format.format)
			}
			return report.Summary(a.stdout, runs[0].Record, a.style()...)
		},
	}
	format.add(cmd)
	return cmd
}
