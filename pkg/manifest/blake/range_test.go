package blake

import (
	"errors"
	"testing"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// TestRangeDigest divides files by ranges and puts the digest together from the values of the parts.
func TestRangeDigest(t *testing.T) {
	all := random(5<<20, 11)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(1, 9000), rapid.IntRange(1<<20-3000, 1<<20+3000), rapid.IntRange(1, len(all))).Draw(t, "size")
		r := Range{Size: int64(size)}
		r.From = int64(rapid.IntRange(0, size-1).Draw(t, "from"))
		r.To = int64(rapid.IntRange(int(r.From)+1, size).Draw(t, "to"))
		if rapid.Bool().Draw(t, "whole chunks") {
			r.From -= r.From % ChunkSize
		}
		p := all[:size]
		whole := r.From == 0 && r.To == r.Size
		if err := r.Check(); (err != nil) != whole {
			t.Fatalf("%+v: %v", r, err)
		}
		if whole {
			return
		}
		at, values := int64(0), 0
		got, err := r.Digest(func(part Part, first, end int64) (CV, error) {
			values++
			lo, hi := first*ChunkSize, min(r.Size, end*ChunkSize)
			if first != at || hi <= lo {
				t.Fatalf("%+v: part from chunk %d after one up to %d", r, first, at)
			}
			at = end
			in := min(hi, r.To) - max(lo, r.From) // bytes of the range
			if in < 0 {
				in = 0
			}
			want := Edge
			switch in {
			case 0:
				want = Outside
			case hi - lo:
				want = Inside
			}
			if part != want || want == Edge && end-first != 1 {
				t.Fatalf("%+v: chunks %d to %d are part %d, expected %d", r, first, end, part, want)
			}
			if Chunks(r.Size) == 1 {
				return Sum(p), nil
			}
			if hi-lo <= GroupSize {
				return Subtree(p[lo:hi], first), nil
			}
			var cvs []CV
			for off := lo; off < hi; off += GroupSize {
				cvs = append(cvs, Group(p[off:min(hi, off+GroupSize)], off/GroupSize))
			}
			return Fold(cvs), nil
		})
		if err != nil || got != blake3.Sum256(p) {
			t.Fatalf("%+v: expected %x, found %x, %v", r, blake3.Sum256(p), got, err)
		}
		if at != Chunks(r.Size) || values > 60 {
			t.Fatalf("%+v: %d values up to chunk %d of %d", r, values, at, Chunks(r.Size))
		}
	})
}

func TestRangeCheck(t *testing.T) {
	for _, r := range []Range{{10, 0, 10}, {10, 0, 0}, {10, 5, 5}, {10, 6, 5}, {10, -1, 5}, {10, 5, 11}, {0, 0, 0}} {
		if err := r.Check(); !errors.Is(err, ErrRange) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
