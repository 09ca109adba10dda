package environment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sectorBytes is the unit of the statistics of block devices, whatever the device's own sectors are.
const sectorBytes = 512

// Meter tells how much was fetched for one file system, by everyone on this machine: the counters are the kernel's, they only grow, and
// the difference of two looks is what came between them.
type Meter struct {
	// MountPoint and FileSystem are where it is mounted and of which type it is; "unknown" where no mount has its device number.
	MountPoint, FileSystem string
	// Disks are the whole disks that it lies on, below partitions and device mapper, sorted; none for network and memory file systems.
	Disks []string

	root    string
	stats   []string // statistics of Disks
	noDisks error
}

// NewMeter finds the file system of a folder's files with the given device number (stat's st_dev): that of the folder itself, or of
// something that is mounted below it. It never fails: what cannot be counted is said by Disk and Network.
func NewMeter(folder string, device uint64) *Meter { return newMeter("", folder, device) }

func newMeter(root, folder string, device uint64) *Meter {
	c := newCollector(root)
	m := &Meter{MountPoint: "unknown", FileSystem: "unknown", Disks: []string{}, root: root}
	mounts, err := c.mounts()
	if err != nil {
		m.noDisks = err
		return m
	}
	at, err := m.mount(mounts, folder, device)
	if err != nil {
		m.noDisks = err
		return m
	}
	m.MountPoint, m.FileSystem = at.point, at.fileSystem
	number, err := at.blockDevice(root, device)
	if err == nil {
		err = m.disks(root + "/sys/dev/block/" + number)
	}
	m.noDisks = err
	slices.Sort(m.Disks)
	m.Disks = slices.Compact(m.Disks)
	return m
}

// mount finds the mount of a device below or above a folder.
func (m *Meter) mount(mounts []mount, folder string, device uint64) (mount, error) {
	real, err := nearest(folder)
	if err != nil {
		return mount{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err == nil && uint64(st.Dev) == device {
		if at, ok := find(mounts, real, mountID(real), number(device)); ok {
			return at, nil
		}
	}
	var best mount
	for _, at := range mounts { // of several, the deepest below the folder, else any
		if at.device == number(device) && (best.point == "" || strings.HasPrefix(at.point, real+"/") && len(at.point) > len(best.point)) {
			best = at
		}
	}
	if best.point == "" {
		return mount{}, fmt.Errorf("no mount has the device number %s of its files", number(device))
	}
	return best, nil
}

// blockDevice is the number of the block device that is mounted. File systems of several devices have an anonymous number (major 0); their
// source may still name one.
func (m mount) blockDevice(root string, device uint64) (string, error) {
	if unix.Major(device) != 0 {
		return number(device), nil
	}
	var st unix.Stat_t
	if !strings.HasPrefix(m.source, "/dev/") {
		return "", fmt.Errorf("a file system of type %s has no block device of its own that can be seen from here", m.fileSystem)
	}
	if err := unix.Stat(root+m.source, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%s, which is mounted, is no block device that can be seen from here", m.source)
	}
	return number(uint64(st.Rdev)), nil
}

// disks collects the whole disks below a device's folder in sysfs.
func (m *Meter) disks(at string) error {
	folder, err := filepath.EvalSymlinks(at)
	if err != nil {
		return fmt.Errorf("block device: %w", err)
	}
	if parts, err := os.ReadDir(folder + "/slaves"); err == nil && len(parts) > 0 {
		for _, p := range parts {
			if err := m.disks(folder + "/slaves/" + p.Name()); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := os.Stat(folder + "/partition"); err == nil {
		folder = filepath.Dir(folder)
	}
	if name := filepath.Base(folder); !slices.Contains(m.Disks, name) {
		m.Disks, m.stats = append(m.Disks, name), append(m.stats, folder+"/stat")
	}
	return nil
}

// Disk is how many bytes were read from the disks of the file system since the machine started, by everyone. It is an error where there are
// none to be seen.
func (m *Meter) Disk() (int64, error) {
	if m.noDisks != nil {
		return 0, m.noDisks
	}
	var sum int64
	for _, file := range m.stats {
		b, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("statistics of the disk: %w", err)
		}
		// Documentation/block/stat.rst: reads, merged reads, sectors read.
		f := strings.Fields(string(b))
		if len(f) < 3 {
			return 0, fmt.Errorf("statistics of the disk: %s has another form: %q", file, b)
		}
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("statistics of the disk: %s: sectors read are %q", file, f[2])
		}
		sum += n * sectorBytes
	}
	return sum, nil
}

// errNoNetwork is the reason of everything that is no network mount with statistics.
var errNoNetwork = errors.New("it has no statistics of a network mount")

// Network is how many bytes NFS read from its server for this mount since it was mounted, by everyone. It is an error for other file
// systems: their clients keep such counts elsewhere, or not at all.
func (m *Meter) Network() (int64, error) {
	if m.FileSystem != "nfs" && m.FileSystem != "nfs4" {
		return 0, fmt.Errorf("%w: its type is %s, and only NFS has them in /proc/self/mountstats", errNoNetwork, m.FileSystem)
	}
	b, err := os.ReadFile(m.root + "/proc/self/mountstats")
	if err != nil {
		return 0, fmt.Errorf("statistics of the mount: %w", err)
	}
	here, found, sum := false, false, int64(0)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 4 && f[0] == "device" && f[2] == "mounted":
			here = unescape(f[4]) == m.MountPoint
		case here && len(f) > 5 && f[0] == "bytes:":
			// Of the eight counts the fifth is what the server sent, cached or direct (nfs_iostat.h: NFSIOS_SERVERREADBYTES).
			n, err := strconv.ParseInt(f[5], 10, 64)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("statistics of the mount %s: bytes read from the server are %q", m.MountPoint, f[5])
			}
			sum, found = n, true // of mounts over each other the last one is seen
		}
	}
	if !found {
		return 0, fmt.Errorf("statistics of the mount %s: /proc/self/mountstats has none", m.MountPoint)
	}
	return sum, nil
}

// Memory is true for file systems that are memory and nothing else.
func (m *Meter) Memory() bool { return m.FileSystem == "tmpfs" || m.FileSystem == "ramfs" }

// countedTypes are the file systems whose reads the kernel counts for the process that asks for them (read_bytes of /proc/PID/io): those
// that read through the block layer in its name, and NFS. Clients in user space and those with caches and threads of their own, such as
// zfs, leave it at 0 or say something else.
var countedTypes = []string{"bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "nfs", "nfs4", "overlay", "ramfs", "tmpfs", "vfat", "xfs"}

// CountsProcess says whether /proc/self/io tells what this file system fetched for the process.
func (m *Meter) CountsProcess() bool { return slices.Contains(countedTypes, m.FileSystem) }
