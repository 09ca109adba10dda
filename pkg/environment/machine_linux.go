package environment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/record"
)

// maxKernelFile bounds what is read of any file below /proc and /sys.
const maxKernelFile = 16 << 20

// read returns the trimmed text of one of the kernel's files.
func (c *collector) read(path string) (string, error) {
	f, err := os.Open(c.root + path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKernelFile))
	return strings.Trim(string(b), " \t\n\x00"), err
}

// text reads a file that holds the value of a field.
func (c *collector) text(field, path string) string {
	s, err := c.read(path)
	switch {
	case err != nil:
		return c.unknown(field, "%v", err)
	case s == "":
		return c.unknown(field, "%s is empty", path)
	}
	return s
}

func (c *collector) number(field, path string) *int64 {
	s, err := c.read(path)
	if err == nil {
		var n int64
		if n, err = strconv.ParseInt(s, 10, 64); err == nil {
			return &n
		}
		err = fmt.Errorf("%s holds %q", path, s)
	}
	c.unknown(field, "%v", err)
	return nil
}

func asInt(n *int64) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

func (c *collector) machine() {
	c.host()
	c.cpu()
	c.memory()
	c.numa()
	c.clock()
	c.limits()
	c.container()
	c.sysctls()
	c.hugePages()
}

func (c *collector) host() {
	h := &c.env.Host
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		h.Name, h.Kernel, h.KernelVersion = c.unknown("host.name", "uname: %v", err), c.unknown("host.kernel", "uname: %v", err),
			c.unknown("host.kernel_version", "uname: %v", err)
	} else {
		h.Name = unix.ByteSliceToString(u.Nodename[:])
		h.Kernel, h.KernelVersion = unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:])
	}
	h.Distribution = c.distribution()
	const dmi = "/sys/class/dmi/id/"
	h.Vendor = c.text("host.vendor", dmi+"sys_vendor")
	h.Serial = c.text("host.serial", dmi+"product_serial")
	// Machines without DMI, most of them arm64, have a device tree.
	if tree, err := c.read("/sys/firmware/devicetree/base/model"); err == nil && tree != "" {
		h.Product = tree
	} else {
		h.Product = c.text("host.product", dmi+"product_name")
	}
}

func (c *collector) distribution() string {
	s, err := c.read("/etc/os-release")
	if errors.Is(err, fs.ErrNotExist) {
		s, err = c.read("/usr/lib/os-release")
	}
	if err != nil {
		return c.unknown("host.distribution", "%v", err)
	}
	for line := range strings.Lines(s) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok && strings.Trim(value, `"'`) != "" {
			return strings.Trim(value, `"'`)
		}
	}
	return c.unknown("host.distribution", "os-release has no PRETTY_NAME")
}

func (c *collector) proc(field string) (procfs.FS, bool) {
	p, err := procfs.NewFS(c.root + "/proc")
	if err != nil {
		c.unknown(field, "%v", err)
	}
	return p, err == nil
}

func (c *collector) cpu() {
	cpu := &c.env.CPU
	cpu.Model = ""
	if p, ok := c.proc("cpu.model"); !ok {
		cpu.Model = record.UnknownText
		c.unknown("host.virtual", "no /proc")
	} else if infos, err := p.CPUInfo(); err != nil || len(infos) == 0 {
		cpu.Model = c.unknown("cpu.model", "/proc/cpuinfo: %d processors, %v", len(infos), err)
		c.unknown("host.virtual", "/proc/cpuinfo was not understood")
	} else {
		cpu.Model = strings.Join(strings.Fields(infos[0].ModelName), " ")
		if cpu.Model == "" {
			cpu.Model = c.unknown("cpu.model", "/proc/cpuinfo has no model name")
		}
		if runtime.GOARCH == "amd64" || runtime.GOARCH == "386" {
			virtual := slices.Contains(infos[0].Flags, "hypervisor")
			c.env.Host.Virtual = &virtual
		} else {
			c.unknown("host.virtual", "processors of %s do not tell", runtime.GOARCH)
		}
	}
	c.topology(cpu)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		// Machines with more processors than the set holds; Go asked with a larger one when it started.
		n := runtime.NumCPU()
		cpu.Usable = &n
	} else {
		n := set.Count()
		cpu.Usable = &n
	}
}

// topology counts processors and reads their governors.
func (c *collector) topology(cpu *record.CPU) {
	const base = "/sys/devices/system/cpu"
	online, err := c.read(base + "/online")
	var ids []int
	if err == nil {
		ids, err = parseList(online)
	}
	if err != nil {
		for _, field := range []string{"cpu.online", "cpu.sockets", "cpu.cores"} {
			c.unknown(field, "%v", err)
		}
		cpu.Governor = c.unknown("cpu.governor", "%v", err)
		return
	}
	n := len(ids)
	cpu.Online = &n
	sockets, cores, governors := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var noTopology, noGovernor error
	for _, id := range ids {
		at := fmt.Sprintf("%s/cpu%d", base, id)
		socket, err1 := c.read(at + "/topology/physical_package_id")
		core, err2 := c.read(at + "/topology/core_id")
		noTopology = errors.Join(noTopology, err1, err2)
		sockets[socket], cores[socket+" "+core] = true, true
		governor, err := c.read(at + "/cpufreq/scaling_governor")
		if err != nil && noGovernor == nil {
			noGovernor = err
		}
		if err == nil {
			governors[governor] = true
		}
		if noTopology != nil && noGovernor != nil {
			break
		}
	}
	if noTopology == nil {
		s, k := len(sockets), len(cores)
		cpu.Sockets, cpu.Cores = &s, &k
	} else {
		c.unknown("cpu.sockets", "%s", firstLine(noTopology))
		c.unknown("cpu.cores", "%s", firstLine(noTopology))
	}
	if noGovernor == nil {
		cpu.Governor = strings.Join(sorted(governors), ",")
	} else {
		cpu.Governor = c.unknown("cpu.governor", "%v", noGovernor)
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func sorted(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// maxListed bounds the processors of a kernel list, so that a wrong file costs nothing.
const maxListed = 1 << 16

// parseList reads the kernel's lists: "0-3,8,10-11".
func parseList(s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(to)
		}
		if err != nil || a < 0 || b < a || b >= maxListed {
			return nil, fmt.Errorf("expected a list such as 0-3,8, found %q", s)
		}
		for i := a; i <= b; i++ {
			out = append(out, i)
		}
	}
	return out, nil
}

func (c *collector) memory() {
	bytes := func(field string, n *uint64) *record.Int {
		if n == nil {
			c.unknown(field, "/proc/meminfo does not say")
			return nil
		}
		i := record.Int(*n)
		return &i
	}
	p, ok := c.proc("memory")
	if ok {
		info, err := p.Meminfo()
		if err != nil {
			c.unknown("memory", "%v", err)
		} else {
			c.env.Memory = record.Memory{
				Total:     bytes("memory.total_bytes", info.MemTotalBytes),
				Available: bytes("memory.available_bytes", info.MemAvailableBytes),
				SwapTotal: bytes("memory.swap_total_bytes", info.SwapTotalBytes),
				SwapFree:  bytes("memory.swap_free_bytes", info.SwapFreeBytes),
			}
		}
	}
	p, ok = c.proc("load")
	if !ok {
		return
	}
	load, err := p.LoadAvg()
	if err != nil {
		c.unknown("load", "%v", err)
		return
	}
	c.env.Load = record.Load{One: &load.Load1, Five: &load.Load5, Fifteen: &load.Load15}
}

func (c *collector) numa() {
	c.env.NUMA = []record.NUMANode{}
	const base = "/sys/devices/system/node/node"
	found, err := filepath.Glob(c.root + base + "[0-9]*")
	if err != nil || len(found) == 0 {
		c.unknown("numa", "the kernel shows no memory nodes")
		return
	}
	for _, path := range found {
		id, err := strconv.Atoi(strings.TrimPrefix(path, c.root+base))
		if err != nil {
			continue
		}
		field := "numa." + strconv.Itoa(id)
		node := record.NUMANode{ID: id}
		// A node of memory alone has an empty list, which is an answer.
		if node.CPUs, err = c.read(base + strconv.Itoa(id) + "/cpulist"); err != nil {
			node.CPUs = c.unknown(field+".cpus", "%v", err)
		}
		if node.Memory = c.nodeMemory(base + strconv.Itoa(id) + "/meminfo"); node.Memory == nil {
			c.unknown(field+".memory_bytes", "no MemTotal in the node's meminfo")
		}
		c.env.NUMA = append(c.env.NUMA, node)
	}
	slices.SortFunc(c.env.NUMA, func(a, b record.NUMANode) int { return a.ID - b.ID })
}

// nodeMemory reads "Node 0 MemTotal: 123 kB".
func (c *collector) nodeMemory(path string) *record.Int {
	s, err := c.read(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		if len(f) == 5 && f[2] == "MemTotal:" && f[4] == "kB" {
			if n, err := strconv.ParseInt(f[3], 10, 53); err == nil {
				b := record.Int(n * 1024)
				return &b
			}
		}
	}
	return nil
}
