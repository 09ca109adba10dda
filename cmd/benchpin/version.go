package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/environment"
)

// toolVersion is the version that the linker was told, or what the Go build information knows.
func (a *app) toolVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit, binary digest and the digests of all modules linked in",
		Example: "  benchpin version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tool, err := environment.Tool(a.toolVersion(), commit)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(tool)
			}
			a.printf("benchpin %s\ncommit   %s\ngo       %s %s\nbinary   %s\nmodules  %d\n", tool.Version, orUnknown(tool.Commit), tool.Go, tool.Platform, tool.Binary, len(tool.Modules))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
