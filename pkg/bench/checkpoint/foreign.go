package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/benchpin/benchpin/pkg/store"
)

// ErrForeign is matched by the error about a file that stands where a checkpoint goes and is not what the run would write there.
var ErrForeign = errors.New("another file stands where a checkpoint goes")

// ownBytes is how many bytes of its tensors show whose a file is.
const ownBytes = 4 << 10

// Own looks for files that stand where a rank's files of a checkpoint go. One that begins as the file that the rank would write, and is as
// long, is taken for it: the content of tensors is drawn from the seed, so that no other file does. Anything else is an error that matches
// ErrForeign and names it.
func (p *Plan) Own(st Opener, pt Point, rank int) error {
	if err := p.checkPoint(pt, rank); err != nil {
		return err
	}
	files := p.Files(rank)
	for i := range files {
		f := &files[i]
		path := pt.Name() + "/" + f.Name
		err := p.ownFile(st, path, pt, rank, f)
		var other *DifferError
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &other) && other.WrongSize:
			return fmt.Errorf("%w: %s has %d bytes, and the checkpoint %d", ErrForeign, path, other.Found, other.Expected)
		case errors.As(err, &other):
			return fmt.Errorf("%w: %s differs from the checkpoint at byte %d (%s)", ErrForeign, path, other.Offset, other.Part)
		case errors.Is(err, store.ErrIrregular):
			return fmt.Errorf("%w: %w", ErrForeign, err)
		default:
			return fmt.Errorf("look at what stands where a checkpoint goes: %w", err)
		}
	}
	return nil
}

func (p *Plan) ownFile(st Opener, path string, pt Point, rank int, f *File) error {
	in, err := st.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Info()
	if err != nil {
		return err
	}
	if info.Size != f.Size {
		return wrongSize(path, f.Size, info.Size)
	}
	if f.arc.index != nil {
		return nil // what stands in it follows from the file before
	}
	n := min(f.Size, f.arc.firstTensor()+ownBytes)
	found, expected := make([]byte, n), make([]byte, n)
	newSource(f.arc, p.content(pt.Number, rank, f)).read(expected)
	if err := readFull(in, found, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return differ(path, f.arc, 0, expected, found)
}
