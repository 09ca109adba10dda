package environment

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/record"
)

func (c *collector) clock() {
	const base = "/sys/devices/system/clocksource/clocksource0/"
	c.env.Clock.Source = c.text("clock.source", base+"current_clocksource")
	available, err := c.read(base + "available_clocksource")
	if err != nil && c.env.Clock.Source != record.UnknownText {
		c.unknown("clock.available", "%v", err)
	}
	c.env.Clock.Available = append([]string{}, strings.Fields(available)...)
}

// sysctlNames are the settings that change how much is cached, when it is written back and how many files may be open.
func sysctlNames() []string {
	return []string{
		"fs.file-max", "fs.nr_open", "vm.dirty_background_bytes", "vm.dirty_background_ratio", "vm.dirty_bytes",
		"vm.dirty_expire_centisecs", "vm.dirty_ratio", "vm.dirty_writeback_centisecs", "vm.min_free_kbytes", "vm.overcommit_memory",
		"vm.swappiness", "vm.vfs_cache_pressure", "vm.zone_reclaim_mode",
	}
}

func (c *collector) sysctls() {
	c.env.Sysctls = map[string]string{}
	for _, name := range sysctlNames() {
		c.env.Sysctls[name] = c.text("sysctls."+name, "/proc/sys/"+strings.ReplaceAll(name, ".", "/"))
	}
}

// hugePages reads "always [madvise] never".
func (c *collector) hugePages() {
	s, err := c.read("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		c.env.HugePages = c.unknown("transparent_hugepages", "%v", err)
		return
	}
	_, s2, ok := strings.Cut(s, "[")
	mode, _, closed := strings.Cut(s2, "]")
	if !ok || !closed || mode == "" {
		mode = c.unknown("transparent_hugepages", "the kernel says %q", s)
	}
	c.env.HugePages = mode
}

func (c *collector) limits() {
	l := &c.env.Limits
	l.OpenFiles = c.limit("limits.open_files", unix.RLIMIT_NOFILE)
	l.LockedMemory = c.limit("limits.locked_memory", unix.RLIMIT_MEMLOCK)
	l.Processes = c.limit("limits.processes", unix.RLIMIT_NPROC)
	c.cgroups(l)
}

func (c *collector) limit(field string, which int) record.Limit {
	var r unix.Rlimit
	if err := unix.Getrlimit(which, &r); err != nil {
		u := c.unknown(field, "getrlimit: %v", err)
		return record.Limit{Soft: u, Hard: u}
	}
	return record.Limit{Soft: limitText(r.Cur), Hard: limitText(r.Max)}
}

func limitText(n uint64) string {
	// RLIM_INFINITY has another type on some architectures.
	if n == ^uint64(0) {
		return record.UnlimitedText
	}
	return strconv.FormatUint(n, 10)
}
