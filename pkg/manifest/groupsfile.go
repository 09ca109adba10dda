package manifest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
)

// GroupsFile is a file of group digests on its way to disk.
type GroupsFile struct {
	headerPath string
	f          *os.File // nil until a file has groups
	out        *bufio.Writer
	hash       *blake3.Hasher
	groupsInfo
	err  error
	done bool
}

// CreateGroups begins the group digests beside the header of a manifest that is there. Nothing appears before Commit.
func CreateGroups(headerPath string) *GroupsFile { return &GroupsFile{headerPath: headerPath} }

// AddGroups appends those of an entry: as many as GroupCount says, which combine to its digest. Entries come in their order; those
// without groups may be left out.
func (g *GroupsFile) AddGroups(e Entry, groups [][32]byte) error {
	if g.err == nil {
		g.err = g.add(e, groups)
	}
	return g.err
}

func (g *GroupsFile) add(e Entry, groups [][32]byte) error {
	n := GroupCount(e.Size)
	if int64(len(groups)) != n {
		return fmt.Errorf("%w: %s has %d groups, found %d digests of them", ErrGroups, e.Path, n, len(groups))
	}
	if n == 0 {
		return nil
	}
	if d := blake.Digest(groups); d != e.Digest {
		return fmt.Errorf("%w: those of %s combine to %s, its entry has %s", ErrGroups, e.Path, FormatDigest(d), FormatDigest(e.Digest))
	}
	if g.f == nil {
		f, err := temporary(GroupsPath(g.headerPath))
		if err != nil {
			return err
		}
		g.f, g.out, g.hash = f, bufio.NewWriterSize(f, 64<<10), blake3.New()
		if _, err := g.out.Write(make([]byte, groupsHeader)); err != nil {
			return fmt.Errorf("group digests: %w", err)
		}
	}
	for i := range groups {
		_, _ = g.hash.Write(groups[i][:])
		if _, err := g.out.Write(groups[i][:]); err != nil {
			return fmt.Errorf("group digests: %w", err)
		}
	}
	g.files++
	g.values += n
	return nil
}

// Commit ends the file and gives it its name; root is that of the manifest. Where no file of a data set has groups nothing is written,
// and what stands there is removed.
func (g *GroupsFile) Commit(root [32]byte) (err error) {
	if g.done {
		return errClosed
	}
	defer func() {
		if aerr := g.Abort(); err == nil {
			err = aerr
		}
	}()
	path := GroupsPath(g.headerPath)
	switch {
	case g.err != nil:
		return g.err
	case g.f == nil:
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("group digests: %w", err)
		}
		return nil
	}
	g.root = root
	g.body = [32]byte(g.hash.Sum(nil))
	if err = g.out.Flush(); err == nil {
		_, err = g.f.WriteAt(g.encode(), 0)
	}
	if err == nil {
		err = g.f.Sync()
	}
	if err == nil {
		err = os.Rename(g.f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("save group digests %s: %w", path, err)
	}
	return nil
}

// Abort removes what was written. After Commit it does nothing, so that it can be deferred.
func (g *GroupsFile) Abort() error {
	if g.done {
		return nil
	}
	g.done = true
	if g.f == nil {
		return nil
	}
	err := g.f.Close()
	if rerr := os.Remove(g.f.Name()); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}
