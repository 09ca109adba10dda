// Command benchpin is a provenance-pinned, reproducible benchmark for deep-learning storage. This package turns flags into calls of
// the packages below pkg/ and prints what they return; it holds no logic that a user of the library would miss.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/benchpin/benchpin/pkg/cluster/mpi"
	"github.com/benchpin/benchpin/pkg/report"
)

// Set by the linker (Makefile); builds without it tell what Go's build information knows.
var (
	version string
	commit  string
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup means that a terminal may go
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() {
		stop() // the next signal ends the process at once
		time.Sleep(longestEnd)
		fmt.Fprintf(os.Stderr, "benchpin: interrupted, and something hangs that was not done within %v; what it was writing is incomplete\n", longestEnd)
		os.Exit(exitInterrupted)
	})
	os.Exit(newApp().run(ctx, commandLine(os.Args)))
}

// longestEnd is how long an interrupted command may take to put away what it has. Commands need a fraction of it, unless a file
// system hangs.
const longestEnd = 10 * time.Second

// commandLine returns the arguments of a process, with the command in front that the program's own name stands for: a link to it
// named as one of DLIO's programs behaves as that one does.
func commandLine(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	switch filepath.Base(args[0]) {
	case "dlio_benchmark":
		return append([]string{"dlio"}, args[1:]...)
	case "dlio_benchmark_query":
		return append([]string{"dlio-query"}, args[1:]...)
	}
	return args[1:]
}

// app is the state of the process as the commands see it, handed in so that tests can replace it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// lookupenv is os.LookupEnv.
	lookupenv func(string) (string, bool)
	// terminal says whether standard error is a terminal: progress bars go nowhere else.
	terminal bool
	// columns is the width of that terminal, 0 where it is not known.
	columns func() int
	// color is true when standard output is a terminal that is not told otherwise (NO_COLOR).
	color bool
	now   func() time.Time
	// process is this one's part in a job of several, once it was asked for (world), and errors is where it tells its own failures when
	// another process speaks for all.
	process *mpi.Process
	command *cobra.Command // that is carried out
	errors  io.Writer
}

func newApp() *app {
	return &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookupenv: os.LookupEnv,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
		columns:  columns,
		color:    term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "",
		now:      time.Now,
	}
}

// columns is the width of the terminal at standard error.
func columns() int {
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// run executes one command line and returns the exit code of the process.
func (a *app) run(ctx context.Context, args []string) int {
	out := &output{w: a.stdout}
	a.stdout = out
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("write to standard output: %w", out.err)
	}
	return a.leave(a.report(err), err)
}

// style is how pages are printed.
func (a *app) style() []report.Option {
	if a.color {
		return []report.Option{report.Color}
	}
	return nil
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "benchpin",
		Short: "Provenance-pinned, reproducible benchmark for deep-learning storage",
		Long: `benchpin measures how well a storage system feeds deep-learning training, and proves what the number is about.

It generates a data set from a seed, pins every byte of it in a manifest, verifies it, reads it exactly as a training job would,
and bundles result, configuration, environment and digests into a signed attestation that anyone can verify offline.

Exit codes: 0 done, 1 failure, 2 usage, 3 threshold not met, 4 verification failed, 5 differs, 130 interrupted.
Every flag can be given as an environment variable: --accelerators is BENCHPIN_ACCELERATORS.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       a.toolVersion(),
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := noEmptyNames(cmd); err != nil {
				return err
			}
			if err := a.onlyProcess(cmd); err != nil {
				return err
			}
			return a.flagsFromEnvironment(cmd)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (see %q)", err, cmd.CommandPath()+" --help")
	})
	root.AddGroup(&cobra.Group{ID: groupMain, Title: "The main job:"}, &cobra.Group{ID: groupParts, Title: "Its parts:"},
		&cobra.Group{ID: groupDLIO, Title: "As DLIO's programs:"})
	root.AddCommand(
		a.pipelineCommand(), a.planCommand(), a.dataCommand(), a.runCommand(), a.reportCommand(), a.compareCommand(), a.explainCommand(), a.preregisterCommand(), a.attestCommand(), a.verifyCommand(), a.replayCommand(),
		a.pushCommand(), a.pullCommand(), a.attachCommand(), a.referrersCommand(), a.exportCommand(), a.transcriptCommand(), a.auditCommand(), a.journalCommand(), a.workloadCommand(), a.keyCommand(), a.dlioCommand(), a.dlioQueryCommand(), a.versionCommand(),
	)
	a.fetchManifests(root)
	describeEnvironment(root)
	return root
}

const (
	groupMain  = "main"
	groupParts = "parts"
	groupDLIO  = "dlio"
)
