package record

// Storage says where the bytes of one epoch came from, as the host and its kernel counted them (class H). All counts are differences of
// looks before and after the epoch, outside of its clock.
type Storage struct {
	// FileSystems are those that the files lie on, one as a rule, in order of their mount points.
	FileSystems []FileSystemTraffic `json:"file_systems"`
	// Memory are the bytes asked for that no device delivered: the page cache had them.
	Memory Figure `json:"bytes_from_memory"`
	// Sentence says so in words where most of the bytes came from memory.
	Sentence string `json:"sentence,omitempty"`
	// Files are read in the epoch, or might be; of LookedAt of them the page cache was asked for what it holds. Where they are fewer, what is
	// cached is an estimate: what it holds of those, by their share of the bytes.
	Files    Int `json:"files"`
	LookedAt Int `json:"files_looked_at"`
	// LookSeconds is what both looks took.
	LookSeconds Figure `json:"look_seconds"`
	// Dropped says what was done to make the epoch begin cold; absent where nothing was.
	Dropped *Dropped `json:"dropped,omitempty"`
	// Direct: files were read past the page cache.
	Direct bool `json:"direct,omitempty"`
}

// FileSystemTraffic are the bytes of one file system in one epoch.
type FileSystemTraffic struct {
	// Host is the name of the host that has it mounted, as in Cluster.Hosts; absent in runs on one host.
	Host       string `json:"host,omitempty"`
	MountPoint string `json:"mount_point"`
	Type       string `json:"type"`
	// Disks are the whole disks below partitions and device mapper.
	Disks []string `json:"disks"`
	// Asked are the bytes that readers asked for; Disk those that anybody on this machine read from Disks, and Network those that anybody
	// on it read from the server of the mount.
	Asked   Figure `json:"bytes_asked"`
	Disk    Figure `json:"bytes_disk"`
	Network Figure `json:"bytes_network"`
	// CachedBefore and CachedAfter are the bytes of the data set in the page cache when the epoch began, after anything was dropped, and
	// when it had ended.
	CachedBefore Figure `json:"bytes_cached_before"`
	CachedAfter  Figure `json:"bytes_cached_after"`
}

// Dropped is how the data set's pages were dropped from the page cache before an epoch.
type Dropped struct {
	// Cached are the bytes of the data set in the page cache before that; what stayed is CachedBefore of the file systems.
	Cached Figure `json:"bytes_cached"`
	// Everything: all of the machine's page cache was dropped, not the data set's alone.
	Everything bool   `json:"everything,omitempty"`
	Seconds    Figure `json:"seconds"`
}

// InMemory reports whether file systems of a type, by the kernel's name of it, are memory and nothing else. They write no changed page back,
// so that whoever has a file mapped for writing changes it without a trace in its times.
func InMemory(fileSystem string) bool {
	switch fileSystem {
	case "tmpfs", "ramfs", "devtmpfs", "rootfs", "hugetlbfs":
		return true
	}
	return false
}
