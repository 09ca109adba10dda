package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/journal"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

// journalFile is the journal that --journal names: "none" is none.
func journalFile(flag string) string {
	if flag == "none" {
		return ""
	}
	return flag
}

func (a *app) journalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "journal", Short: "Show and check the journal of all attempts", GroupID: groupParts, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.journalShowCommand(), a.journalCheckCommand())
	return cmd
}

// journalDocument is what the journal commands print with --json.
type journalDocument struct {
	Head       string                   `json:"head"`
	Entries    int                      `json:"entries"`
	TornBytes  int64                    `json:"torn_bytes"`
	Unfinished int                      `json:"unfinished"`
	Attempts   []journalAttempt         `json:"attempts"`
	Results    []pipeline.JournalResult `json:"results,omitempty"`
}

// journalAttempt is one attempt in it.
type journalAttempt struct {
	Run      string   `json:"run"`
	Name     string   `json:"name"`
	Workload string   `json:"workload"`
	Data     string   `json:"data"`
	Attempt  int      `json:"attempt"`
	Started  string   `json:"started"`
	Ended    string   `json:"ended,omitempty"`
	Status   string   `json:"status"`
	AU       *float64 `json:"au,omitempty"`
	Record   string   `json:"record,omitempty"`
}

// unfinishedStatus is the status of an attempt without an end.
const unfinishedStatus = "unfinished"

func documentOf(j *journal.Journal, results []pipeline.JournalResult) journalDocument {
	d := journalDocument{Head: j.Head(), Entries: len(j.Entries), TornBytes: j.Torn, Attempts: []journalAttempt{}, Results: results}
	for _, at := range j.Attempts() {
		x := journalAttempt{Run: at.Start.Run, Name: at.Start.Name, Workload: at.Start.Workload, Data: at.Start.Data, Attempt: at.Number,
			Started: at.Start.Time, Status: unfinishedStatus}
		if at.End != nil {
			x.Ended, x.Status, x.AU, x.Record = at.End.Time, string(at.End.Status), at.End.AU, at.End.Record
		} else {
			d.Unfinished++
		}
		d.Attempts = append(d.Attempts, x)
	}
	return d
}

func (a *app) journalShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show JOURNAL",
		Short: "Print every attempt of a journal, finished or not",
		Long: `Check a journal and print its attempts, one a line: how many with the same workload on the same data there were, when each began, how it
ended, and its accelerator utilisation. JOURNAL is the file, or a folder that holds a journal.jsonl.

An attempt without an end was killed, its host stopped, or it is still at work. Exit code 4 when the chain is broken.`,
		Example: "  benchpin journal show ./demo",
		Args:    exactly("JOURNAL"),
		RunE: func(_ *cobra.Command, args []string) error {
			j, err := journal.Open(pipeline.JournalFile(args[0]))
			if err != nil {
				return err
			}
			d := documentOf(j, nil)
			if asJSON {
				return a.printJSON(d)
			}
			for _, at := range d.Attempts {
				au := "-"
				if at.AU != nil {
					au = fmt.Sprintf("%.2f %%", *at.AU)
				}
				a.printf("%-23s  %-10s  attempt %-3d  AU %-8s  %s on %s  %q\n", at.Run, at.Status, at.Attempt, au, short(at.Workload), short(at.Data), at.Name)
			}
			a.notef("%s", journalLine(d))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// short is the beginning of a digest, for tables.
func short(digest string) string { return digest[:min(len(digest), len("blake3:")+8)] }

// journalLine is one line on a journal as a whole.
func journalLine(d journalDocument) string {
	s := fmt.Sprintf("%d entries, %d attempts, %d of them without an end; head %s", d.Entries, len(d.Attempts), d.Unfinished, d.Head)
	if d.TornBytes > 0 {
		s += fmt.Sprintf("; %d bytes of an unfinished line after it", d.TornBytes)
	}
	return s
}

func (a *app) journalCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check JOURNAL [RUN|ARCHIVE...]",
		Short: "Check the chain of a journal, and that it is the one whose head the given results have",
		Long: `Check that every line of a journal has its form and follows the line before it. For each run folder or archive that is given, check that
this is the journal whose head its record has, grown since or not, and print which of how many attempts on its workload and data it was.

Exit code 4 when the chain is broken, or when a result names another journal than this one.`,
		Example: "  benchpin journal check ./demo ./demo/archive",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("JOURNAL")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			j, results, err := pipeline.JournalCheck(cmd.Context(), pipeline.JournalFile(args[0]), args[1:])
			if err != nil {
				return err
			}
			d := documentOf(j, results)
			if asJSON {
				if err := a.printJSON(d); err != nil {
					return err
				}
			} else {
				a.printf("%s\n", journalLine(d))
			}
			bad := 0
			for _, r := range results {
				switch {
				case r.Problem != "":
					bad++
					a.notef("benchpin: %s: %s", r.Path, r.Problem)
				case !asJSON:
					a.printf("%s: run %s, attempt %d of %d with this workload on this data\n", r.Path, r.Run, r.Attempt, r.Attempts)
				}
			}
			if bad > 0 {
				return &codedError{exitVerify, fmt.Errorf("%d of %d results do not belong to the journal %s", bad, len(results), args[0])}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
