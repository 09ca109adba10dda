// Package mpitest brings tests real launchers of MPI, and two hosts to launch on.
package mpitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Family is "mpich" or "openmpi", the launcher that belongs to a library of that name and version (mpi.Library).
func Family(t testing.TB, library string) string {
	t.Helper()
	switch {
	case strings.Contains(library, "Open MPI"):
		return "openmpi"
	case strings.Contains(library, "MPICH"):
		return "mpich"
	}
	t.Fatalf("the tests know no launcher for %q", library)
	return ""
}

// Launcher is the mpirun of a family, under its Debian name, or the plain one where there is no other. It starts more processes than there
// are cores, for root too.
func Launcher(t testing.TB, family string) []string {
	t.Helper()
	path, err := exec.LookPath("mpirun." + family)
	if err != nil {
		if path, err = exec.LookPath("mpirun"); err != nil {
			Missing(t, "mpirun of "+family+" is missing")
		}
	}
	if family == "openmpi" {
		return []string{path, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"}
	}
	return []string{path}
}

// Hosts are two network namespaces that have an address each, and nothing in common but the cable between them. Processes in them have
// host names of their own.
type Hosts struct {
	// Names are those of the namespaces; the hosts are called hosta and hostb.
	Names     [2]string
	addresses [2]string
	enter     string // the script that a launcher takes for ssh
}

// Run is a command that must succeed.
func Run(t testing.TB, args ...string) {
	t.Helper()
	if b, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, b)
	}
}

// TwoHosts makes them, for as long as the test runs.
func TwoHosts(t testing.TB) *Hosts {
	t.Helper()
	for _, need := range []string{"ip", "unshare"} {
		if _, err := exec.LookPath(need); err != nil {
			Missing(t, need+" is missing (iproute2, util-linux)")
		}
	}
	if os.Getuid() != 0 {
		Missing(t, "network namespaces need root")
	}
	id := os.Getpid() % 1_000_000
	h := &Hosts{Names: [2]string{fmt.Sprintf("bpa%d", id), fmt.Sprintf("bpb%d", id)}, addresses: [2]string{"10.77.0.1", "10.77.0.2"}}
	for i, name := range h.Names {
		if b, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			Missing(t, fmt.Sprintf("this host makes no network namespaces: %s", b))
		}
		t.Cleanup(func() { Run(t, "ip", "netns", "del", h.Names[i]) })
	}
	Run(t, "ip", "-n", h.Names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", h.Names[1])
	for i, name := range h.Names {
		Run(t, "ip", "-n", name, "link", "set", "lo", "up")
		Run(t, "ip", "-n", name, "addr", "add", h.addresses[i]+"/24", "dev", "cable")
		Run(t, "ip", "-n", name, "link", "set", "cable", "up")
	}
	for _, name := range h.Names { // the kernel takes up to a second to find the cable plugged in
		for until := time.Now().Add(30 * time.Second); h.state(t, name, "operstate") != "up"; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("the cable of %s is %s", name, h.state(t, name, "operstate"))
			}
		}
	}
	// What ssh would do: options, the address, and a command of several words for a shell.
	h.enter = filepath.Join(t.TempDir(), "enter")
	script := fmt.Sprintf("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nshift\n"+
		"exec unshare --uts sh -c 'hostname hostb; exec ip netns exec %s sh -c \"$*\"' enter \"$@\"\n", h.Names[1])
	if err := os.WriteFile(h.enter, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// Missing ends a test that this machine cannot make: it fails in CI and is skipped elsewhere.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
}

// Launch is the command line of the mpirun of a family that starts half of n processes on each of the hosts, from the first, up to the
// number of processes.
func (h *Hosts) Launch(t testing.TB, family string, n int) []string {
	t.Helper()
	mpirun := Launcher(t, family)
	inside := []string{"unshare", "--uts", "sh", "-c", "hostname hosta; exec ip netns exec " + h.Names[0] + ` "$@"`, "inside"}
	perHost := strconv.Itoa((n + 1) / 2)
	if family == "mpich" {
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
func (h *Hosts) state(t testing.TB, name, what string) string {
	t.Helper()
	b, err := exec.Command("ip", "netns", "exec", name, "cat", "/sys/class/net/cable/"+what).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// Received is how many bytes have come over the cable to the second host.
func (h *Hosts) Received(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(h.state(t, h.Names[1], "statistics/rx_bytes"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
