//go:build linux

package environment

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMeterDisks: statistics are those of the whole disks below partitions and device mapper, each counted once.
func TestMeterDisks(t *testing.T) {
	c := tree(t, map[string]string{
		"/proc/self/mountinfo": "30 1 253:0 / / rw - ext4 /dev/mapper/data rw\n",
		// dm-0 lies on two partitions of one disk and on a disk of its own.
		"/sys/dev/block/253:0":                           "->../../devices/virtual/block/dm-0",
		"/sys/devices/virtual/block/dm-0/stat":           "9 9 9 9",
		"/sys/devices/virtual/block/dm-0/slaves/sda1":    "->../../../../pci/block/sda/sda1",
		"/sys/devices/virtual/block/dm-0/slaves/sda2":    "->../../../../pci/block/sda/sda2",
		"/sys/devices/virtual/block/dm-0/slaves/nvme0n1": "->../../../../pci/block/nvme0n1",
		"/sys/devices/pci/block/sda/stat":                "   10  2  1000  5  0 0 0 0 0 0 0\n",
		"/sys/devices/pci/block/sda/sda1/partition":      "1\n",
		"/sys/devices/pci/block/sda/sda2/partition":      "2\n",
		"/sys/devices/pci/block/nvme0n1/stat":            "   10  2  24  5  0 0 0 0 0 0 0\n",
	})
	m := &Meter{root: c.root, Disks: []string{}}
	if err := m.disks(c.root + "/sys/dev/block/253:0"); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.Disks, []string{"nvme0n1", "sda"}) {
		t.Errorf("disks %v", m.Disks)
	}
	if n, err := m.Disk(); err != nil || n != 1024*512 {
		t.Errorf("read %d, expected %d: %v", n, 1024*512, err)
	}
	if err := os.WriteFile(c.root+"/sys/devices/pci/block/sda/stat", []byte("1 2 x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Disk(); err == nil {
		t.Error("statistics that are no numbers are accepted")
	}
}

// TestMeterNetwork reads what NFS read from its server, of the right mount.
func TestMeterNetwork(t *testing.T) {
	const stats = `device /dev/sda1 mounted on / with fstype ext4
device server:/a mounted on /mnt/a with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2
	bytes:	1 2 3 4 5 6 7 8
	per-op statistics
device server:/b mounted on /mnt/with\040space with fstype nfs4 statvers=1.1
	bytes:	11 12 13 14 4096 16 17 18
`
	c := tree(t, map[string]string{"/proc/self/mountstats": stats})
	m := &Meter{root: c.root, MountPoint: "/mnt/with space", FileSystem: "nfs4"}
	if n, err := m.Network(); err != nil || n != 4096 {
		t.Errorf("found %d: %v", n, err)
	}
	m.MountPoint = "/mnt/c"
	if _, err := m.Network(); err == nil || !strings.Contains(err.Error(), "/mnt/c") {
		t.Errorf("a mount without statistics: %v", err)
	}
	m.FileSystem = "lustre"
	if _, err := m.Network(); err == nil || !strings.Contains(err.Error(), "lustre") {
		t.Errorf("another file system: %v", err)
	}
}

// TestMeterHere: the file system of this test is found, and what it cannot count is said.
func TestMeterHere(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	m := NewMeter(dir, uint64(st.Dev))
	if m.MountPoint == "unknown" || m.FileSystem == "unknown" {
		t.Errorf("found %+v", m)
	}
	n, err := m.Disk()
	t.Logf("%s at %s on %v: %d bytes read, %v", m.FileSystem, m.MountPoint, m.Disks, n, err)
	if err == nil && (n <= 0 || len(m.Disks) == 0) || err != nil && len(m.Disks) > 0 {
		t.Errorf("%d bytes from %v: %v", n, m.Disks, err)
	}
	other := NewMeter(dir, 1<<40)
	if _, err := other.Disk(); err == nil {
		t.Error("a device number that nothing has is found")
	}
}
