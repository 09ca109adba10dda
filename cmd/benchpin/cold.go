package main

import "github.com/spf13/cobra"

// coldFlag is --cold of the commands that run workloads: benchpin.cold_cache with a word for the common case.
type coldFlag struct{ word string }

func (f *coldFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.word, "cold", "", "drop the data set's pages from the page cache before each `epoch` (no root needed); or =start, =none; "+
		"=all drops all pages of the machine, as root (default: benchpin.cold_cache of the workload)")
	cmd.Flags().Lookup("cold").NoOptDefVal = "epoch"
}

// set adds what was given to the keys that are set.
func (f *coldFlag) set(flags *workloadFlags) {
	if f.word != "" {
		flags.set = append(flags.set, "benchpin.cold_cache="+f.word)
	}
}
