package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// List calls yield for every regular file: see [Store]. It holds the names of the folders on the path to the current
// file, and nothing of the others.
func (f *Folder) List(ctx context.Context, yield func(Info) error) error {
	return f.ListExcept(ctx, nil, yield)
}

// ListExcept is List but for what skip says: of a name for which it is true, nothing is said, whatever it is, and a folder of that name is
// not looked into. folder is true for names of folders. skip may be nil.
func (f *Folder) ListExcept(ctx context.Context, skip func(name string, folder bool) bool, yield func(Info) error) error {
	defer runtime.KeepAlive(f)
	fd, err := f.openParent("", false)
	if err != nil {
		return err
	}
	// A descriptor of its own: reading a folder moves the position, which duplicates share.
	own, err := retry(func() (int, error) {
		return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	_ = unix.Close(fd)
	if err != nil {
		return wrap("open folder", f.root, err)
	}
	l := &lister{f: f, ctx: ctx, skip: skip, yield: yield, buf: make([]byte, 64<<10)}
	return l.folder(own, nil, 1)
}

type lister struct {
	f     *Folder
	ctx   context.Context
	skip  func(name string, folder bool) bool
	yield func(Info) error
	buf   []byte
}

// names are the elements of one folder in one piece of memory: a folder of a million files costs their bytes and 8
// more each.
type names struct {
	arena []byte
	ents  []ent
}

type ent struct {
	off uint32
	len uint16
	dir bool
}

// key is what an element is sorted by. Everything below a folder begins with its name and a slash, so the slash takes
// part in the comparison: "a-b" < "a/b" < "a0", though "a" < "a-b".
func (n *names) key(e ent) []byte {
	end := e.off + uint32(e.len)
	if e.dir {
		end++ // the slash that add put there
	}
	return n.arena[e.off:end]
}

// folder lists what is below one open folder, which it closes. prefix is "" or ends in a slash.
func (l *lister) folder(fd int, prefix []byte, depth int) error {
	defer unix.Close(fd)
	if depth > MaxDepth {
		return fmt.Errorf("list %s: folders are nested more than %d deep", l.f.root, MaxDepth)
	}
	n, err := l.read(fd, prefix)
	if err != nil {
		return err
	}
	slices.SortFunc(n.ents, func(a, b ent) int { return bytes.Compare(n.key(a), n.key(b)) })
	for _, e := range n.ents {
		if err := l.ctx.Err(); err != nil {
			return fmt.Errorf("list %s: %w", l.f.root, context.Cause(l.ctx))
		}
		elem := string(n.arena[e.off : e.off+uint32(e.len)])
		name := string(prefix) + elem
		if e.dir {
			sub, err := retry(func() (int, error) {
				return unix.Openat(fd, elem, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			})
			if err != nil {
				return l.f.wrap("open folder", name, err)
			}
			if err := l.folder(sub, []byte(name+"/"), depth+1); err != nil {
				return err
			}
			continue
		}
		var st unix.Stat_t
		if _, err := retry(func() (int, error) { return 0, unix.Fstatat(fd, elem, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
			return l.f.wrap("stat", name, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG { // it was one when the folder was read
			return l.f.irregular(name, st.Mode)
		}
		if err := CheckName(name); err != nil {
			return fmt.Errorf("list %s: %w", l.f.root, err)
		}
		if err := l.yield(infoOf(name, &st)); err != nil {
			return err
		}
	}
	return nil
}

// read collects the elements of an open folder.
func (l *lister) read(fd int, prefix []byte) (*names, error) {
	n := &names{}
	for {
		if err := l.ctx.Err(); err != nil {
			return nil, fmt.Errorf("list %s: %w", l.f.root, context.Cause(l.ctx))
		}
		got, err := retry(func() (int, error) { return unix.Getdents(fd, l.buf) })
		if err != nil {
			return nil, l.f.wrap("read folder", string(prefix), err)
		}
		if got == 0 {
			return n, nil
		}
		if err := l.parse(fd, prefix, n, l.buf[:got]); err != nil {
			return nil, err
		}
	}
}

const (
	direntReclen = int(unsafe.Offsetof(unix.Dirent{}.Reclen))
	direntType   = int(unsafe.Offsetof(unix.Dirent{}.Type))
	direntName   = int(unsafe.Offsetof(unix.Dirent{}.Name))
)

// parse takes the records of one answer of the kernel.
func (l *lister) parse(fd int, prefix []byte, n *names, b []byte) error {
	for len(b) > direntName {
		reclen := int(binary.NativeEndian.Uint16(b[direntReclen:]))
		if reclen <= direntName || reclen > len(b) {
			return fmt.Errorf("read folder %s: record of %d bytes in an answer of %d", filepath.Join(l.f.root, string(prefix)), reclen, len(b))
		}
		elem, _, _ := bytes.Cut(b[direntName:reclen], []byte{0})
		typ := b[direntType]
		b = b[reclen:]
		if len(elem) == 0 || string(elem) == "." || string(elem) == ".." {
			continue
		}
		if err := l.add(fd, prefix, n, elem, typ); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) add(fd int, prefix []byte, n *names, elem []byte, typ byte) error {
	if typ == unix.DT_UNKNOWN {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, string(elem), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return l.f.wrap("stat", string(prefix)+string(elem), err)
		}
		typ = byte(st.Mode & unix.S_IFMT >> 12)
	}
	if l.skip != nil && l.skip(string(prefix)+string(elem), typ == unix.DT_DIR) {
		return nil
	}
	if typ != unix.DT_REG && typ != unix.DT_DIR {
		return l.f.irregular(string(prefix)+string(elem), uint32(typ)<<12)
	}
	if len(n.arena) > 1<<32-1<<17 {
		return fmt.Errorf("list %s: more than 4 GiB of names in one folder", filepath.Join(l.f.root, string(prefix)))
	}
	n.ents = append(n.ents, ent{off: uint32(len(n.arena)), len: uint16(len(elem)), dir: typ == unix.DT_DIR})
	n.arena = append(n.arena, elem...)
	if typ == unix.DT_DIR {
		n.arena = append(n.arena, '/')
	}
	return nil
}
