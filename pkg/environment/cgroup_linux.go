package environment

import (
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// cgroups finds the tightest processor and memory limits of the groups that the process is in, from its own up to the topmost that
// it can see: a limit of a parent binds as much as its own. A controller is in version 1 or in version 2, and both may be mounted.
func (c *collector) cgroups(l *record.Limits) {
	lines, err := c.read("/proc/self/cgroup")
	mounts, err2 := c.mounts()
	if err != nil || err2 != nil {
		if err == nil {
			err = err2
		}
		for _, field := range []string{"cgroup_version", "cgroup_cpu", "cgroup_memory"} {
			c.unknown("limits."+field, "%v", err)
		}
		l.CgroupVersion, l.CgroupCPU, l.CgroupMemory = record.UnknownText, record.UnknownText, record.UnknownText
		return
	}
	var v2 string             // the group in the unified hierarchy
	v1 := map[string]string{} // the group by controller
	for line := range strings.Lines(lines) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case id == "0" && controllers == "":
			v2 = group
		default:
			for name := range strings.SplitSeq(controllers, ",") {
				v1[name] = group
			}
		}
	}
	c.cgroupLimits(l, mounts, v1, v2)
}

func (c *collector) cgroupLimits(l *record.Limits, mounts []mount, v1 map[string]string, v2 string) {
	find := func(controller string) (version string, folders []string) {
		for _, m := range slices.Backward(mounts) {
			if group, ok := v1[controller]; ok && m.fileSystem == "cgroup" && slices.Contains(strings.Split(m.super, ","), controller) {
				return "1", m.groups(group)
			}
		}
		for _, m := range slices.Backward(mounts) {
			if m.fileSystem == "cgroup2" && v2 != "" {
				return "2", m.groups(v2)
			}
		}
		return "", nil
	}
	cpuVersion, cpuGroups := find("cpu")
	memoryVersion, memoryGroups := find("memory")
	l.CgroupVersion = cpuVersion
	if cpuVersion == "" {
		l.CgroupVersion = memoryVersion
	}
	cores, limit := math.Inf(1), int64(math.MaxInt64)
	var seenCPU, seenMemory bool
	for _, folder := range cpuGroups {
		n, ok := c.quota(cpuVersion, folder)
		seenCPU = seenCPU || ok
		cores = min(cores, n)
	}
	for _, folder := range memoryGroups {
		n, ok := c.memoryLimit(memoryVersion, folder)
		seenMemory = seenMemory || ok
		limit = min(limit, n)
	}
	l.CgroupCPU, l.CgroupMemory = record.UnlimitedText, record.UnlimitedText
	switch {
	case !math.IsInf(cores, 1):
		l.CgroupCPU = strconv.FormatFloat(cores, 'f', -1, 64)
	case !seenCPU && l.CgroupVersion != "":
		l.CgroupCPU = c.unknown("limits.cgroup_cpu", "the process sees no group's folder")
	}
	switch {
	// Version 1 writes the largest multiple of a page for "no limit".
	case limit < math.MaxInt64-1<<20:
		l.CgroupMemory = strconv.FormatInt(limit, 10)
	case !seenMemory && l.CgroupVersion != "":
		l.CgroupMemory = c.unknown("limits.cgroup_memory", "the process sees no group's folder")
	}
	if l.CgroupVersion == "" {
		l.CgroupVersion = "none"
	}
}

// groups are the folders of a group and of all above it below this mount. A group outside of what is mounted here, as in many
// containers, leaves the mount's own folder.
func (m mount) groups(group string) []string {
	below := "/"
	if m.root == "/" || group == m.root || strings.HasPrefix(group, m.root+"/") {
		below = path.Clean("/" + strings.TrimPrefix(group, strings.TrimSuffix(m.root, "/")))
	}
	if strings.HasPrefix(group, "/..") {
		below = "/"
	}
	var out []string
	for {
		out = append(out, path.Join(m.point, below))
		if below == "/" {
			return out
		}
		below = path.Dir(below)
	}
}

// quota returns the cores that one group may use, infinite without a limit, and whether its folder is there at all.
func (c *collector) quota(version, folder string) (float64, bool) {
	if info, err := os.Stat(c.root + folder); err != nil || !info.IsDir() {
		return math.Inf(1), false
	}
	var quota, period string
	if version == "2" {
		s, _ := c.read(folder + "/cpu.max")
		quota, period, _ = strings.Cut(s, " ")
	} else {
		quota, _ = c.read(folder + "/cpu.cfs_quota_us")
		period, _ = c.read(folder + "/cpu.cfs_period_us")
	}
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	// "max", "-1" and a missing file, which is how the topmost group looks, all mean that there is no limit.
	if err1 != nil || err2 != nil || !(q > 0) || !(p > 0) {
		return math.Inf(1), true
	}
	return q / p, true
}

func (c *collector) memoryLimit(version, folder string) (int64, bool) {
	if info, err := os.Stat(c.root + folder); err != nil || !info.IsDir() {
		return math.MaxInt64, false
	}
	name := "/memory.limit_in_bytes"
	if version == "2" {
		name = "/memory.max"
	}
	s, _ := c.read(folder + name)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return math.MaxInt64, true
	}
	return n, true
}
