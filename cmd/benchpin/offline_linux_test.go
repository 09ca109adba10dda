package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The variables that make a child of TestOffline out of this program.
const (
	offlineMode    = "BENCHPIN_TEST_OFFLINE"
	offlineArchive = "BENCHPIN_TEST_OFFLINE_ARCHIVE"
	offlineKey     = "BENCHPIN_TEST_OFFLINE_KEY"
	offlineDone    = "verified offline"
)

// Offline means that no socket is opened: an archive verifies in a network namespace without interfaces, and in a process that the kernel
// kills when it asks for a socket of any kind. The same processes show that they would have noticed.
func TestOffline(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const small = `
model: {name: small}
framework: pytorch
dataset: {format: npz, num_files_train: 4, record_length_bytes: 1024}
reader: {data_loader: pytorch, batch_size: 1}
train: {epochs: 1, computation_time: 0.001}
metric: {au: 0.01}
`
	if err := os.WriteFile("small.yaml", []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "pipeline small.yaml --dir p --json", exitDone)
	child := func(t *testing.T, mode string, attr *syscall.SysProcAttr) (string, error) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestOfflineChild$", "-test.v")
		cmd.Env = append(os.Environ(), offlineMode+"="+mode, offlineArchive+"="+filepath.Join(dir, "p", "archive"),
			offlineKey+"="+filepath.Join(dir, "p", "keys", "benchpin.pub"))
		cmd.SysProcAttr = attr
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Run("namespace", func(t *testing.T) {
		attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if os.Geteuid() != 0 {
			attr.Cloneflags |= syscall.CLONE_NEWUSER
			attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		// Whether this host makes namespaces at all is asked first, of a process that does nothing else.
		probe := exec.Command("/bin/true")
		probe.SysProcAttr = attr
		if err := probe.Run(); err != nil {
			skipOrFail(t, "SKIPPED: this host makes no network namespace for the test (%v): it takes root or user namespaces", err)
		}
		out, err := child(t, "namespace", attr)
		if err != nil || !strings.Contains(out, offlineDone) {
			t.Errorf("verify in a namespace without interfaces: %v\n%s", err, out)
		}
	})
	t.Run("killed on socket", func(t *testing.T) {
		if seccompArch() == 0 {
			skipOrFail(t, "SKIPPED: no seccomp filter is written for %s", runtime.GOARCH)
		}
		out, err := child(t, "probe", nil)
		var exit *exec.ExitError
		switch {
		case strings.Contains(out, "no filter:"):
			skipOrFail(t, "SKIPPED: this kernel installs no seccomp filter: %s", out)
		case err == nil, !errorsAs(err, &exit), exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS:
			t.Fatalf("expected a process that opens a socket to be killed by the filter, found %v\n%s", err, out)
		}
		if out, err = child(t, "seccomp", nil); err != nil || !strings.Contains(out, offlineDone) {
			t.Errorf("verify in a process that may open no socket: %v\n%s", err, out)
		}
	})
}

// TestOfflineChild is the other process of TestOffline.
func TestOfflineChild(t *testing.T) {
	mode := os.Getenv(offlineMode)
	switch mode {
	case "":
		t.Skip("it is run by TestOffline, in a process of its own")
	case "namespace":
		all, err := net.Interfaces()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			if i.Flags&net.FlagUp != 0 {
				t.Fatalf("the namespace has the interface %s", i.Name)
			}
		}
	case "seccomp", "probe":
		if err := forbidSockets(); err != nil {
			fmt.Printf("no filter: %v\n", err)
			t.FailNow()
		}
	}
	if mode == "probe" {
		_, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		t.Fatalf("a socket was asked for, and the process lives: %v", err)
	}
	out := runJSON(t, "verify "+os.Getenv(offlineArchive)+" --json --key "+os.Getenv(offlineKey), exitDone)
	if !bytes.Contains(out, []byte(`"verdict": "verified"`)) {
		t.Fatalf("%s", out)
	}
	fmt.Println(offlineDone)
}

func errorsAs(err error, target **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*target = e
	return ok
}

// seccompArch is the architecture as seccomp names it, 0 where the filter below is not written for it.
func seccompArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// forbidSockets makes the kernel kill this process, whatever thread it is, when it asks for a socket or a pair of them, or makes a ring
// through which it could.
func forbidSockets() error {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: 4}, // the architecture
		{Code: equal, K: seccompArch(), Jt: 1},
		{Code: give, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: 0}, // the number of the call
		{Code: equal, K: unix.SYS_SOCKET, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKETPAIR, Jt: 2},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 1},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
		{Code: give, K: unix.SECCOMP_RET_KILL_PROCESS},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// For all threads: the runtime has started some.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}

// skipOrFail skips a test that this host cannot make, saying why; in CI that is a failure.
func skipOrFail(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
