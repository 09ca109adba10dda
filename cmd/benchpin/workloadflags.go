package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/workload"
)

// workloadFlags are the flags of every command that takes a WORKLOAD.
type workloadFlags struct {
	seed         uint64
	accelerators int
	set          []string
	strict       bool
}

func (f *workloadFlags) add(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the data set, 64 bits, decimal (default: benchpin.seed of the workload)")
	cmd.Flags().IntVar(&f.accelerators, "accelerators", 0, "simulated accelerators (default: benchpin.accelerators of the workload)")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "set a key of the workload, `a.b=v`, as ++workload.a.b=v does; may be repeated")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "refuse unknown keys instead of warning")
}

// pinnedFlags are the flags of the commands that run a workload on data that nobody generated: how its files are read.
type pinnedFlags struct {
	format  string
	samples int
}

func (f *pinnedFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "format", "", "read the files of a pinned data set as this `FORMAT`, raw for any (default: what the manifest, the workload or their names say)")
	cmd.Flags().IntVar(&f.samples, "samples-per-file", 0, "samples in each file of a pinned data set (default: dataset.num_samples_per_file of the workload)")
}

// set gives them to the workload.
func (f *pinnedFlags) set(cmd *cobra.Command, w *workloadFlags) error {
	if cmd.Flags().Changed("format") {
		w.set = append(w.set, "dataset.format="+f.format)
	}
	if cmd.Flags().Changed("samples-per-file") {
		if f.samples < 1 {
			return usagef("--samples-per-file %d: expected 1 or more", f.samples)
		}
		w.set = append(w.set, fmt.Sprintf("dataset.num_samples_per_file=%d", f.samples))
	}
	return nil
}

// load resolves the one WORKLOAD among args with the overrides among args and flags, and prints its warnings.
func (a *app) load(cmd *cobra.Command, f *workloadFlags, args []string) (*workload.Resolved, error) {
	names, overrides := splitOverrides(args)
	source, err := workload.Find(names[0])
	if err != nil {
		return nil, err
	}
	set := f.set
	if cmd.Flags().Changed("seed") {
		set = append(set, fmt.Sprintf("benchpin.seed=%d", f.seed))
	}
	if cmd.Flags().Changed("accelerators") {
		set = append(set, fmt.Sprintf("benchpin.accelerators=%d", f.accelerators))
	}
	resolved, err := workload.Load(source, workload.Options{Overrides: overrides, Set: set, Strict: f.strict})
	if err != nil {
		return nil, err
	}
	for _, warning := range resolved.Warnings {
		a.notef("benchpin: warning: %s", warning)
	}
	a.noteInert(resolved)
	return resolved, nil
}

// noteInert tells which keys of a workload make no difference.
func (a *app) noteInert(w *workload.Resolved) {
	if inert := w.Inert(); len(inert) > 0 {
		a.notef("benchpin: no effect here: %s (docs/dlio.md says why)", strings.Join(inert, ", "))
	}
}
