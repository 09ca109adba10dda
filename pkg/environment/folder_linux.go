package environment

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/record"
)

// mount is one line of mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	id                                 uint64
	device, root, point                string
	options, fileSystem, source, super string
}

// mounts reads the mounts of this process's namespace. procfs keeps options in maps, without their order, and leaves the escapes
// of spaces in paths as they are; both are needed here.
func (c *collector) mounts() ([]mount, error) {
	s, err := c.read("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []mount
	for line := range strings.Lines(s) {
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		f, g := strings.Split(before, " "), strings.Split(after, " ")
		if !ok || len(f) < 6 || len(g) < 2 {
			return nil, fmt.Errorf("/proc/self/mountinfo has a line of another form: %q", line)
		}
		id, err := strconv.ParseUint(f[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/self/mountinfo: mount ID %q", f[0])
		}
		m := mount{
			id: id, device: f[2], root: unescape(f[3]), point: unescape(f[4]), options: unescape(f[5]), fileSystem: unescape(g[0]),
			source: unescape(g[1]),
		}
		if len(g) > 2 {
			m.super = unescape(strings.Join(g[2:], " "))
		}
		out = append(out, m)
	}
	return out, nil
}

// unescape turns the kernel's \040 and the like back into bytes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// find returns the mount that holds a path: by its ID where the kernel gives one (0 if not), else the longest mount point above the
// path on the same device, else the longest; of equals the last, which lies over the others.
func find(mounts []mount, real string, id uint64, device string) (mount, bool) {
	var best mount
	score := -1
	for _, m := range mounts {
		inside := real == m.point || m.point == "/" || strings.HasPrefix(real, m.point+"/")
		if id != 0 && m.id == id {
			return m, true
		}
		if !inside {
			continue
		}
		s := len(m.point)
		if m.device == device {
			s += 1 << 20
		}
		if s >= score {
			best, score = m, s
		}
	}
	return best, score >= 0
}

// allOptions joins the options of the mount and of the file system, without those that stand in both.
func (m mount) allOptions() string {
	all := strings.Split(m.options, ",")
	for o := range strings.SplitSeq(m.super, ",") {
		if o != "" && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return strings.Join(all, ",")
}

func (c *collector) folder(role, given string) record.Folder {
	real, err := nearest(given)
	if err != nil {
		return c.unknownFolder(role, "%v", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return c.unknownFolder(role, "stat: %v", err)
	}
	device := number(uint64(st.Dev))
	mounts, err := c.mounts()
	if err != nil {
		return c.unknownFolder(role, "%v", err)
	}
	m, ok := find(mounts, real, mountID(real), device)
	if !ok {
		return c.unknownFolder(role, "no mount point lies above the folder")
	}
	f := record.Folder{
		Role: role, MountPoint: m.point, FileSystem: m.fileSystem, Source: m.source, Options: m.allOptions(), DeviceNumber: device,
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(real, &fs); err != nil {
		c.unknown("folders."+role+".total_bytes", "statfs: %v", err)
		c.unknown("folders."+role+".free_bytes", "statfs: %v", err)
	} else {
		// Frsize is the unit of the counts; file systems that leave it 0 use Bsize.
		unit := int64(fs.Frsize)
		if unit == 0 {
			unit = int64(fs.Bsize)
		}
		total, free := record.Int(int64(fs.Blocks)*unit), record.Int(int64(fs.Bavail)*unit)
		f.Total, f.Free = &total, &free
	}
	f.Device = c.device("folders."+role+".device", m, uint64(st.Dev))
	return f
}

func number(dev uint64) string { return fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev)) }

// mountID asks the kernel for the mount of a path (Linux 5.8); 0 when it cannot say.
func mountID(real string) uint64 {
	var x unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, real, unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &x) != nil || x.Mask&unix.STATX_MNT_ID == 0 {
		return 0
	}
	return x.Mnt_id
}

// device describes the disk below a mount. File systems of several devices have an anonymous number (major 0); their source may
// still name one.
func (c *collector) device(field string, m mount, dev uint64) record.Device {
	none := func(format string, args ...any) record.Device {
		c.unknown(field, format, args...)
		return noDevice()
	}
	if unix.Major(dev) == 0 {
		var st unix.Stat_t
		if !strings.HasPrefix(m.source, "/dev/") {
			return none("a file system of type %s has no block device of its own that can be seen from here", m.fileSystem)
		}
		if err := unix.Stat(c.root+m.source, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
			return none("%s, which is mounted, is no block device that can be seen from here", m.source)
		}
		dev = uint64(st.Rdev)
	}
	at := "/sys/dev/block/" + number(dev)
	folder, err := filepath.EvalSymlinks(c.root + at)
	if err != nil {
		return none("%v", err)
	}
	if _, err := os.Stat(folder + "/partition"); err == nil {
		folder = filepath.Dir(folder)
	}
	d := c.disk(field, strings.TrimPrefix(folder, c.root))
	d.Backings = c.backings(folder, mostBackings)
	return d
}

// disk reads the queue and the identity of a whole disk from its folder in sysfs.
func (c *collector) disk(field, folder string) record.Device {
	d := record.Device{Name: path.Base(folder), Parts: []string{}}
	parts, err := os.ReadDir(c.root + folder + "/slaves")
	if err == nil {
		for _, p := range parts {
			d.Parts = append(d.Parts, p.Name())
		}
	}
	switch {
	case len(d.Parts) > 0:
		d.Model = c.unknown(field+".model", "made of other devices: see parts")
		d.Serial = c.unknown(field+".serial", "made of other devices: see parts")
	default:
		// virtio and zram disks, for example, have none.
		if d.Model = c.readable(folder + "/device/model"); d.Model == "" {
			d.Model = c.unknown(field+".model", "the driver of %s shows none", d.Name)
		}
		d.Serial = c.serial(field+".serial", folder)
	}
	if n := c.number(field+".rotational", folder+"/queue/rotational"); n != nil {
		rotational := *n != 0
		d.Rotational = &rotational
	}
	d.Scheduler = c.scheduler(field+".scheduler", folder+"/queue/scheduler")
	d.QueueDepth = asInt(c.number(field+".queue_depth", folder+"/queue/nr_requests"))
	if n := c.number(field+".read_ahead_bytes", folder+"/queue/read_ahead_kb"); n != nil {
		bytes := record.Int(*n * 1024)
		d.ReadAhead = &bytes
	}
	return d
}

// serial is where the driver puts it: NVMe, virtio, SCSI.
func (c *collector) serial(field, folder string) string {
	for _, name := range []string{"/device/serial", "/serial"} {
		if s := c.readable(folder + name); s != "" {
			return s
		}
	}
	// Unit serial number page (SPC): four bytes of header, then the text.
	if b, err := os.ReadFile(c.root + folder + "/device/vpd_pg80"); err == nil && len(b) > 4 {
		if s := strings.Trim(string(b[4:]), " \x00"); s != "" {
			return s
		}
	}
	return c.unknown(field, "the driver of %s shows none", path.Base(folder))
}

// scheduler reads "none [mq-deadline] kyber"; one without a choice stands alone.
func (c *collector) scheduler(field, file string) string {
	s := c.text(field, file)
	if _, after, ok := strings.Cut(s, "["); ok {
		if name, _, ok := strings.Cut(after, "]"); ok {
			return name
		}
	}
	return s
}
