//go:build linux

package environment

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// tree writes a machine's files below a new folder and returns a collector that looks there.
func tree(t *testing.T, files map[string]string) *collector {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(text, "->"); ok {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := newCollector(root)
	c.getenv = func(string) string { return "" }
	return c
}

func TestTopology(t *testing.T) {
	files := map[string]string{"/sys/devices/system/cpu/online": "0-2,4\n"}
	for id, place := range map[string][3]string{
		"0": {"0", "0", "performance"}, "1": {"0", "0", "performance"}, "2": {"0", "1", "powersave"}, "4": {"1", "0", "powersave"},
	} {
		at := "/sys/devices/system/cpu/cpu" + id
		files[at+"/topology/physical_package_id"], files[at+"/topology/core_id"] = place[0], place[1]
		files[at+"/cpufreq/scaling_governor"] = place[2] + "\n"
	}
	c := tree(t, files)
	var cpu record.CPU
	c.topology(&cpu)
	if *cpu.Online != 4 || *cpu.Sockets != 2 || *cpu.Cores != 3 || cpu.Governor != "performance,powersave" || c.env.Unknown != nil {
		t.Errorf("online %d sockets %d cores %d governor %q, unknown %v", *cpu.Online, *cpu.Sockets, *cpu.Cores, cpu.Governor, c.env.Unknown)
	}
	empty := tree(t, nil)
	cpu = record.CPU{}
	empty.topology(&cpu)
	if cpu.Online != nil || cpu.Governor != record.UnknownText || len(empty.env.Unknown) != 4 {
		t.Errorf("of nothing: %+v %v", cpu, empty.env.Unknown)
	}
	if reason := empty.env.Unknown[0].Reason; strings.Contains(reason, empty.root) || !strings.Contains(reason, "/sys/devices") {
		t.Errorf("reason is %q", reason)
	}
}

func TestParseList(t *testing.T) {
	if got, err := parseList("0-3,8,10-11"); err != nil || !reflect.DeepEqual(got, []int{0, 1, 2, 3, 8, 10, 11}) {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "x", "3-1", "-1", "0-", "0-99999999999", "0-9999999"} {
		if got, err := parseList(bad); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

func TestNUMA(t *testing.T) {
	c := tree(t, map[string]string{
		"/sys/devices/system/node/node0/cpulist":  "0-7\n",
		"/sys/devices/system/node/node0/meminfo":  "Node 0 MemTotal:       32768 kB\nNode 0 MemFree: 1 kB\n",
		"/sys/devices/system/node/node10/cpulist": "\n",
		"/sys/devices/system/node/node2/cpulist":  "8-15\n",
	})
	c.numa()
	bytes := record.Int(32768 * 1024)
	want := []record.NUMANode{{ID: 0, CPUs: "0-7", Memory: &bytes}, {ID: 2, CPUs: "8-15"}, {ID: 10}}
	if !reflect.DeepEqual(c.env.NUMA, want) {
		t.Errorf("%+v", c.env.NUMA)
	}
}

const mountLines = `20 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
21 20 0:5 / /proc rw - proc proc rw
30 20 8:17 / /mnt/big\040data rw,noatime master:1 - xfs /dev/sdb1 rw,attr2,noatime
31 20 0:44 / /mnt/nas rw - nfs4 nas7:/export rw,vers=4.2,addr=10.0.0.7
32 20 0:50 / /mnt rw - tmpfs tmpfs rw
40 20 0:60 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
`

func TestMounts(t *testing.T) {
	c := tree(t, map[string]string{"/proc/self/mountinfo": mountLines})
	mounts, err := c.mounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		path, device string
		id           uint64
		want         string
	}{
		{"/mnt/big data/x", "8:17", 0, "/mnt/big data"},
		{"/mnt/big data", "8:17", 0, "/mnt/big data"},
		{"/mnt/big datax", "0:50", 0, "/mnt"},
		{"/mnt/big data/x", "0:50", 0, "/mnt"}, // hidden by the later mount of /mnt: the device tells
		{"/mnt/big data/x", "0:50", 32, "/mnt"},
		{"/mnt/nas/a", "0:99", 0, "/mnt/nas"}, // a subvolume has a number that stands in no line
		{"/home", "8:2", 0, "/"},
	} {
		if m, ok := find(mounts, x.path, x.id, x.device); !ok || m.point != x.want {
			t.Errorf("%s on %s: %q, expected %q", x.path, x.device, m.point, x.want)
		}
	}
	if got := mounts[2].allOptions(); got != "rw,noatime,attr2" {
		t.Errorf("options %q", got)
	}
	for _, bad := range []string{"1 2 3\n", "x 1 8:2 / / rw - ext4 a rw\n", "20 1 8:2 / / rw\n"} {
		if _, err := tree(t, map[string]string{"/proc/self/mountinfo": bad}).mounts(); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

func TestDisk(t *testing.T) {
	c := tree(t, map[string]string{
		"/sys/devices/pci/nvme0n1/queue/rotational": "0\n", "/sys/devices/pci/nvme0n1/queue/scheduler": "[none] mq-deadline\n",
		"/sys/devices/pci/nvme0n1/queue/nr_requests": "1023\n", "/sys/devices/pci/nvme0n1/queue/read_ahead_kb": "128\n",
		"/sys/devices/pci/nvme0n1/device/model": "PM9A3   \n", "/sys/devices/pci/nvme0n1/device/serial": " S64 \n",
		"/sys/devices/pci/nvme0n1/nvme0n1p1/partition": "1\n",
		"/sys/dev/block/259:1":                         "->../../devices/pci/nvme0n1/nvme0n1p1",
		"/sys/devices/virtual/dm-0/slaves/sdb":         "", "/sys/devices/virtual/dm-0/slaves/sda": "",
		"/sys/dev/block/253:0":                  "->../../devices/virtual/dm-0",
		"/sys/devices/scsi/sdc/device/vpd_pg80": "\x00\x80\x00\x04WX42", "/sys/devices/scsi/sdc/queue/scheduler": "bfq\n",
	})
	d := c.device("d", mount{fileSystem: "ext4"}, 259<<8|1)
	if d.Name != "nvme0n1" || d.Model != "PM9A3" || d.Serial != "S64" || d.Scheduler != "none" || *d.QueueDepth != 1023 ||
		*d.ReadAhead != 131072 || *d.Rotational || len(d.Parts) != 0 || c.env.Unknown != nil {
		t.Errorf("partition: %+v, unknown %v", d, c.env.Unknown)
	}
	d = c.device("d", mount{fileSystem: "xfs"}, 253<<8)
	if d.Name != "dm-0" || !reflect.DeepEqual(d.Parts, []string{"sda", "sdb"}) || d.Model != record.UnknownText || d.QueueDepth != nil {
		t.Errorf("mapped: %+v", d)
	}
	if d = c.disk("d", "/sys/devices/scsi/sdc"); d.Serial != "WX42" || d.Scheduler != "bfq" {
		t.Errorf("scsi: %+v", d)
	}
	for _, m := range []mount{{fileSystem: "overlay", source: "overlay"}, {fileSystem: "btrfs", source: "/dev/gone"}} {
		c.env.Unknown = nil
		if d = c.device("d", m, 44); d.Name != record.UnknownText || len(c.env.Unknown) != 1 || c.env.Unknown[0].Field != "d" {
			t.Errorf("%s: %+v, unknown %v", m.fileSystem, d, c.env.Unknown)
		}
	}
}

func TestCgroups(t *testing.T) {
	const v1Mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	const v2Mounts = "40 20 0:60 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for name, x := range map[string]struct {
		files map[string]string
		want  record.Limits
	}{
		"version 2, the parent is tighter": {map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "/sys/fs/cgroup/a/cpu.max": "150000 100000\n",
			"/sys/fs/cgroup/a/b/memory.max": "2000000\n", "/sys/fs/cgroup/a/memory.max": "1000000\n",
		}, record.Limits{CgroupVersion: "2", CgroupCPU: "1.5", CgroupMemory: "1000000"}},
		"version 2, no limit": {map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cgroup.procs": "",
		}, record.Limits{CgroupVersion: "2", CgroupCPU: "unlimited", CgroupMemory: "unlimited"}},
		"version 2, group of another namespace": {map[string]string{
			"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/../x\n", "/sys/fs/cgroup/memory.max": "77\n",
		}, record.Limits{CgroupVersion: "2", CgroupCPU: "unlimited", CgroupMemory: "77"}},
		"version 1 in docker": {map[string]string{
			"/proc/self/mountinfo": v1Mounts, "/proc/self/cgroup": "2:cpu,cpuacct:/docker/abc\n1:memory:/docker/abc\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, record.Limits{CgroupVersion: "1", CgroupCPU: "0.5", CgroupMemory: "unlimited"}},
		"version 1, quota off": {map[string]string{
			"/proc/self/mountinfo": v1Mounts, "/proc/self/cgroup": "2:cpu,cpuacct:/\n1:memory:/docker/abc\n",
			"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n",
		}, record.Limits{CgroupVersion: "1", CgroupCPU: "unlimited", CgroupMemory: "4096"}},
		"mounted, but not to be seen": {map[string]string{"/proc/self/mountinfo": v2Mounts, "/proc/self/cgroup": "0::/a\n"},
			record.Limits{CgroupVersion: "2", CgroupCPU: "unknown", CgroupMemory: "unknown"}},
		"no groups": {map[string]string{"/proc/self/mountinfo": "", "/proc/self/cgroup": ""},
			record.Limits{CgroupVersion: "none", CgroupCPU: "unlimited", CgroupMemory: "unlimited"}},
		"nothing": {nil, record.Limits{CgroupVersion: "unknown", CgroupCPU: "unknown", CgroupMemory: "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := tree(t, x.files)
			var got record.Limits
			c.cgroups(&got)
			if got != x.want {
				t.Errorf("found %+v, expected %+v", got, x.want)
			}
			unknown := []string{got.CgroupVersion, got.CgroupCPU, got.CgroupMemory}
			n := 0
			for _, s := range unknown {
				if s == record.UnknownText {
					n++
				}
			}
			if len(c.env.Unknown) != n {
				t.Errorf("%d unknown, reasons %v", n, c.env.Unknown)
			}
		})
	}
}

func TestContainer(t *testing.T) {
	for name, x := range map[string]struct {
		files map[string]string
		env   map[string]string
		want  string
	}{
		"none":       {map[string]string{"/proc/self/mountinfo": mountLines, "/proc/self/cgroup": "0::/user.slice\n"}, nil, "none"},
		"docker":     {map[string]string{"/.dockerenv": ""}, nil, "docker"},
		"docker v1":  {map[string]string{"/proc/self/cgroup": "1:cpu:/docker/0123456789ab\n"}, nil, "docker"},
		"podman":     {map[string]string{"/run/.containerenv": "", "/proc/self/cgroup": "0::/libpod-12\n"}, map[string]string{"container": "podman"}, "podman"},
		"kubernetes": {map[string]string{"/.dockerenv": ""}, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"},
		"nspawn":     {map[string]string{"/run/systemd/container": "systemd-nspawn\n"}, nil, "systemd-nspawn"},
		"lxc":        {nil, map[string]string{"container": "lxc"}, "lxc"},
		"oci":        {nil, map[string]string{"container": "oci"}, "other"},
		"overlay":    {map[string]string{"/proc/self/mountinfo": "20 1 0:99 / / rw - overlay overlay rw,lowerdir=/l\n"}, nil, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tree(t, x.files)
			c.getenv = func(key string) string { return x.env[key] }
			c.container()
			got := c.env.Container
			if got.Kind != x.want || (x.want == "none") != (len(got.Evidence) == 0) {
				t.Errorf("found %+v, expected %s", got, x.want)
			}
			if strings.Contains(strings.Join(got.Evidence, " "), "0123456789ab") {
				t.Error("evidence holds the container's ID")
			}
		})
	}
}

func TestSettings(t *testing.T) {
	c := tree(t, map[string]string{
		"/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n", "/proc/sys/vm/dirty_ratio": "20\n",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc \n",
		"/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet \n",
		"/etc/os-release": "NAME=x\nPRETTY_NAME=\"Debian 12\"\n",
	})
	c.hugePages()
	c.sysctls()
	c.clock()
	if e := c.env; e.HugePages != "madvise" || e.Sysctls["vm.dirty_ratio"] != "20" || e.Sysctls["vm.swappiness"] != record.UnknownText ||
		e.Clock.Source != "tsc" || !slices.Equal(e.Clock.Available, []string{"tsc", "hpet"}) || c.distribution() != "Debian 12" {
		t.Errorf("%+v", e)
	}
	if n := len(c.env.Unknown); n != len(sysctlNames())-1 {
		t.Errorf("%d reasons: %v", n, c.env.Unknown)
	}
	bare := tree(t, nil)
	holds(t, bare.collect(t.Context(), Request{Data: "."}))
}
