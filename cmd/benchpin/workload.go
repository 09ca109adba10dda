package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/workload"
)

func (a *app) workloadCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "workload", Short: "List, show and check workloads", GroupID: groupParts, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.workloadListCommand(), a.workloadShowCommand(), a.workloadCheckCommand())
	return cmd
}

func (a *app) workloadListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the workloads that are built in",
		Example: "  benchpin workload list",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			names, err := workload.List()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(names)
			}
			for _, name := range names {
				a.printf("%s\n", name)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) workloadShowCommand() *cobra.Command {
	var (
		flags  workloadFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "show WORKLOAD [OVERRIDE...]",
		Short: "Print the resolved workload: every key, defaults included",
		Long: `Print the resolved workload as YAML: every key with its value, and whether it was given or is the default. --json prints the canonical
form, whose BLAKE3 digest identifies the workload in records and attestations.`,
		Example: "  benchpin workload show quickstart ++workload.train.epochs=2",
		Args:    oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			resolved, err := a.load(cmd, &flags, args)
			if err != nil {
				return err
			}
			if asJSON {
				_, err = a.stdout.Write(resolved.Canonical)
			} else {
				_, err = a.stdout.Write(resolved.YAML())
			}
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the canonical form")
	return cmd
}

func (a *app) workloadCheckCommand() *cobra.Command {
	var (
		flags  workloadFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "check WORKLOAD [OVERRIDE...]",
		Short:   "Check a workload file and print its digest",
		Example: "  benchpin workload check quickstart --strict",
		Args:    oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			resolved, err := a.load(cmd, &flags, args)
			if err != nil {
				return err
			}
			if asJSON {
				warnings := []string{}
				for _, w := range resolved.Warnings {
					warnings = append(warnings, w.String())
				}
				return a.printJSON(map[string]any{"name": resolved.Name, "digest": resolved.Digest, "warnings": warnings})
			}
			a.printf("%s  %s\n", resolved.Digest, oneLine(resolved.Name))
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// oneLine writes a name that people chose: in quotes where it would break the line or the terminal.
func oneLine(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
