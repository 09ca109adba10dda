package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/store"
)

func (a *app) reportCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "report RUN",
		Short:   "Print the result page of a run folder",
		GroupID: groupMain,
		Long: `Print the result page of a run folder. The record is read strictly, and nothing about it is proven by printing it: "benchpin verify" does
that, on an archive.`,
		Example: "  benchpin report ./results",
		Args:    exactly("RUN"),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := store.ReadRegular(filepath.Join(args[0], pipeline.RecordName), record.MaxBytes)
			if err != nil {
				return fmt.Errorf("run folder: %w; \"benchpin run\" makes one", err)
			}
			r, err := record.Parse(b)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printRecord(r)
			}
			return report.Summary(a.stdout, r, a.style()...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the record")
	return cmd
}
