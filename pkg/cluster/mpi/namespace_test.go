//go:build mpi && cgo

package mpi

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster/mpi/mpitest"
)

// Processes on two hosts meet in every way, over the cable, and know that there are two.
func TestTwoHosts(t *testing.T) {
	h := mpitest.TwoHosts(t)
	for _, n := range []int{2, 4} {
		before := h.Received(t)
		output, code, _ := finish(t, command, h.Launch(t, family(t), n), n, "everything 3")
		want := fmt.Sprintf("everything: %d processes on 2 nodes, %d accelerators", n, 3*n)
		if code != 0 || !strings.Contains(output, want) {
			t.Errorf("%d processes end with %d, want %q:\n%s", n, code, want, output)
		}
		if sent := h.Received(t) - before; sent < 200_000 {
			t.Errorf("%d processes: %d bytes came over the cable, want those of the broadcast at least", n, sent)
		}
	}
}

// A failure on one host is told on the other, with the host that it comes from.
func TestTwoHostsFailure(t *testing.T) {
	h := mpitest.TwoHosts(t)
	for scenario, want := range map[string]string{
		"fault":     "rank 0: process 1 on hostb: img_7_of_9.npz: input/output error",
		"handshake": "rank 0: the processes do not agree: version: process 0 on hosta has 1, process 1 on hostb 2",
	} {
		output, code, took := finish(t, command, h.Launch(t, family(t), 2), 2, scenario)
		if code == 0 || took > 40*time.Second || !strings.Contains(output, want) {
			t.Errorf("%s ended with %d after %v, want %q:\n%s", scenario, code, took, want, output)
		}
	}
}

// A process that is killed at a random moment ends those on both hosts.
func TestTwoHostsKilled(t *testing.T) {
	rounds := 2
	if os.Getenv("BENCHPIN_LONG") != "" {
		rounds = 100
	}
	h := mpitest.TwoHosts(t)
	seed := rand.Uint64()
	t.Logf("seed %d, %d rounds", seed, rounds)
	rng := rand.New(rand.NewPCG(seed, 3))
	var longest time.Duration
	for round := range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
		j, pids := start(ctx, t, h.Launch(t, family(t), 2), 2)
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		victim := rng.IntN(2)
		if err := syscall.Kill(pids[victim], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		took, err := j.end(ctx)
		longest = max(longest, took)
		if ctx.Err() != nil || err == nil || took > 40*time.Second || !gone(pids, 10*time.Second) {
			t.Errorf("round %d: rank %d was killed: the job ended after %v with %v:\n%s", round, victim, took, err, j.output.String())
		}
		cancel()
	}
	t.Logf("the longest end took %v", longest)
}

// A cable that is cut ends the processes on both sides, those that their launcher cannot reach any more too.
func TestCutCable(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") == "" {
		t.Skip("SKIPPED: takes a minute; set BENCHPIN_LONG=1")
	}
	h := mpitest.TwoHosts(t)
	ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
	defer cancel()
	j, pids := start(ctx, t, h.Launch(t, family(t), 2), 2)
	mpitest.Run(t, "ip", "-n", h.Names[1], "link", "set", "cable", "down")
	begin := time.Now()
	if !gone(pids, time.Minute) {
		t.Errorf("after %v %v are still there:\n%s", time.Since(begin), slices.DeleteFunc(pids, func(p int) bool { return !alive(p) }), j.output.String())
	}
	t.Logf("all processes were gone after %v", time.Since(begin))
	_ = j.cmd.Cancel() // what a launcher does that lost its hosts is its own affair
	_ = j.cmd.Wait()
}

// end waits for a job's end, and says how long that took.
func (j *job) end(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	_, _ = io.Copy(io.Discard, j.stdout)
	err := j.cmd.Wait()
	if ctx.Err() != nil {
		return time.Since(begin), fmt.Errorf("HANGS: %w", err)
	}
	return time.Since(begin), err
}
