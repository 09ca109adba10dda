package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/explain"
)

func (a *app) explainCommand() *cobra.Command {
	var asJSON bool
	var remote registryFlags
	cmd := &cobra.Command{
		Use:     "explain RUN|ARCHIVE|REFERENCE [FIGURE]",
		Short:   "Print the arithmetic of a figure, from the raw step times to the record",
		GroupID: groupMain,
		Long: `Print how a figure of a record comes about: what it means, what it is computed from, the intermediate sums of each epoch or accelerator,
and the result, computed once more from the raw step times. Without FIGURE all figures are listed: au, epochs.2.bytes_device,
other.load_p99, dlio.train_au_percentage, evaluation.passes.1.au, checkpoints.saves.1.seconds and so on.

RUN is a run folder, ARCHIVE an archive in OCI layout, REFERENCE one in a registry. The step times must be those that the record names; signatures are not checked:
"benchpin verify" does that.

Exit code 4: the record has another figure than its step times give.`,
		Example: `  benchpin explain ./results au
  benchpin explain ./results`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("expected RUN or ARCHIVE, and at most one FIGURE, found %d arguments: %q (see %q)", len(args), args, cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, done, err := a.archiveAt(cmd.Context(), args[0], &remote)
			if err != nil {
				return err
			}
			defer done()
			o, err := explain.Open(cmd.Context(), dir)
			if err != nil {
				return err
			}
			defer o.Close()
			if len(args) == 1 {
				return a.listFigures(o, asJSON)
			}
			x, err := o.Figure(cmd.Context(), args[1])
			if errors.Is(err, explain.ErrNoFigure) {
				return usagef("%w", err)
			} else if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(x)
			} else {
				var page strings.Builder
				err = x.WriteText(&page)
				a.printf("%s", page.String())
			}
			if err == nil && !x.Equal {
				err = &codedError{exitVerify, fmt.Errorf("%s is not what the step times give: the record, or the arithmetic, is wrong", x.Figure)}
			}
			return err
		},
	}
	remote.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the explanation, or the list, as JSON")
	return cmd
}

// listFigures prints the names of all figures.
func (a *app) listFigures(o *explain.Opened, asJSON bool) error {
	names, err := explain.List(o.Record)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string][]string{"figures": names})
	}
	for _, n := range names {
		a.printf("%s\n", n)
	}
	return nil
}
