//go:build mpi && cgo

package mpi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster/mpi/mpitest"
)

// family is "mpich" or "openmpi": the launcher has to be that of the library.
func family(t testing.TB) string {
	t.Helper()
	return mpitest.Family(t, Library())
}

// job is an mpirun under way.
type job struct {
	cmd    *exec.Cmd
	output bytes.Buffer // of all processes
	stdout io.ReadCloser
	began  time.Time
}

// jobLimit is when a job counts as hanging. Nothing in these tests takes a third of it.
const jobLimit = 90 * time.Second

// command is an mpirun of n processes that play a scenario.
func command(ctx context.Context, t testing.TB, launch []string, n int, scenario string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(launch[1:]), "-np", fmt.Sprint(n), self)
	cmd := exec.CommandContext(ctx, launch[0], args...)
	cmd.Env = append(os.Environ(), scenarioVariable+"="+scenario)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The launcher's own processes are in its group: none of them outlives the test.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// mpirun runs a scenario to its end, and fails the test when it hangs.
func mpirun(t testing.TB, n int, scenario string) (output string, code int, took time.Duration) {
	t.Helper()
	return finish(t, command, mpitest.Launcher(t, family(t)), n, scenario)
}

// finish runs what make makes.
func finish(t testing.TB, make func(context.Context, testing.TB, []string, int, string) *exec.Cmd, launch []string, n int, scenario string) (
	output string, code int, took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
	defer cancel()
	cmd := make(ctx, t, launch, n, scenario)
	begin := time.Now()
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%d processes, %s: HANGS; its output:\n%s", n, scenario, b)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode(), time.Since(begin)
}

// One to four processes meet in every way, with one to five accelerators each.
func TestEverything(t *testing.T) {
	t.Parallel() // most of it is waiting
	t.Logf("library: %s", firstLine(Library()))
	for n := 1; n <= 4; n++ {
		for _, accelerators := range []int{1, 2, 5} {
			output, code, _ := mpirun(t, n, fmt.Sprint("everything ", accelerators))
			want := fmt.Sprintf("everything: %d processes on 1 nodes, %d accelerators", n, n*accelerators)
			if code != 0 || !strings.Contains(output, want) {
				t.Errorf("%d processes with %d accelerators each end with %d, want %q:\n%s", n, accelerators, code, want, output)
			}
		}
	}
}

// A failure ends all processes within seconds, each of them with the reason, and the job with the code of the one that failed.
func TestFailures(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, c := range []struct {
		scenario string
		code     int
		want     []string
	}{
		{"handshake", 1, []string{"rank 0: the processes do not agree: version: process 0 on ", "rank 1: the processes do not agree", "rank 2: the processes do not agree"}},
		{"fault", 1, []string{"rank 2: img_7_of_9.npz: input/output error", "rank 0: process 2 on ", "rank 1: process 2 on "}},
		{"alone", 4, []string{"rank 2: the manifest is damaged", "rank 0: process 2 on ", "rank 1: process 2 on "}},
		{"uneven", 1, []string{"some processes came to a barrier and others to a broadcast"}},
		{"code", 3, []string{"written"}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			output, code, took := mpirun(t, 3, c.scenario)
			if code != c.code || took > 20*time.Second {
				t.Errorf("ended with %d after %v, want %d at once:\n%s", code, took, c.code, output)
			}
			for _, want := range c.want {
				if !strings.Contains(output, want) {
					t.Errorf("%q is missing:\n%s", want, output)
				}
			}
		})
	}
}

// A process that does not come to its end holds the others up for 15 s and no longer.
func TestHang(t *testing.T) {
	t.Parallel() // most of it is waiting
	output, code, took := mpirun(t, 3, "hang")
	if code == 0 || took > 40*time.Second || !strings.Contains(output, "process 0 has failed") || !strings.Contains(output, "not all processes came to their end") {
		t.Errorf("ended with %d after %v:\n%s", code, took, output)
	}
}

// The launcher of one MPI with a program of another makes every process believe that it is alone; that is found out.
func TestOtherLauncher(t *testing.T) {
	t.Parallel() // most of it is waiting
	other := map[string]string{"mpich": "openmpi", "openmpi": "mpich"}[family(t)]
	output, code, _ := finish(t, command, mpitest.Launcher(t, other), 2, "everything 1")
	if code == 0 || !strings.Contains(output, "do not belong together") {
		t.Errorf("ended with %d:\n%s", code, output)
	}
}

// start begins a job that goes on for ever, and returns the process ids of its ranks.
func start(ctx context.Context, t testing.TB, launch []string, n int) (j *job, pids []int) {
	t.Helper()
	j = &job{began: time.Now()}
	j.cmd = command(ctx, t, launch, n, "forever")
	j.cmd.Stderr = &j.output
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j.stdout = out
	pids = make([]int, n)
	lines := bufio.NewScanner(out)
	for found := 0; found < n && lines.Scan(); {
		var pid, rank int
		if k, _ := fmt.Sscanf(lines.Text(), "pid %d rank %d", &pid, &rank); k == 2 && rank < n {
			pids[rank] = pid
			found++
		}
	}
	if slices.Contains(pids, 0) {
		_ = j.cmd.Cancel()
		_ = j.cmd.Wait()
		t.Fatalf("only %v of %d processes started:\n%s", pids, n, j.output.String())
	}
	return j, pids
}

// gone waits until none of the processes is left, zombies of a dead launcher aside.
func gone(pids []int, limit time.Duration) bool {
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if !slices.ContainsFunc(pids, alive) {
			return true
		}
	}
	return false
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(stat, []byte(") "))
	return found && rest[0] != 'Z'
}

// A process killed at a random moment, of starting too, ends the job within seconds. 100 times in the long suite.
func TestKilled(t *testing.T) {
	rounds := 3
	if os.Getenv("BENCHPIN_LONG") != "" {
		rounds = 100
	}
	launch := mpitest.Launcher(t, family(t))
	seed := rand.Uint64()
	t.Logf("seed %d, %d rounds", seed, rounds)
	rng := rand.New(rand.NewPCG(seed, 1))
	var longest time.Duration
	for round := range rounds {
		n := 2 + rng.IntN(3)
		ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
		j, pids := start(ctx, t, launch, n)
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		victim := rng.IntN(n)
		if err := syscall.Kill(pids[victim], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		took, err := j.end(ctx)
		longest = max(longest, took)
		if ctx.Err() != nil || err == nil || took > 20*time.Second || !gone(pids, 10*time.Second) {
			t.Errorf("round %d: rank %d of %d was killed: the job ended after %v with %v:\n%s", round, victim, n, took, err, j.output.String())
		}
		cancel()
	}
	t.Logf("the longest end took %v", longest)
}

// An interrupt at the launcher ends all, and they say why. The launcher's own code says nothing: MPICH's is 0 where its processes ended by
// themselves before it did.
func TestInterrupted(t *testing.T) {
	t.Parallel() // most of it is waiting
	ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
	defer cancel()
	j, pids := start(ctx, t, mpitest.Launcher(t, family(t)), 2)
	if err := j.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := j.end(ctx); ctx.Err() != nil || !gone(pids, 10*time.Second) || !strings.Contains(j.output.String(), "signal received") {
		t.Errorf("ended with %v:\n%s", err, j.output.String())
	}
}

// A process that lives and says nothing any more is missed by its neighbour, whatever its launcher thinks of it. Takes the time that
// silence may last.
func TestSilent(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") == "" {
		t.Skip("SKIPPED: takes 40 s; set BENCHPIN_LONG=1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
	defer cancel()
	j, pids := start(ctx, t, mpitest.Launcher(t, family(t)), 3)
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, err := j.end(ctx)
	_ = syscall.Kill(pids[1], syscall.SIGCONT)
	if err == nil || ctx.Err() != nil || !strings.Contains(j.output.String(), "rank 0: process 1 on ") ||
		!strings.Contains(j.output.String(), "rank 2: process 1 on ") || !strings.Contains(j.output.String(), "it has not been heard of for") || !gone(pids, 10*time.Second) {
		t.Errorf("ended with %v after %v:\n%s", err, time.Since(j.began), j.output.String())
	}
}
