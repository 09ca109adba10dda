package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/pipeline"
)

// fetchManifests lets every command that reads the file of --manifest take the address of one in a bucket: it is copied to a temporary
// folder for as long as the command runs. Those that write it, or have a workload that says how its bucket is reached, do so themselves.
func (a *app) fetchManifests(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		a.fetchManifests(cmd)
		flag := cmd.Flags().Lookup("manifest")
		if flag == nil || cmd.RunE == nil || slices.Contains([]string{"generate", "pin", "run", "plan", "dlio"}, cmd.Name()) {
			continue
		}
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
			address := flag.Value.String()
			if !pipeline.IsBucket(address) {
				return run(cmd, args)
			}
			path, free, err := pipeline.FetchManifest(cmd.Context(), address)
			if err != nil {
				return fmt.Errorf("--manifest: %w", err)
			}
			defer func() { err = errors.Join(err, free()) }()
			if err := flag.Value.Set(path); err != nil {
				return err
			}
			return run(cmd, args)
		}
	}
}
