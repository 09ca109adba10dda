//go:build mpi && cgo

package mpi

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hosts are two network namespaces that have an address each, and nothing in common but the cable between them. Processes in them have
// host names of their own.
type hosts struct {
	names     [2]string
	addresses [2]string
	enter     string // the script that a launcher takes for ssh
}

// run is a command that must succeed.
func run(t testing.TB, args ...string) {
	t.Helper()
	if b, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, b)
	}
}

// twoHosts makes them, for as long as the test runs.
func twoHosts(t testing.TB) *hosts {
	t.Helper()
	for _, need := range []string{"ip", "unshare"} {
		if _, err := exec.LookPath(need); err != nil {
			missing(t, need+" is missing (iproute2, util-linux)")
		}
	}
	if os.Getuid() != 0 {
		missing(t, "network namespaces need root")
	}
	id := os.Getpid() % 1_000_000
	h := &hosts{names: [2]string{fmt.Sprintf("bpa%d", id), fmt.Sprintf("bpb%d", id)}, addresses: [2]string{"10.77.0.1", "10.77.0.2"}}
	for i, name := range h.names {
		if b, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			missing(t, fmt.Sprintf("this host makes no network namespaces: %s", b))
		}
		t.Cleanup(func() { run(t, "ip", "netns", "del", h.names[i]) })
	}
	run(t, "ip", "-n", h.names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", h.names[1])
	for i, name := range h.names {
		run(t, "ip", "-n", name, "link", "set", "lo", "up")
		run(t, "ip", "-n", name, "addr", "add", h.addresses[i]+"/24", "dev", "cable")
		run(t, "ip", "-n", name, "link", "set", "cable", "up")
	}
	for _, name := range h.names { // the kernel takes up to a second to find the cable plugged in
		for until := time.Now().Add(30 * time.Second); h.state(t, name, "operstate") != "up"; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("the cable of %s is %s", name, h.state(t, name, "operstate"))
			}
		}
	}
	// What ssh would do: options, the address, and a command of several words for a shell.
	h.enter = filepath.Join(t.TempDir(), "enter")
	script := fmt.Sprintf("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nshift\n"+
		"exec unshare --uts sh -c 'hostname hostb; exec ip netns exec %s sh -c \"$*\"' enter \"$@\"\n", h.names[1])
	if err := os.WriteFile(h.enter, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// missing ends a test that this machine cannot make.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
}

// launch is the mpirun that starts half of the processes on each of the hosts, from the first.
func (h *hosts) launch(t testing.TB, n int) []string {
	t.Helper()
	mpirun := launcher(t, family(t))
	inside := []string{"unshare", "--uts", "sh", "-c", "hostname hosta; exec ip netns exec " + h.names[0] + ` "$@"`, "inside"}
	perHost := strconv.Itoa((n + 1) / 2)
	if family(t) == "mpich" {
		// Without these, processes of one machine find each other's memory whatever network they are in.
		inside = append([]string{"env", "UCX_TLS=tcp,self", "MPIR_CVAR_NOLOCAL=1"}, inside...)
		return append(append(inside, mpirun...), "-launcher", "ssh", "-launcher-exec", h.enter, "-localhost", h.addresses[0], "-iface", "cable",
			"-hosts", strings.Join(h.addresses[:], ","), "-ppn", perHost)
	}
	return append(append(inside, mpirun...), "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", h.enter, "--mca", "btl", "tcp,self",
		"--mca", "btl_tcp_if_include", "cable", "--mca", "oob_tcp_if_include", "cable",
		"--host", h.addresses[0]+":"+perHost+","+h.addresses[1]+":"+perHost)
}

// state is what a host's kernel says of its end of the cable.
func (h *hosts) state(t testing.TB, name, what string) string {
	t.Helper()
	b, err := exec.Command("ip", "netns", "exec", name, "cat", "/sys/class/net/cable/"+what).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// received is how many bytes have come over the cable to the second host.
func (h *hosts) received(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(h.state(t, h.names[1], "statistics/rx_bytes"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Processes on two hosts meet in every way, over the cable, and know that there are two.
func TestTwoHosts(t *testing.T) {
	h := twoHosts(t)
	for _, n := range []int{2, 4} {
		before := h.received(t)
		output, code, _ := finish(t, command, h.launch(t, n), n, "everything 3")
		want := fmt.Sprintf("everything: %d processes on 2 nodes, %d accelerators", n, 3*n)
		if code != 0 || !strings.Contains(output, want) {
			t.Errorf("%d processes end with %d, want %q:\n%s", n, code, want, output)
		}
		if sent := h.received(t) - before; sent < 200_000 {
			t.Errorf("%d processes: %d bytes came over the cable, want those of the broadcast at least", n, sent)
		}
	}
}

// A failure on one host is told on the other, with the host that it comes from.
func TestTwoHostsFailure(t *testing.T) {
	h := twoHosts(t)
	for scenario, want := range map[string]string{
		"fault":     "rank 0: process 1 on hostb: img_7_of_9.npz: input/output error",
		"handshake": "rank 0: the processes do not agree: version: process 0 on hosta has 1, process 1 on hostb 2",
	} {
		output, code, took := finish(t, command, h.launch(t, 2), 2, scenario)
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
	h := twoHosts(t)
	seed := rand.Uint64()
	t.Logf("seed %d, %d rounds", seed, rounds)
	rng := rand.New(rand.NewPCG(seed, 3))
	var longest time.Duration
	for round := range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
		j, pids := start(ctx, t, h.launch(t, 2), 2)
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
	h := twoHosts(t)
	ctx, cancel := context.WithTimeout(t.Context(), jobLimit)
	defer cancel()
	j, pids := start(ctx, t, h.launch(t, 2), 2)
	run(t, "ip", "-n", h.names[1], "link", "set", "cable", "down")
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
