package environment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/record"
)

// mostBackings bounds how deep disks are followed: files on loop devices of files, disks made of others.
const mostBackings = 8

// backings finds the disks below a device's folder in sysfs that are files or memory.
func (c *collector) backings(folder string, depth int) []record.Backing {
	if depth == 0 {
		return nil
	}
	if parts, err := os.ReadDir(folder + "/slaves"); err == nil && len(parts) > 0 {
		var all []record.Backing
		for _, p := range parts {
			if real, err := filepath.EvalSymlinks(folder + "/slaves/" + p.Name()); err == nil {
				all = append(all, c.backings(real, depth-1)...)
			}
		}
		slices.SortFunc(all, func(a, b record.Backing) int { return strings.Compare(a.Device, b.Device) })
		return slices.Compact(all)
	}
	if _, err := os.Stat(folder + "/partition"); err == nil {
		folder = filepath.Dir(folder)
	}
	name := filepath.Base(folder)
	switch file := c.readable(strings.TrimPrefix(folder, c.root) + "/loop/backing_file"); {
	case file != "":
		return c.loop(name, file, depth)
	case numbered(name, "zram"), numbered(name, "ram"): // zram.ko, brd.ko
		return []record.Backing{{Device: name, Memory: true}}
	}
	return nil
}

// loop is a loop device, and what stands behind the disk that its file lies on.
func (c *collector) loop(name, file string, depth int) []record.Backing {
	b := record.Backing{Device: name, File: file, FileSystem: record.UnknownText}
	all := []record.Backing{b}
	mounts, err := c.mounts()
	if err != nil {
		return all
	}
	var st unix.Stat_t
	device := ""
	if unix.Stat(c.root+file, &st) == nil && c.root == "" {
		device = number(uint64(st.Dev))
	}
	m, ok := find(mounts, file, 0, device)
	if !ok {
		return all
	}
	all[0].FileSystem, all[0].Memory = m.fileSystem, record.InMemory(m.fileSystem)
	if below, err := filepath.EvalSymlinks(c.root + "/sys/dev/block/" + m.device); err == nil {
		all = append(all, c.backings(below, depth-1)...)
	}
	return all
}

// numbered is true for a name and a number.
func numbered(s, name string) bool {
	digits, ok := strings.CutPrefix(s, name)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
