package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/store"
)

// Opener opens files for reading; a store does.
type Opener interface {
	Open(name string) (store.File, error)
}

// ErrDiffers is matched by errors about a file that is there and is not what was to be written.
var ErrDiffers = errors.New("checkpoint differs")

// DifferError says where a file first differs from what the seed gives.
type DifferError struct {
	// Path is the file, relative to the checkpoint folder.
	Path string
	// Offset is the first byte that differs; where the size is wrong, the smaller of the two sizes.
	Offset int64
	// Part names what lies at Offset: a tensor or a part of the archive.
	Part string
	// Expected and Found are the bytes at Offset, or the sizes where WrongSize is set.
	Expected, Found int64
	WrongSize       bool
}

// Error names file, place, expected and found.
func (e *DifferError) Error() string {
	if e.WrongSize {
		return fmt.Sprintf("%s: expected %d bytes, found %d; the checkpoint is incomplete, was altered, or belongs to another workload",
			e.Path, e.Expected, e.Found)
	}
	return fmt.Sprintf("%s: byte %d (%s): expected 0x%02x, found 0x%02x; the checkpoint was altered, or belongs to another seed, "+
		"checkpoint number or rank", e.Path, e.Offset, e.Part, e.Expected, e.Found)
}

// Is makes the error match ErrDiffers.
func (e *DifferError) Is(target error) bool { return target == ErrDiffers }

// Expect computes what Save would write: path, size and digest of each file of a rank, without any storage. It takes
// the time to produce and hash the bytes.
func (p *Plan) Expect(ctx context.Context, pt Point, rank int) ([]FileSum, error) {
	if err := p.checkPoint(pt, rank); err != nil {
		return nil, err
	}
	files := p.Files(rank)
	sums := make([]FileSum, 0, len(files))
	buf := make([]byte, min(p.BytesPerCheckpoint(), pieceSize))
	var before *source
	for i := range files {
		f, h := &files[i], blake3.New()
		src := newSourceAfter(f.arc, p.content(pt.Number, rank, f), before)
		before = src
		for n := src.read(buf); n > 0; n = src.read(buf) {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("compute checkpoint %s: %w", pt.Name(), err)
			}
			_, _ = h.Write(buf[:n]) // cannot fail
		}
		sum := FileSum{Path: pt.Name() + "/" + f.Name, Size: f.Size}
		h.Sum(sum.Digest[:0])
		sums = append(sums, sum)
	}
	return sums, nil
}

// Verify reads back what a rank saved and compares every byte, archive and tensors, with what the seed gives. The first
// difference is a *DifferError; a missing file is the store's error.
func (p *Plan) Verify(ctx context.Context, st Opener, pt Point, rank int) error {
	if err := p.checkPoint(pt, rank); err != nil {
		return err
	}
	files := p.Files(rank)
	var before *source
	for i := range files {
		src := newSourceAfter(files[i].arc, p.content(pt.Number, rank, &files[i]), before)
		before = src
		if err := verifyFile(ctx, st, pt, &files[i], src); err != nil {
			return fmt.Errorf("verify checkpoint %s, rank %d: %w", pt.Name(), rank, err)
		}
	}
	return nil
}

func verifyFile(ctx context.Context, st Opener, pt Point, f *File, src *source) (err error) {
	path := pt.Name() + "/" + f.Name
	in, err := st.Open(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := in.Close(); err == nil {
			err = cerr
		}
	}()
	info, err := in.Info()
	if err != nil {
		return err
	}
	if info.Size != f.Size {
		return wrongSize(path, f.Size, info.Size)
	}
	size := min(f.Size, pieceSize)
	found, expected := make([]byte, size), make([]byte, size)
	for off := int64(0); off < f.Size; off += size {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		n := src.read(expected)
		if err := readFull(in, found[:n], off); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := differ(path, f.arc, off, expected[:n], found[:n]); err != nil {
			return err
		}
	}
	return nil
}
