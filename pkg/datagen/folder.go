package datagen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// Marker is the name of the file that stands in a data folder from the first write until the data set is complete and
// pinned. It holds the recipe, and says that whatever else has one of the recipe's names is ours to replace.
const Marker = ".benchpin-generating"

// ErrOccupied is matched by errors about a data folder that holds something else than the data set asked for.
var ErrOccupied = errors.New("the data folder holds something else")

// ErrBusy is matched by the error about a data folder that another process is generating into.
var ErrBusy = errors.New("another process is generating into this folder")

// Store is a place that a data set can be generated into.
type Store interface {
	manifest.Source
	Create(name string, size int64) (store.Writer, error)
	Remove(name string) error
}

// spacer is a store that knows how much room there is.
type spacer interface{ FreeSpace() (int64, error) }

// rooted is a store in a folder.
type rooted interface{ Root() string }

// abandoner is a store on whose server a killed process may leave what it had written of a file: Abandon removes that.
type abandoner interface {
	Abandon(ctx context.Context) (given int, err error)
}

// found is what stands in a data folder before generating.
type found struct {
	marker    bool     // generation began here, by this recipe
	files     int      // of the recipe, companions included
	bytes     int64    // of those that can be what they should be
	temporary []string // left over by a process that was killed
}

// inspect walks through a data folder beside the recipe's paths, and refuses anything that is not of the data set.
func inspect(ctx context.Context, st Store, r Recipe) (found, error) {
	var f found
	var foreign, wrong []string
	others, all := 0, r.walk()
	note := func(list *[]string, text string) {
		if len(*list) < 5 {
			*list = append(*list, text)
		}
		others++
	}
	err := st.List(ctx, func(i store.Info) error {
		if store.IsTemporary(i.Path) {
			f.temporary = append(f.temporary, i.Path)
			return nil
		}
		if i.Path == Marker {
			f.marker = true
			return checkMarker(st, r)
		}
		spec, ok := all.peek()
		for ok && spec.Path < i.Path {
			all.skip()
			spec, ok = all.peek()
		}
		if !ok || spec.Path != i.Path {
			note(&foreign, i.Path)
			return nil
		}
		f.files++
		if spec.CanBe(i.Size) {
			f.bytes += i.Size
		} else {
			note(&wrong, fmt.Sprintf("%s (expected %s, found %d)", i.Path, spec.SizeText(), i.Size))
		}
		all.skip()
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}, nil
	case err != nil:
		return found{}, err
	case len(foreign) > 0:
		return found{}, occupied(foreign, others)
	case len(wrong) > 0 && !f.marker:
		return found{}, &ContentError{What: listed(wrong, others)}
	}
	return f, nil
}

func occupied(names []string, all int) error {
	return fmt.Errorf("%w: %s; choose another folder, or move these away", ErrOccupied, listed(names, all))
}

func listed(names []string, all int) string {
	more := ""
	if all > len(names) {
		more = fmt.Sprintf(" and %d more", all-len(names))
	}
	return strings.Join(names, ", ") + more
}

// ContentError is the error about files that have the names of a data set's and hold something else. It matches ErrOccupied.
type ContentError struct {
	// What names the files, and what is wrong with each.
	What string
	// Altered is true when the manifest says that this very data set was made here: they were altered since.
	Altered bool
}

func (e *ContentError) Error() string {
	if e.Altered {
		return fmt.Sprintf("the data set was altered after it was made: %s; delete what was altered to have it made again", e.What)
	}
	return fmt.Sprintf("%v: %s; choose another folder, or move these away", ErrOccupied, e.What)
}

// Is makes the error match ErrOccupied.
func (e *ContentError) Is(target error) bool { return target == ErrOccupied }

// judge looks into the manifest, when there is one, for whether the files that an error is about were altered or never were of this data
// set.
func (r Recipe) judge(err error, manifestPath string) {
	var content *ContentError
	if manifestPath == "" || !errors.As(err, &content) {
		return
	}
	if m, err := manifest.Open(manifestPath); err == nil {
		content.Altered = bytes.Equal(m.Header().Recipe, r.raw)
		_ = m.Close()
	}
}

// checkMarker compares the recipe in the marker with this one.
func checkMarker(st Store, r Recipe) error {
	f, err := st.Open(Marker)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Info()
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, min(info.Size, manifest.MaxRecipeBytes)))
	if err != nil {
		return fmt.Errorf("read %s: %w", Marker, err)
	}
	if !bytes.Equal(raw, r.raw) {
		return fmt.Errorf("%w: an unfinished data set of another recipe (%s): expected %s, found %.2000q; finish it with the workload "+
			"and the seed it was begun with, or remove it", ErrOccupied, Marker, r.raw, raw)
	}
	return nil
}

// write puts a small file into a store.
func write(st Store, name string, data []byte) error {
	w, err := st.Create(name, int64(len(data)))
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Commit()
}

// checkSpace fails if the store knows that it has less than need bytes left.
func checkSpace(st Store, need int64) error {
	s, ok := st.(spacer)
	if !ok {
		return nil
	}
	free, err := s.FreeSpace()
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%d bytes are to be written and %d are free, %d too few: %w", need, free, need-free, unix.ENOSPC)
	}
	return nil
}

// checkManifestPath refuses a manifest inside the data folder, also one that symbolic links lead there, where it would be a foreign file of its own data set.
func checkManifestPath(st Store, path string) error {
	s, ok := st.(rooted)
	if !ok || path == "" {
		return nil
	}
	inside, err := store.Inside(s.Root(), path)
	if err != nil {
		return fmt.Errorf("manifest %s: %w", path, err)
	}
	if inside {
		return fmt.Errorf("manifest %s lies in the data folder %s, which it describes; put it elsewhere", path, s.Root())
	}
	return nil
}

// lock keeps other generating processes out of a store that is a folder, until the returned function is called or the process
// ends, however it ends. Network file systems that cannot lock are left unlocked.
func lock(st Store) (unlock func(), err error) {
	s, ok := st.(rooted)
	if !ok {
		return func() {}, nil
	}
	unlock, err = store.Lock(s.Root())
	if errors.Is(err, store.ErrLocked) {
		return nil, fmt.Errorf("%s: %w; wait for it to end", s.Root(), ErrBusy)
	}
	return unlock, err
}
