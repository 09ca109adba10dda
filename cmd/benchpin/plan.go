package main

import (
	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

func (a *app) planCommand() *cobra.Command {
	var (
		flags        workloadFlags
		pinned       pinnedFlags
		manifestPath string
		asJSON       bool
	)
	cmd := &cobra.Command{
		Use:     "plan WORKLOAD [OVERRIDE...]",
		Short:   "What would happen: files, bytes, steps, memory, time, and the rate the storage must deliver; changes nothing",
		GroupID: groupMain,
		Long: `Compute what a run would do, and touch nothing: files, samples, steps, bytes, checkpoints, memory, expected duration, and the rate that the
storage must deliver for this many accelerators to reach their AU threshold, which is what storage is sized by.

With --manifest the plan is for that data set; without, for the one that the workload would generate.`,
		Example: "  benchpin plan quickstart --accelerators 8",
		Args:    oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pinned.set(cmd, &flags); err != nil {
				return err
			}
			resolved, err := a.load(cmd, &flags, args)
			if err != nil {
				return err
			}
			p, resolved, err := pipeline.PlanOn(cmd.Context(), resolved, manifestPath)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(p.Plan)
			}
			w := resolved.Workload
			cold := w.Benchpin.ColdCache
			if pipeline.IsBucket(pipeline.DataFolder(w)) {
				cold = "none to drop: objects are in no page cache of this machine"
			}
			return report.Plan(a.stdout, p.Plan, report.PlanExtras{
				Workload: resolved.Name, Digest: resolved.Digest.String(), Verification: w.Benchpin.Verify, Cold: cold, Warnings: p.Notes,
				KeptBytes: record.Int(p.FileBytes),
			}, a.style()...)
		},
	}
	flags.add(cmd)
	pinned.add(cmd)
	cmd.Flags().StringVar(&manifestPath, "manifest", "", "`file` of the manifest's header, or s3://BUCKET/NAME.json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
