package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// formatFlags say in which form runs are printed beside each other.
type formatFlags struct {
	format, badge string
	json          bool
}

func (f *formatFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "format", "", "print the figures of one or several runs beside each other: table, markdown, csv or json")
	cmd.Flags().StringVar(&f.badge, "badge", "", "write a badge of one run to this `file` (SVG), or to standard output, and nothing else, if it is -")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the record of one run")
}

// check refuses what does not go together.
func (f *formatFlags) check(runs int) error {
	switch {
	case f.json && f.format != "":
		return usagef("--json prints the record and --format %s figures: choose one", f.format)
	case f.json && runs > 1:
		return usagef("--json prints one record, and there are %d runs; --format json prints the figures of several", runs)
	case f.badge != "" && runs > 1:
		return usagef("--badge makes a badge of one run, and there are %d", runs)
	case f.badge == "-" && (f.json || f.format != ""):
		return usagef("--badge - writes the badge to standard output, and --json and --format something else: choose one, or a file for the badge")
	case f.format != "":
		return knownFormat(f.format)
	}
	return nil
}

// readRecords reads the records of run folders and archives.
func readRecords(ctx context.Context, results []resultAt) ([]report.Run, error) {
	runs := make([]report.Run, 0, len(results))
	for _, at := range results {
		r, err := pipeline.OpenResult(ctx, at.path)
		if err != nil {
			return nil, err
		}
		if err := r.Close(); err != nil {
			return nil, fmt.Errorf("%s: %w", at.name, err)
		}
		runs = append(runs, report.Run{Name: at.name, Record: r.Record})
	}
	return runs, nil
}

// reportRuns prints runs beside each other.
func (a *app) reportRuns(runs []report.Run, format string) error {
	switch format {
	case formatJSON:
		return a.printJSON(report.NewDocument(runs))
	case formatCSV:
		return report.WriteFiguresCSV(a.stdout, runs)
	case formatMarkdown:
		return report.WriteMarkdown(a.stdout, report.SideBySide(runs))
	default:
		return report.WriteText(a.stdout, report.SideBySide(runs), a.style()...)
	}
}

// writeBadge writes the badge of a run to a file, replacing one that is there.
func writeBadge(path string, r *record.Record) error {
	var b bytes.Buffer
	if err := report.Badge(&b, r); err != nil {
		return err
	}
	if err := writeWhole(path, b.Bytes()); err != nil {
		return fmt.Errorf("badge: %w", err)
	}
	return nil
}
