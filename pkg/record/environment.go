package record

// UnknownText is the value of a text that could not be found out; the reason is in Environment.Unknown.
const UnknownText = "unknown"

// RedactedText replaces a host name, an address or a serial number in a record that was made with --redact.
const RedactedText = "redacted"

// UnlimitedText is the value of a limit that is not set.
const UnlimitedText = "unlimited"

// Environment is what a run saw of its machine, before its clock started. Every figure in it is class H: only the host says so.
// A text that could not be found out is "unknown", a number or truth value is absent, and Unknown holds the reason of each.
type Environment struct {
	Class Class `json:"class"`
	// Redacted is true when host names, network addresses of mounts and serial numbers were left out on request. Nothing else is.
	Redacted bool   `json:"redacted"`
	Host     Host   `json:"host"`
	CPU      CPU    `json:"cpu"`
	Memory   Memory `json:"memory"`
	// NUMA lists the memory nodes, sorted by ID; empty when the kernel shows none.
	NUMA []NUMANode `json:"numa"`
	// Folders are the folders that the run reads or writes, in the order data, checkpoints, results; a role that has no folder is
	// left out.
	Folders []Folder `json:"folders"`
	// Buckets are the buckets that the run read or wrote in place of folders, in the order data, checkpoints; absent where there are none.
	Buckets []Bucket `json:"buckets,omitempty"`
	// ResultsApart is true when results are written to another file system than the one that data is read from.
	ResultsApart *bool     `json:"results_apart,omitempty"`
	Clock        Clock     `json:"clock"`
	Limits       Limits    `json:"limits"`
	Container    Container `json:"container"`
	// Sysctls are kernel settings that change how storage behaves, by their sysctl name, as the kernel prints them.
	Sysctls map[string]string `json:"sysctls"`
	// HugePages is the mode of transparent huge pages: "always", "madvise" or "never".
	HugePages string    `json:"transparent_hugepages"`
	Runtime   GoRuntime `json:"go"`
	Load      Load      `json:"load"`
	// Unknown says why a field could not be found out, sorted by field.
	Unknown []Unknown `json:"unknown"`
}

// Unknown is the reason why one field of the environment, or all fields below it, could not be found out.
type Unknown struct {
	// Field is the path of JSON names below "environment", such as "cpu.governor" or "folders.data.device".
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// Host names the machine and its operating system.
type Host struct {
	Name string `json:"name"`
	// OS and Architecture are Go's names: "linux", "amd64".
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	// Distribution is PRETTY_NAME of os-release.
	Distribution string `json:"distribution"`
	// Kernel is the release (uname -r), KernelVersion the build (uname -v).
	Kernel        string `json:"kernel"`
	KernelVersion string `json:"kernel_version"`
	// Vendor and Product are what the firmware says of the machine, Serial its serial number.
	Vendor  string `json:"vendor"`
	Product string `json:"product"`
	Serial  string `json:"serial"`
	// Virtual is true when the processor says that it runs under a hypervisor.
	Virtual *bool `json:"virtual,omitempty"`
}

// CPU describes the processors.
type CPU struct {
	Model string `json:"model"`
	// Sockets and Cores are physical; Online counts the logical processors that run, Usable those this process may run on.
	Sockets *int `json:"sockets,omitempty"`
	Cores   *int `json:"cores,omitempty"`
	Online  *int `json:"online,omitempty"`
	Usable  *int `json:"usable,omitempty"`
	// Governor is the frequency governor; several are joined by a comma when processors differ.
	Governor string `json:"governor"`
}

// Memory is the memory of the machine when the environment was collected, in bytes.
type Memory struct {
	Total     *Int `json:"total_bytes,omitempty"`
	Available *Int `json:"available_bytes,omitempty"`
	SwapTotal *Int `json:"swap_total_bytes,omitempty"`
	SwapFree  *Int `json:"swap_free_bytes,omitempty"`
}

// NUMANode is one memory node.
type NUMANode struct {
	ID int `json:"id"`
	// CPUs is the kernel's list, such as "0-15,32-47".
	CPUs   string `json:"cpus"`
	Memory *Int   `json:"memory_bytes,omitempty"`
}

// The roles of folders.
const (
	RoleData        = "data"
	RoleCheckpoints = "checkpoints"
	RoleResults     = "results"
)

// Folder says where the files of one role live.
type Folder struct {
	Role string `json:"role"`
	// MountPoint is where the file system that holds the folder is mounted; FileSystem its type ("ext4", "nfs4", "lustre"), Source
	// what is mounted, Options the mount's and the file system's options as the kernel lists them.
	MountPoint string `json:"mount_point"`
	FileSystem string `json:"file_system"`
	Source     string `json:"source"`
	Options    string `json:"options"`
	// DeviceNumber is st_dev as "major:minor".
	DeviceNumber string `json:"device_number"`
	// Total and Free are the size of the file system and the space that this user may still write, in bytes.
	Total  *Int   `json:"total_bytes,omitempty"`
	Free   *Int   `json:"free_bytes,omitempty"`
	Device Device `json:"device"`
}

// Device is the block device below a folder. A file system without one of its own, such as NFS, tmpfs or overlay, has all of it
// unknown, with the reason.
type Device struct {
	// Name is the kernel's name of the whole disk: "nvme0n1", "dm-0".
	Name   string `json:"name"`
	Model  string `json:"model"`
	Serial string `json:"serial"`
	// Parts are the kernel names of the devices that a device-mapper or md device is made of, sorted.
	Parts []string `json:"parts"`
	// Backings are those of the disks below that are files (loop devices) or memory (zram, ram disks); absent where none are.
	Backings   []Backing `json:"backings,omitempty"`
	Rotational *bool     `json:"rotational,omitempty"`
	Scheduler  string    `json:"scheduler"`
	// QueueDepth is queue/nr_requests; ReadAhead is read_ahead_kb in bytes.
	QueueDepth *int `json:"queue_depth,omitempty"`
	ReadAhead  *Int `json:"read_ahead_bytes,omitempty"`
}

// Backing is what stands behind a disk that is none.
type Backing struct {
	// Device is the kernel's name of the disk: "loop0", "zram0", "ram0".
	Device string `json:"device"`
	// File is the file behind a loop device, FileSystem the type of the file system that it lies on, "unknown" where that is not to be seen.
	File       string `json:"file,omitempty"`
	FileSystem string `json:"file_system,omitempty"`
	// Memory is true where what is read of the disk comes from memory.
	Memory bool `json:"memory"`
}

// Clock is the kernel's clock source: reading "hpet" or "acpi_pm" costs microseconds, which shows in short steps.
type Clock struct {
	Source    string   `json:"source"`
	Available []string `json:"available"`
}

// Limits are the limits that the process ran under.
type Limits struct {
	OpenFiles    Limit `json:"open_files"`
	LockedMemory Limit `json:"locked_memory"`
	Processes    Limit `json:"processes"`
	// CgroupVersion is "1", "2" or "none".
	CgroupVersion string `json:"cgroup_version"`
	// CgroupCPU is the processor quota in cores, a decimal or "unlimited"; CgroupMemory is in bytes or "unlimited". Both are the
	// tightest of the groups that the process is in, as far as it can see them.
	CgroupCPU    string `json:"cgroup_cpu"`
	CgroupMemory string `json:"cgroup_memory"`
}

// Limit is one resource limit: a decimal number (bytes for memory) or "unlimited".
type Limit struct {
	Soft string `json:"soft"`
	Hard string `json:"hard"`
}

// Container says whether the process ran in a container, as far as it can tell from inside.
type Container struct {
	// Kind is "none", "docker", "podman", "kubernetes", "systemd-nspawn", "lxc" or "other".
	Kind string `json:"kind"`
	// Evidence lists what led to Kind; none found is no proof that there is no container.
	Evidence []string `json:"evidence"`
}

// GoRuntime is the Go runtime of the process.
type GoRuntime struct {
	Version    string `json:"version"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	// GOGC is the garbage collector's percentage or "off"; GOMEMLIMIT is in bytes or "unlimited".
	GOGC       string `json:"gogc"`
	GOMEMLIMIT string `json:"gomemlimit"`
	Cgo        bool   `json:"cgo"`
}

// Load is the kernel's load average over 1, 5 and 15 minutes, when the environment was collected.
type Load struct {
	One     *float64 `json:"one,omitempty"`
	Five    *float64 `json:"five,omitempty"`
	Fifteen *float64 `json:"fifteen,omitempty"`
}
