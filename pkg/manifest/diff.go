package manifest

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
)

// Change is one difference between two manifests: Removed, Added, Changed or Renamed.
type Change struct {
	Kind Kind   `json:"kind"`
	Path string `json:"path"`
	To   string `json:"to,omitempty"` // path in the second manifest of a renamed file
	Old  *Side  `json:"old,omitempty"`
	New  *Side  `json:"new,omitempty"`
}

// Tally is a number of files and what they weigh.
type Tally struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (t *Tally) add(e Entry) {
	t.Files++
	t.Bytes += e.Size
}

// Summary counts what Diff found.
type Summary struct {
	Same, Removed, Added, Renamed Tally
	// Changed files have Bytes as they were, and ChangedTo as they are now.
	Changed   Tally
	ChangedTo int64
	// Excluded are files that only one of the manifests has and the other excludes: they are no difference.
	Excluded Tally
	// RenamesSearched is false when so many files were removed or added that looking for renames would have needed memory for all of
	// them (MaxRenames); then they are counted as removed and added.
	RenamesSearched bool
}

// Equal reports whether there was no difference.
func (s Summary) Equal() bool {
	return s.Removed.Files+s.Added.Files+s.Changed.Files+s.Renamed.Files == 0
}

// MaxRenames is the number of removed and added files, together, up to which Diff looks for renamed ones. It bounds the memory of that:
// about 25 MB for paths of 100 bytes.
const MaxRenames = 1 << 16

// Diff calls yield for every difference between a and b, in order of paths, and stops at its first error, which it returns
// as it is. Both manifests are read, and checked, to the end before the first call; where they differ they are read twice: once to find
// renames, once to tell. Memory does not grow with the number of files.
func Diff(ctx context.Context, a, b *Manifest, yield func(Change) error) (Summary, error) {
	var s Summary
	var pairs []*MismatchError
	searched := true
	digests := map[string]digest.Digest{}
	err := merge(ctx, a, b, func(x, y *Entry) error {
		switch {
		case s.same(x, y) || s.excluded(a, b, x, y):
			return nil
		case x != nil && y != nil:
			s.Changed.Files++ // counted again below, with all others
		case x == nil:
			s.Added.Files++
			if searched {
				pairs = append(pairs, &MismatchError{Kind: Extra, Path: y.Path, Found: &Side{Size: y.Size}})
				digests[y.Path] = FormatDigest(y.Digest)
			}
		default:
			s.Removed.Files++
			if searched {
				pairs = append(pairs, &MismatchError{Kind: Missing, Path: x.Path, Expected: expected(*x)})
			}
		}
		if len(pairs) > MaxRenames {
			searched, pairs, digests = false, nil, nil
		}
		return nil
	})
	if err != nil || s.Equal() {
		s.RenamesSearched = searched
		return s, err
	}
	from, to := map[string]string{}, map[string]bool{}
	for _, m := range pairRenames(pairs, digests) {
		if m.Kind == Renamed {
			from[m.Path], to[m.To] = m.To, true
		}
	}
	s = Summary{RenamesSearched: searched}
	err = merge(ctx, a, b, func(x, y *Entry) error {
		switch {
		case s.same(x, y) || s.excluded(a, b, x, y):
			return nil
		case x != nil && y != nil:
			s.Changed.add(*x)
			s.ChangedTo += y.Size
			return yield(Change{Kind: Changed, Path: x.Path, Old: expected(*x), New: expected(*y)})
		case y == nil && from[x.Path] != "":
			s.Renamed.add(*x)
			return yield(Change{Kind: Renamed, Path: x.Path, To: from[x.Path], Old: expected(*x), New: expected(*x)})
		case y == nil:
			s.Removed.add(*x)
			return yield(Change{Kind: Removed, Path: x.Path, Old: expected(*x)})
		case to[y.Path]:
			return nil // told at the path that it had before
		default:
			s.Added.add(*y)
			return yield(Change{Kind: Added, Path: y.Path, New: expected(*y)})
		}
	})
	return s, err
}

// same counts a file that both have with the same bytes.
func (s *Summary) same(x, y *Entry) bool {
	if x == nil || y == nil || x.Size != y.Size || x.Digest != y.Digest {
		return false
	}
	s.Same.add(*x)
	return true
}

// excluded counts a file of which one manifest does not speak, by intent.
func (s *Summary) excluded(a, b *Manifest, x, y *Entry) bool {
	switch {
	case y == nil && b.exclude.Match(x.Path):
		s.Excluded.add(*x)
	case x == nil && a.exclude.Match(y.Path):
		s.Excluded.add(*y)
	default:
		return false
	}
	return true
}

// merge calls each for every path of a or b in order, with nil for the one that does not have it.
func merge(ctx context.Context, a, b *Manifest, each func(x, y *Entry) error) error {
	nextA, stopA := pull(func(yield func(Entry) error) error { return a.Entries(ctx, yield) })
	defer stopA()
	nextB, stopB := pull(func(yield func(Entry) error) error { return b.Entries(ctx, yield) })
	defer stopB()
	x, haveX, err := nextA()
	if err != nil {
		return fmt.Errorf("first manifest: %w", err)
	}
	y, haveY, err := nextB()
	if err != nil {
		return fmt.Errorf("second manifest: %w", err)
	}
	for haveX || haveY {
		stepX := haveX && (!haveY || x.Path <= y.Path)
		stepY := haveY && (!haveX || y.Path <= x.Path)
		var px, py *Entry
		if stepX {
			px = &x
		}
		if stepY {
			py = &y
		}
		if err := each(px, py); err != nil {
			return err
		}
		if stepX {
			if x, haveX, err = nextA(); err != nil {
				return fmt.Errorf("first manifest: %w", err)
			}
		}
		if stepY {
			if y, haveY, err = nextB(); err != nil {
				return fmt.Errorf("second manifest: %w", err)
			}
		}
	}
	return nil
}
