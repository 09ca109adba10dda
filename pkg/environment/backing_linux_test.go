package environment

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// TestBackings: disks that are files or memory are named, below partitions, device mapper and loop devices; real disks are not.
func TestBackings(t *testing.T) {
	c := tree(t, map[string]string{
		"/proc/self/mountinfo": "20 1 8:2 / / rw - ext4 /dev/sda2 rw\n21 20 0:50 / /dev/shm rw - tmpfs tmpfs rw\n" +
			"22 20 7:1 / /mnt rw - ext4 /dev/loop1 rw\n",
		"/sys/devices/virtual/block/loop0/loop/backing_file": "/dev/shm/disk.img\n",
		"/sys/devices/virtual/block/loop1/loop/backing_file": "/home/disk.img\n",
		"/sys/devices/virtual/block/loop2/loop/backing_file": "/mnt/disk.img\n",
		"/sys/devices/virtual/block/loop0/loop0p1/partition": "1\n",
		"/sys/devices/virtual/block/zram0/stat":              "1\n",
		"/sys/devices/virtual/block/ram3/stat":               "1\n",
		"/sys/devices/virtual/block/ramdisk/stat":            "1\n",
		"/sys/devices/pci/block/sda/stat":                    "1\n",
		"/sys/devices/pci/block/sda/sda2/partition":          "2\n",
		"/sys/devices/virtual/block/dm-0/slaves/zram0":       "->../../zram0",
		"/sys/devices/virtual/block/dm-0/slaves/loop0p1":     "->../../loop0/loop0p1",
		"/sys/dev/block/8:2":                                 "->../../devices/pci/block/sda/sda2",
		"/sys/dev/block/7:1":                                 "->../../devices/virtual/block/loop1",
	})
	shm := record.Backing{Device: "loop0", File: "/dev/shm/disk.img", FileSystem: "tmpfs", Memory: true}
	home := record.Backing{Device: "loop1", File: "/home/disk.img", FileSystem: "ext4"}
	zram := record.Backing{Device: "zram0", Memory: true}
	for at, want := range map[string][]record.Backing{
		"virtual/block/loop0": {shm}, "virtual/block/loop0/loop0p1": {shm}, "virtual/block/loop1": {home}, "virtual/block/zram0": {zram},
		"virtual/block/loop2": {{Device: "loop2", File: "/mnt/disk.img", FileSystem: "ext4"}, home}, "virtual/block/dm-0": {shm, zram},
		"virtual/block/ram3": {{Device: "ram3", Memory: true}}, "virtual/block/ramdisk": nil, "pci/block/sda/sda2": nil, "pci/block/sda": nil,
	} {
		if found := c.backings(filepath.Join(c.root, "/sys/devices", at), mostBackings); !reflect.DeepEqual(found, want) {
			t.Errorf("%s: expected %+v, found %+v", at, want, found)
		}
	}
}
