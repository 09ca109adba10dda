package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/store"
)

// EntriesPath returns where the entries stand for a header at headerPath: NAME.entries.jsonl.zst beside NAME.json.
func EntriesPath(headerPath string) string {
	return strings.TrimSuffix(headerPath, ".json") + ".entries.jsonl.zst"
}

// Open opens a manifest saved by [File.Commit].
func Open(headerPath string) (*Manifest, error) {
	raw, err := readLimited(headerPath, MaxHeaderBytes)
	if err != nil {
		return nil, err
	}
	path := EntriesPath(headerPath)
	f, err := store.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("entries of manifest %s: %w", headerPath, err)
	}
	st, err := f.Stat()
	var m *Manifest
	if err == nil {
		m, err = OpenReaders(raw, f, st.Size())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("manifest %s: %w", headerPath, err)
	}
	m.name, m.close = path, f.Close
	return m, nil
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := store.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%w: header %s has more than %d bytes", ErrLimit, path, limit)
	}
	return b, nil
}

// File is a manifest on its way to disk: a Writer whose two files appear together, and a third with the group digests where it was
// given those of every file that has some.
type File struct {
	w          *Writer
	groups     *GroupsFile // nil once an entry came without the digests of its groups
	headerPath string
	entries    *os.File
	done       bool
}

// Create begins the pair of files headerPath (NAME.json) and EntriesPath(headerPath). Folders above are made as needed.
// Nothing appears under these names before Commit.
func Create(headerPath string, meta Meta) (*File, error) {
	if !strings.HasSuffix(headerPath, ".json") || filepath.Base(headerPath) == ".json" {
		return nil, fmt.Errorf("manifest %s: expected a name that ends in .json", headerPath)
	}
	if err := os.MkdirAll(filepath.Dir(headerPath), 0o777); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	f, err := temporary(EntriesPath(headerPath))
	if err != nil {
		return nil, err
	}
	return &File{w: NewWriter(f, meta), groups: CreateGroups(headerPath), headerPath: headerPath, entries: f}, nil
}

// Add appends an entry: see [Writer.Add]. After one of a file that has groups, no group digests are written.
func (f *File) Add(e Entry) error {
	if GroupCount(e.Size) == 0 {
		return f.AddGroups(e, nil)
	}
	if f.groups != nil {
		err := f.groups.Abort()
		f.groups = nil
		if err != nil {
			return err
		}
	}
	return f.w.Add(e)
}

// AddGroups appends an entry with the chaining values of its groups: see [GroupCount].
func (f *File) AddGroups(e Entry, groups [][32]byte) error {
	if err := f.w.Add(e); err != nil || f.groups == nil {
		return err
	}
	return f.groups.AddGroups(e, groups)
}

// temporary creates a file beside path that every user may read, as far as the umask allows, and locks it. Those of the same path that
// killed processes left behind, which are the ones that nobody has locked, are removed first.
func temporary(path string) (*os.File, error) {
	removeStale(path)
	for try := 0; ; try++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%d-%d-%s", temporaryPrefix, os.Getpid(), try, filepath.Base(path)))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil && !lockTemporary(f) {
			_ = f.Close() // somebody took it for a left-over one before it was locked
			err = os.ErrExist
		}
		if err == nil || !errors.Is(err, os.ErrExist) || try >= 1000 {
			if err != nil {
				return nil, fmt.Errorf("manifest: %w", err)
			}
			return f, nil
		}
	}
}

const temporaryPrefix = ".benchpin-tmp-"

// lockTemporary locks a new temporary file for as long as it is open, and reports whether it still has its name. Where the file system
// cannot lock, nobody can take it for a left-over one either.
func lockTemporary(f *os.File) bool {
	if err := flock(f); errors.Is(err, unix.EWOULDBLOCK) {
		return false
	}
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}

func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}

// removeStale removes the temporary files of path that no process holds. What it cannot do, it leaves: they are in nobody's way.
func removeStale(path string) {
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	own := regexp.MustCompile(`^` + regexp.QuoteMeta(temporaryPrefix) + `[0-9]+-[0-9]+-` + regexp.QuoteMeta(filepath.Base(path)) + `$`)
	for _, entry := range names {
		if !entry.Type().IsRegular() || !own.MatchString(entry.Name()) {
			continue
		}
		name := filepath.Join(filepath.Dir(path), entry.Name())
		f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if flock(f) == nil {
			_ = os.Remove(name)
		}
		_ = f.Close()
	}
}

// Commit ends the manifest, brings the files to the device, and gives them their names: group digests first, then entries, the header
// last. A process killed between the two leaves an older header, if there was one, beside newer entries; reading such a pair is an
// error, never a mixture.
func (f *File) Commit() (h Header, err error) {
	if f.done {
		return Header{}, errClosed
	}
	defer func() {
		if aerr := f.Abort(); err == nil {
			err = aerr
		}
	}()
	if h, err = f.w.Close(); err != nil {
		return Header{}, err
	}
	raw, err := h.Encode()
	if err != nil {
		return Header{}, err
	}
	if err := f.entries.Sync(); err != nil {
		return Header{}, fmt.Errorf("manifest: %w", err)
	}
	hf, err := temporary(f.headerPath)
	if err != nil {
		return Header{}, err
	}
	defer os.Remove(hf.Name())
	defer hf.Close() // after the rename: it is locked while it is open
	_, err = hf.Write(raw)
	if err == nil {
		err = hf.Sync()
	}
	if err == nil {
		err = f.commitGroups(h)
	}
	if err == nil {
		err = os.Rename(f.entries.Name(), EntriesPath(f.headerPath))
	}
	if err == nil {
		err = os.Rename(hf.Name(), f.headerPath)
	}
	if err == nil {
		err = syncDir(filepath.Dir(f.headerPath))
	}
	if err != nil {
		return Header{}, fmt.Errorf("save manifest %s: %w", f.headerPath, err)
	}
	return h, nil
}

// commitGroups gives the group digests their name, or removes those of an earlier manifest.
func (f *File) commitGroups(h Header) error {
	if f.groups == nil {
		f.groups = CreateGroups(f.headerPath)
	}
	root, err := ParseDigest(string(h.Root))
	if err != nil {
		return err
	}
	return f.groups.Commit(root)
}

// Abort removes what was written. After Commit it does nothing, so that it can be deferred.
func (f *File) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	err := f.entries.Close()
	if f.groups != nil {
		err = errors.Join(err, f.groups.Abort())
	}
	if rerr := os.Remove(f.entries.Name()); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
