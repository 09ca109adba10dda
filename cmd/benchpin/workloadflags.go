package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/workload"
)

// workloadFlags are the flags of every command that takes a WORKLOAD.
type workloadFlags struct {
	seed         uint64
	accelerators int
	perProcess   int
	set          []string
	strict       bool
}

func (f *workloadFlags) add(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the data set, 64 bits, decimal (default: benchpin.seed of the workload)")
	cmd.Flags().IntVar(&f.accelerators, "accelerators", 0, "simulated accelerators (default: benchpin.accelerators of the workload)")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "set a key of the workload, `a.b=v`, as ++workload.a.b=v does; may be repeated")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "refuse unknown keys instead of warning")
}

// addProcesses adds the flag of the commands that several processes carry out together.
func (f *workloadFlags) addProcesses(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.perProcess, "accelerators-per-process", 0, "accelerators of each process that an MPI launcher started (default: all are dealt out evenly)")
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
	return a.loadFor(cmd, f, args, 1)
}

// loadFor is load for so many processes that run the workload together. Where the command line gives no number of accelerators, it is that
// of all processes with --accelerators-per-process, and else the workload's, but one for each process at least.
func (a *app) loadFor(cmd *cobra.Command, f *workloadFlags, args []string, processes int) (*workload.Resolved, error) {
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
	if cmd.Flags().Changed("accelerators-per-process") {
		if f.perProcess < 1 {
			return nil, usagef("--accelerators-per-process %d: expected 1 or more", f.perProcess)
		}
		set = append(set, fmt.Sprintf("benchpin.accelerators_per_process=%d", f.perProcess))
	}
	resolved, err := workload.Load(source, workload.Options{Overrides: overrides, Set: set, Strict: f.strict})
	if err != nil {
		return nil, err
	}
	given := slices.ContainsFunc(slices.Concat(overrides, set), func(o string) bool { return strings.Contains(o, "benchpin.accelerators=") })
	all := resolved.Workload.Benchpin.Accelerators
	switch each := resolved.Workload.Benchpin.AcceleratorsPerProcess; {
	case given:
	case cmd.Flags().Changed("accelerators-per-process"):
		all = processes * f.perProcess
	case each == 0:
		all = max(all, processes)
	}
	if all != resolved.Workload.Benchpin.Accelerators {
		set = append(set, fmt.Sprintf("benchpin.accelerators=%d", all))
		if resolved, err = workload.Load(source, workload.Options{Overrides: overrides, Set: set, Strict: f.strict}); err != nil {
			return nil, err
		}
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
