package main

import (
	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/report"
)

func (a *app) reportCommand() *cobra.Command {
	var format formatFlags
	var page htmlFlags
	var remote registryFlags
	cmd := &cobra.Command{
		Use:     "report RUN|ARCHIVE|REFERENCE...",
		Short:   "Print the result page of a run, or the figures of several, or write a page for browsers",
		GroupID: groupMain,
		Long: `Print the result page of a run folder, or of an archive in OCI layout, or of one in a registry. The record is read strictly, and nothing about it is proven by
printing it: "benchpin verify" does that, on an archive.

Several runs, or one with --format, are printed as tables: what they are, and their figures. "benchpin compare" says whether they may be
compared, and whether a difference is more than noise.

--html FILE writes a page for browsers, of one run or of up to 8 side by side: one file with everything in it, without scripts, which needs
no network and prints. With --key or --policy archives are verified, and the page says what was found; when one does not verify, the page is
written as long as the archive's record can be read, and says so, and the exit code is 4.

--html and --badge replace a page and a badge that benchpin wrote, and nothing else.`,
		Example: `  benchpin report ./results
  benchpin report ./results ./results --format markdown
  benchpin report ./results --badge ./au.svg
  benchpin report ./results --html ./report.html
  benchpin report ./demo/archive --html ./report.html --key ./demo/keys/benchpin.pub`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected RUN, ARCHIVE or REFERENCE, found no arguments (see %q)", cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := page.check(&format); err != nil {
				return err
			}
			if page.file != "" {
				return a.reportHTML(cmd.Context(), args, &page, &remote)
			}
			if err := format.check(len(args)); err != nil {
				return err
			}
			found, done, err := a.resultsAt(cmd.Context(), args, &remote)
			if err != nil {
				return err
			}
			defer done()
			if format.badge != "" && format.badge != "-" {
				if err := mustBeReplaceable("--badge", format.badge, "a badge that benchpin wrote", report.IsBadge, found); err != nil {
					return err
				}
			}
			runs, err := readRecords(cmd.Context(), found)
			if err != nil {
				return err
			}
			if format.badge == "-" {
				return report.Badge(a.stdout, runs[0].Record)
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
	page.add(cmd)
	remote.add(cmd)
	return cmd
}
