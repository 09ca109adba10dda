package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/mpi"
	"github.com/benchpin/benchpin/pkg/environment"
)

// several is the annotation of commands that several processes of a job carry out together. All others run as one.
const several = "several-processes"

// world returns the processes of the job that this one was started in: it alone, where no launcher started it. Once it was asked for,
// the first process speaks for all: the others print nothing, unless they fail of their own.
func (a *app) world(ctx context.Context) (*cluster.World, error) {
	if a.process != nil {
		return a.process.World(), nil
	}
	p, err := mpi.Join(ctx, a.lookupenv)
	if err != nil {
		if l, _ := mpi.Launched(a.lookupenv); l.Rank > 0 && isAny(err, mpi.ErrNoMPI, mpi.ErrLauncher) {
			return nil, errQuiet // the first one says why
		}
		return nil, err
	}
	a.process = p
	w := p.World()
	if w.Size() > 1 {
		a.terminal, a.color = false, false // what looks like a terminal is the launcher's, which passes on what it is given
	}
	if w.Rank() > 0 {
		a.errors = a.stderr
		a.stdout, a.stderr = io.Discard, io.Discard
	} else if _, here := w.OnNode(); w.Size() > 1 {
		if online, err := os.ReadFile("/sys/devices/system/cpu/online"); err == nil {
			if text := tightlyBound(runtime.NumCPU(), here, string(online)); text != "" {
				a.notef("benchpin: warning: %s", text)
			}
		}
	}
	if err := w.Handshake(ctx, a.startedAs()); err != nil {
		return nil, err
	}
	if err := a.surrounded(ctx, w); err != nil {
		return nil, err
	}
	return w, nil
}

// surrounded refuses processes whose environments would make one figure of several measurements, and warns of machines that differ.
func (a *app) surrounded(ctx context.Context, w *cluster.World) error {
	if w.Size() == 1 {
		return nil
	}
	e := environment.ToBeAlike(func(name string) string { value, _ := a.lookupenv(name); return value })
	told, err := w.Surrounded(ctx, cluster.Surroundings{Job: e.Job, Host: e.Host, Told: e.Told})
	if told != "" {
		a.notef("benchpin: warning: the machines differ: %s", told)
	}
	return err
}

// startedAs is what all processes of a job must have been given alike: the command, and where it reads and writes. What else there is
// goes into the workload, which is compared by itself, or is each process's own affair.
func (a *app) startedAs() map[string]string {
	fields := map[string]string{"command": a.command.CommandPath()}
	for _, name := range []string{"accelerators", "accelerators-per-process", "archive", "checkpoints", "data", "dir", "journal", "json", "manifest", "out"} {
		if f := a.command.Flags().Lookup(name); f != nil && f.Changed {
			fields["--"+name] = f.Value.String()
		}
	}
	return fields
}

// tightlyBound says what is lost where each of so many processes of a host may use a few processors only and all together leave some idle:
// Open MPI binds each to one core unless it is told not to. online is the kernel's list, such as 0-3,8.
func tightlyBound(each, processes int, online string) string {
	all := 0
	for part := range strings.SplitSeq(strings.TrimSpace(online), ",") {
		first, last, several := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		b := a
		if several && err == nil {
			b, err = strconv.Atoi(last)
		}
		if err != nil || b < a {
			return ""
		}
		all += b - a + 1
	}
	if each*processes >= all {
		return ""
	}
	return fmt.Sprintf("each of the %d processes on this host may use %d of its %d processors: readers have to share them; "+
		"let the launcher bind no process (Open MPI: --bind-to none)", processes, each, all)
}

// onlyProcess refuses to carry out a command several times over: each of the processes would do the whole of it.
func (a *app) onlyProcess(cmd *cobra.Command) error {
	a.command = cmd
	if _, together := cmd.Annotations[several]; together || cmd.Name() == "version" || cmd.Name() == "help" {
		return nil
	}
	l, launched := mpi.Launched(a.lookupenv)
	if !launched {
		return nil
	}
	if l.Rank > 0 {
		return errQuiet
	}
	instead := "without a launcher"
	if cmd.Flags().Lookup("accelerators") != nil && l.Size > 0 {
		instead += fmt.Sprintf(", with --accelerators %d", l.Size)
	}
	return usagef("%s: %s is carried out by one process; start it once, %s", l, cmd.CommandPath(), instead)
}

// leave ends this process's part in its job, with the code of the whole.
func (a *app) leave(code int, err error) int {
	if a.process == nil {
		return code
	}
	return a.process.End(code, err)
}

// own says whether an error is to be told by this process: another tells it where all have it, as an interrupt, and where it came from there.
func (a *app) own(err error) bool {
	if a.process == nil || a.process.World().Rank() == 0 {
		return true
	}
	var other *cluster.ProcessError
	return !errors.As(err, &other) && !isAny(err, cluster.ErrDisagree, cluster.ErrAgreed, context.Canceled)
}

// reportFrom is where errors are told, and by whom.
func (a *app) reportFrom() (io.Writer, string) {
	if a.errors == nil {
		return a.stderr, "benchpin: "
	}
	w := a.process.World()
	return a.errors, fmt.Sprintf("benchpin: process %d on %s: ", w.Rank(), w.Node())
}
