package main

import (
	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/workload"
)

const verifyUsage = "when the data set is compared with its manifest: before, inline (hashed while it is read), after, sample (some files, before) or none " +
	"(default: benchpin.verify of the workload)"

// verifyFlags are those of the commands that run workloads: benchpin.verify and what belongs to it.
type verifyFlags struct {
	mode, sample, seed string
}

func (f *verifyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.mode, "verify", "", verifyUsage)
	cmd.Flags().StringVar(&f.sample, "verify-sample", "", "`share` of the files that --verify sample hashes: 5%, or a number of files (default: benchpin.verify_sample of the workload)")
	cmd.Flags().StringVar(&f.seed, "sample-seed", "", "`number` by which --verify sample draws files, 64 bits, decimal (default: drawn at random and recorded)")
}

// set adds what was given to the keys that are set.
func (f *verifyFlags) set(flags *workloadFlags) {
	if f.mode != "" {
		flags.set = append(flags.set, "benchpin.verify="+f.mode)
	}
	if f.sample != "" {
		flags.set = append(flags.set, "benchpin.verify_sample="+f.sample)
	}
}

// check refuses flags that would do nothing.
func (f *verifyFlags) check(w *workload.Workload) error {
	if (f.sample != "" || f.seed != "") && w.Benchpin.Verify != workload.VerifySample {
		return usagef("--verify-sample, --sample-seed: expected --verify sample beside them, found %s, which draws no files", w.Benchpin.Verify)
	}
	return nil
}
