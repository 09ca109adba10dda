package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// peer runs another program that knows the same; where it is missing the test fails in CI and is skipped elsewhere.
func peer(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is needed: %v", name, err)
		}
		t.Skipf("%s is not installed: %v", name, err)
	}
	out, err := exec.Command(path, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// holds checks an environment as a part of a record would be.
func holds(t *testing.T, e record.Environment) {
	t.Helper()
	r := &record.Record{Schema: record.SchemaName, Environment: e}
	r.Workload.Canonical = json.RawMessage("{}")
	for _, p := range r.Check() {
		if strings.HasPrefix(p.Field, "environment.") {
			t.Errorf("the record would be wrong: %v", p)
		}
	}
	b, err := r.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Parse(b); err != nil {
		t.Error(err)
	}
}

func TestCollectHere(t *testing.T) {
	dir := t.TempDir()
	e := Collect(t.Context(), Request{Data: dir, Checkpoints: filepath.Join(dir, "not", "yet"), Results: dir})
	holds(t, e)
	for _, u := range e.Unknown {
		t.Logf("unknown: %s: %s", u.Field, u.Reason)
	}
	if len(e.Folders) != 3 || e.Folders[0].DeviceNumber != e.Folders[1].DeviceNumber {
		t.Errorf("a folder that is not there yet must stand for the one above it: %+v", e.Folders)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if e.ResultsApart == nil || *e.ResultsApart {
		t.Error("data and results are in one folder")
	}
	if got, want := e.Host.Kernel, peer(t, "uname", "-r"); got != want {
		t.Errorf("kernel %q, uname says %q", got, want)
	}
	if got, want := e.Host.Name, peer(t, "uname", "-n"); got != want {
		t.Errorf("host %q, uname says %q", got, want)
	}
	if got, want := strconv.Itoa(*e.CPU.Usable), peer(t, "nproc"); got != want {
		t.Errorf("%s processors, nproc says %s", got, want)
	}
	for format, got := range map[string]string{
		"%T": e.Folders[0].FileSystem, "%b*%S": fmt.Sprint(*e.Folders[0].Total),
	} {
		want := peer(t, "stat", "-f", "-c", format, dir)
		if blocks, size, ok := strings.Cut(want, "*"); ok {
			b, _ := strconv.ParseInt(blocks, 10, 64)
			s, _ := strconv.ParseInt(size, 10, 64)
			want = fmt.Sprint(b * s)
		}
		// stat names families of file systems: ext2/ext3, overlayfs.
		if want != got && !strings.Contains(want, strings.TrimRight(got, "234")) {
			t.Errorf("stat -f %s says %q, found %q", format, want, got)
		}
	}
	if got, want := e.Folders[0].MountPoint, peer(t, "stat", "-c", "%m", dir); got != want {
		t.Errorf("mount point %q, stat says %q", got, want)
	}
	if got, want := e.Limits.LockedMemory.Hard, peer(t, "sh", "-c", "ulimit -H -l"); got != want {
		kib, err := strconv.ParseInt(want, 10, 64)
		if err != nil || fmt.Sprint(kib*1024) != got {
			t.Errorf("locked memory %q, ulimit says %q KiB", got, want)
		}
	}
}

func TestCollectSeparateFileSystems(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "benchpin")
	if err != nil {
		t.Skipf("no /dev/shm to be a second file system: %v", err)
	}
	defer os.RemoveAll(shm)
	var other string
	for _, dir := range []string{t.TempDir(), "."} {
		if e := Collect(t.Context(), Request{Data: shm, Results: dir}); e.ResultsApart != nil && *e.ResultsApart {
			other = dir
		}
	}
	if peer(t, "stat", "-c", "%d", shm) != peer(t, "stat", "-c", "%d", ".") && other == "" {
		t.Error("two devices, but results are not said to be apart")
	}
	e := Collect(t.Context(), Request{Data: shm})
	holds(t, e)
	if e.Folders[0].FileSystem != "tmpfs" || e.Folders[0].Device.Name != record.UnknownText {
		t.Errorf("/dev/shm is %+v", e.Folders[0])
	}
}

func TestCollectInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	var seen bool
	// The folder may win the race; in 100 tries it does not always.
	for range 100 {
		e := Collect(ctx, Request{Data: t.TempDir()})
		holds(t, e)
		for _, u := range e.Unknown {
			seen = seen || u.Field == "folders.data" && strings.Contains(u.Reason, "no time")
		}
		if seen {
			return
		}
	}
	t.Error("an interrupted look at a folder left no reason")
}

func TestGoRuntime(t *testing.T) {
	gogc, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(1<<30)
	r := goRuntime()
	debug.SetGCPercent(150)
	debug.SetMemoryLimit(math.MaxInt64)
	r2 := goRuntime()
	debug.SetGCPercent(gogc)
	debug.SetMemoryLimit(limit)
	if r.GOGC != "off" || r.GOMEMLIMIT != "1073741824" {
		t.Errorf("GOGC %s GOMEMLIMIT %s, expected off and 1073741824", r.GOGC, r.GOMEMLIMIT)
	}
	if r2.GOGC != "150" || r2.GOMEMLIMIT != record.UnlimitedText {
		t.Errorf("GOGC %s GOMEMLIMIT %s, expected 150 and unlimited", r2.GOGC, r2.GOMEMLIMIT)
	}
}

func TestTool(t *testing.T) {
	got, err := Tool("v1.2.3", "abc-dirty")
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1.2.3" || got.Commit != "abc" || !got.Modified || got.Go != runtime.Version() {
		t.Errorf("found %+v", got)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if want := record.Digest(b); got.Binary != want {
		t.Errorf("binary %s, its bytes have %s", got.Binary, want)
	}
}

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{
		Main: debug.Module{Version: "v0.9.0"},
		Deps: []*debug.Module{
			{Path: "z.example/z", Version: "v1.0.0", Sum: "h1:z="},
			{Path: "a.example/a", Version: "v1.0.0", Sum: "h1:a=", Replace: &debug.Module{Path: "b.example/b", Version: "v2.0.0", Sum: "h1:b="}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}, {Key: "vcs.modified", Value: "true"}},
	}
	for _, c := range []struct {
		version, commit, wantVersion, wantCommit string
		wantModified                             bool
	}{
		{"", "", "v0.9.0", "0123", true},
		{"v1", "0123", "v1", "0123", true},
		{"v1", "4567", "v1", "4567", false},
		{"v1", "4567+dirty", "v1", "4567", true},
	} {
		got := describe(info, c.version, c.commit)
		if got.Version != c.wantVersion || got.Commit != c.wantCommit || got.Modified != c.wantModified {
			t.Errorf("describe(%q, %q): %+v", c.version, c.commit, got)
		}
		want := []record.Module{{Path: "b.example/b", Version: "v2.0.0", Sum: "h1:b="}, {Path: "z.example/z", Version: "v1.0.0", Sum: "h1:z="}}
		if !reflect.DeepEqual(got.Modules, want) {
			t.Errorf("modules %+v", got.Modules)
		}
	}
	if got := describe(&debug.BuildInfo{}, "", ""); got.Version != "(devel)" || got.Commit != "" || got.Modules == nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestRedact(t *testing.T) {
	e := record.Environment{
		Host: record.Host{Name: "node17.example.org", Serial: "VF1234", Vendor: "Dell", Kernel: "6.1.0"},
		Folders: []record.Folder{
			{Role: "data", MountPoint: "/mnt/node17/data", FileSystem: "nfs4", Source: "nas7:/export/data", DeviceNumber: "0:44",
				Options: "rw,vers=4.2,clientaddr=10.0.0.17,addr=10.0.0.7", Device: record.Device{Name: "x", Serial: record.UnknownText}},
			{Role: "checkpoints", MountPoint: "/scratch", FileSystem: "lustre", Source: "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch"},
			{Role: "results", MountPoint: "/node1", FileSystem: "ext4", Source: "/dev/nvme0n1p2", Options: "rw,relatime",
				Device: record.Device{Name: "nvme0n1", Model: "PM9A3", Serial: "S64"}},
		},
		Unknown: []record.Unknown{{Field: "x", Reason: "open /mnt/node17/x: no such file"}},
	}
	redact(&e, []string{"node17.example.org", "node17"})
	want := record.Environment{
		Redacted: true,
		Host:     record.Host{Name: "redacted", Serial: "redacted", Vendor: "Dell", Kernel: "6.1.0"},
		Folders: []record.Folder{
			{Role: "data", MountPoint: "/mnt/redacted/data", FileSystem: "nfs4", Source: "redacted:/export/data", DeviceNumber: "0:44",
				Options: "rw,vers=4.2,clientaddr=redacted,addr=redacted", Device: record.Device{Name: "x", Serial: record.UnknownText}},
			{Role: "checkpoints", MountPoint: "/scratch", FileSystem: "lustre", Source: "redacted:/scratch"},
			{Role: "results", MountPoint: "/node1", FileSystem: "ext4", Source: "/dev/nvme0n1p2", Options: "rw,relatime",
				Device: record.Device{Name: "nvme0n1", Model: "PM9A3", Serial: "redacted"}},
		},
		Unknown: []record.Unknown{{Field: "x", Reason: "open /mnt/redacted/x: no such file"}},
	}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("found    %+v\nexpected %+v", e, want)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	here := Collect(t.Context(), Request{Data: ".", Redact: true})
	holds(t, here)
	if !here.Redacted || here.Host.Name == name {
		t.Errorf("the host is %q although it was to be left out", here.Host.Name)
	}
}
