package manifest

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
)

// Change is one difference between two manifests. Kinds are meant as of the second one: Missing is a file that only the
// first has, Extra one that only the second has.
type Change struct {
	Kind Kind   `json:"kind"`
	Path string `json:"path"`
	To   string `json:"to,omitempty"` // path in the second manifest of a renamed file
	Old  *Side  `json:"old,omitempty"`
	New  *Side  `json:"new,omitempty"`
}

// Summary counts what Diff found.
type Summary struct {
	Same, Missing, Extra, Changed, Renamed int64
	// RenamesSearched is false when so many files are missing or extra that looking for renames would have needed
	// memory for all of them; then they are counted as missing and extra.
	RenamesSearched bool
}

// Equal reports whether there was no difference.
func (s Summary) Equal() bool { return s.Missing+s.Extra+s.Changed+s.Renamed == 0 }

// maxRenames bounds the memory of the search for renamed files: about 25 MB for paths of 100 bytes.
const maxRenames = 1 << 16

// Diff calls yield for every difference between a and b, in order of paths, and stops at its first error, which it returns
// as it is. Both manifests are read, and checked, twice: once to find renames, once to tell. Memory does not grow with the
// number of files.
func Diff(ctx context.Context, a, b *Manifest, yield func(Change) error) (Summary, error) {
	var s Summary
	var pairs []*MismatchError
	s.RenamesSearched = true
	digests := map[string]digest.Digest{}
	err := merge(ctx, a, b, func(x, y *Entry) error {
		switch {
		case !s.RenamesSearched || (x != nil && y != nil):
		case len(pairs) == maxRenames:
			s.RenamesSearched = false
			pairs = nil
		case y == nil:
			pairs = append(pairs, &MismatchError{Kind: Missing, Path: x.Path, Expected: expected(*x)})
		default:
			pairs = append(pairs, &MismatchError{Kind: Extra, Path: y.Path, Found: &Side{Size: y.Size}})
			digests[y.Path] = FormatDigest(y.Digest)
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	from, to := map[string]string{}, map[string]bool{}
	for _, m := range pairRenames(pairs, digests) {
		if m.Kind == Renamed {
			from[m.Path], to[m.To] = m.To, true
		}
	}
	err = merge(ctx, a, b, func(x, y *Entry) error {
		switch {
		case x != nil && y != nil && x.Size == y.Size && x.Digest == y.Digest:
			s.Same++
			return nil
		case x != nil && y != nil:
			s.Changed++
			return yield(Change{Kind: Changed, Path: x.Path, Old: expected(*x), New: expected(*y)})
		case y == nil && from[x.Path] != "":
			s.Renamed++
			return yield(Change{Kind: Renamed, Path: x.Path, To: from[x.Path], Old: expected(*x), New: expected(*x)})
		case y == nil:
			s.Missing++
			return yield(Change{Kind: Missing, Path: x.Path, Old: expected(*x)})
		case to[y.Path]:
			return nil // told at the path that it had before
		default:
			s.Extra++
			return yield(Change{Kind: Extra, Path: y.Path, New: expected(*y)})
		}
	})
	return s, err
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
