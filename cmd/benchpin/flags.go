package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// environmentName is the variable that stands for a flag: --read-threads is BENCHPIN_READ_THREADS.
func environmentName(flag string) string {
	return "BENCHPIN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// isOwnFlag excludes the flags that cobra adds to every command.
func isOwnFlag(f *pflag.Flag) bool {
	return f.Name != "help" && f.Name != "version" && !f.Hidden
}

// flagsFromEnvironment sets every flag that was not given on the command line from its environment variable.
func (a *app) flagsFromEnvironment(cmd *cobra.Command) error {
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if failed != nil || f.Changed || !isOwnFlag(f) {
			return
		}
		name := environmentName(f.Name)
		value, ok := a.lookupenv(name)
		if !ok || value == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			if f.Value.Type() == "bool" {
				err = errors.New("expected true or false")
			}
			failed = usagef("environment variable %s=%q: %w", name, value, err)
		}
	})
	return failed
}

// noEmptyNames refuses flags that name a file, a folder or the beginning of file names and are given as the empty text: mostly a shell
// variable that is not set, and the default would be taken in its stead.
func noEmptyNames(cmd *cobra.Command) error {
	var failed error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch kind, _ := pflag.UnquoteUsage(f); kind {
		case "file", "folder", "PREFIX", "KEY":
		default:
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if slices.Contains(values, "") && failed == nil {
			failed = usagef("--%s is empty: give the name of a %s, or leave the flag out (see %q)", f.Name, kindOfName(f), cmd.CommandPath()+" --help")
		}
	})
	return failed
}

// kindOfName is what the value of a flag names.
func kindOfName(f *pflag.Flag) string {
	if kind, _ := pflag.UnquoteUsage(f); kind == "folder" {
		return kind
	}
	return "file"
}

// describeEnvironment names the environment variable of each flag in its help.
func describeEnvironment(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if isOwnFlag(f) && !strings.Contains(f.Usage, "[$BENCHPIN_") {
			f.Usage += fmt.Sprintf(" [$%s]", environmentName(f.Name))
		}
	})
	for _, sub := range cmd.Commands() {
		describeEnvironment(sub)
	}
}

// isOverride tells DLIO's override words (++workload.a=v, +workload.a=v, ~workload.a, workload.a=v, and Hydra's own hydra.a=v, which have
// no effect here) from other arguments.
func isOverride(arg string) bool {
	if strings.HasPrefix(arg, "+") || strings.HasPrefix(arg, "~") {
		return true
	}
	// workload.yaml is a file, whatever it is called.
	return strings.Contains(arg, "=") && (strings.HasPrefix(arg, "workload.") || strings.HasPrefix(arg, "hydra."))
}

// splitOverrides separates the overrides among the arguments of a command from the others.
func splitOverrides(args []string) (others, overrides []string) {
	for _, arg := range args {
		if isOverride(arg) {
			overrides = append(overrides, arg)
		} else {
			others = append(others, arg)
		}
	}
	return others, overrides
}

// oneWorkload is the argument rule of the commands that take WORKLOAD and overrides.
func oneWorkload(cmd *cobra.Command, args []string) error {
	others, _ := splitOverrides(args)
	if len(others) != 1 {
		return usagef("expected one WORKLOAD (a file, or a name from \"benchpin workload list\"), found %d: %q; overrides begin with ++workload., +workload., ~workload. or workload.", len(others), others)
	}
	return nil
}

// exactly is cobra.ExactArgs with an error that names what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("expected %s, found %d arguments: %q (see %q)", strings.Join(names, " "), len(args), args, cmd.CommandPath()+" --help")
		}
		return nil
	}
}

// noArguments is cobra.NoArgs as an error of usage.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("expected no arguments, found %q (see %q)", args, cmd.CommandPath()+" --help")
	}
	return nil
}

// noCommand is the argument rule of commands that only hold other commands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usagef("unknown command %q for %q; %q lists the commands", args[0], cmd.CommandPath(), cmd.CommandPath()+" --help")
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = usagef("%w; did you mean %q?", err, near[0])
	}
	return err
}
