package main

import (
	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/pipeline"
)

// pinLayoutFlags are the flags that say how samples lie in the files of a data set that is pinned.
type pinLayoutFlags struct{ pipeline.PinLayout }

func (f *pinLayoutFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Format, "format", "", "`FORMAT` of the files, for the manifest: raw, jpeg, npz, hdf5, ...")
	cmd.Flags().IntVar(&f.SamplesPerFile, "samples-per-file", 0, "samples in each file (default: what the files say, or 1)")
	cmd.Flags().StringVar(&f.DType, "dtype", "", "element type of the samples, numpy's `NAME` (default: uint8)")
}

// layout is what they say, nil where none is given.
func (f *pinLayoutFlags) layout(cmd *cobra.Command) (*pipeline.PinLayout, error) {
	switch {
	case cmd.Flags().Changed("samples-per-file") && f.SamplesPerFile < 1:
		return nil, usagef("--samples-per-file %d: expected 1 or more", f.SamplesPerFile)
	case f.Format != "":
		return &f.PinLayout, nil
	case f.SamplesPerFile != 0 || f.DType != "":
		return nil, usagef("expected --format FORMAT beside --samples-per-file and --dtype: they say how samples lie in files of a format")
	}
	return nil, nil
}
