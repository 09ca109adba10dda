//go:build !linux

package environment

import (
	"os"
	"runtime"

	"github.com/benchpin/benchpin/pkg/record"
)

// machine knows little outside Linux: what Go itself can tell.
func (c *collector) machine() {
	e := &c.env
	reason := "benchpin reads this on Linux only; this is " + runtime.GOOS
	for _, field := range []string{
		"host.distribution", "host.kernel", "host.kernel_version", "host.vendor", "host.product", "host.serial", "host.virtual",
		"cpu.model", "cpu.sockets", "cpu.cores", "cpu.online", "cpu.governor", "memory", "clock", "limits", "container",
		"transparent_hugepages", "load",
	} {
		c.unknown(field, "%s", reason)
	}
	const u = record.UnknownText
	var err error
	if e.Host.Name, err = os.Hostname(); err != nil {
		e.Host.Name = c.unknown("host.name", "%v", err)
	}
	e.Host.Distribution, e.Host.Kernel, e.Host.KernelVersion = u, u, u
	e.Host.Vendor, e.Host.Product, e.Host.Serial = u, u, u
	usable := runtime.NumCPU()
	e.CPU = record.CPU{Model: u, Governor: u, Usable: &usable}
	e.NUMA = []record.NUMANode{}
	e.Clock = record.Clock{Source: u, Available: []string{}}
	unknown := record.Limit{Soft: u, Hard: u}
	e.Limits = record.Limits{
		OpenFiles: unknown, LockedMemory: unknown, Processes: unknown, CgroupVersion: u, CgroupCPU: u, CgroupMemory: u,
	}
	e.Container = record.Container{Kind: u, Evidence: []string{}}
	e.Sysctls = map[string]string{}
	e.HugePages = u
}

// folder knows only whether there is one.
func (c *collector) folder(role, path string) record.Folder {
	if _, err := nearest(path); err != nil {
		return c.unknownFolder(role, "%v", err)
	}
	return c.unknownFolder(role, "benchpin reads this on Linux only; this is %s", runtime.GOOS)
}
