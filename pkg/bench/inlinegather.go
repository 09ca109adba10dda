package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/benchpin/benchpin/pkg/record"
)

// sentInline is what a process hashed in a run.
type sentInline struct {
	record.InlineVerification
	// Files and FileBytes are what it compared when the clock had stopped. Seen are the files of training and of evaluation that it read
	// whole, a bit for each.
	Files, FileBytes int64
	Seen             [2][]byte
}

// sent is what this process hashed; nil where nothing is hashed in the run.
func (v *inline) sent() *sentInline {
	if v == nil {
		return nil
	}
	s := &sentInline{Files: v.files, FileBytes: v.bytes, InlineVerification: v.hashed()}
	for part, seen := range v.seen {
		s.Seen[part] = make([]byte, (len(seen)+7)/8)
		for f := range seen {
			if seen[f].Load() {
				s.Seen[part][f/8] |= 1 << (f % 8)
			}
		}
	}
	return s
}

// take adds what another process hashed.
func (v *inline) take(s *sentInline) error {
	if (v == nil) != (s == nil) {
		return errors.New("it hashes what it reads, or this one does, and not both")
	}
	if v == nil {
		return nil
	}
	for part, seen := range v.seen {
		if len(s.Seen[part]) != (len(seen)+7)/8 {
			return fmt.Errorf("expected a bit for each of %d files, found %d bytes", len(seen), len(s.Seen[part]))
		}
		for f := range seen {
			if s.Seen[part][f/8]&(1<<(f%8)) != 0 {
				seen[f].Store(true)
			}
		}
	}
	v.files, v.bytes = v.files+s.Files, v.bytes+s.FileBytes
	v.others = append(v.others, s.InlineVerification)
	return nil
}

// add adds what another process hashed. Its Cores are computed from the sums.
func (i *Inline) add(o *record.InlineVerification) {
	i.Samples, i.Bytes, i.Hashers, i.HeldBytes = i.Samples+o.Samples, i.Bytes+o.Bytes, i.Hashers+o.Hashers, i.HeldBytes+o.HeldBytes
	i.HashCPUSeconds, i.WaitedSeconds = i.HashCPUSeconds+o.HashCPUSeconds, i.WaitedSeconds+o.WaitedSeconds
	if i.Confirmed != nil && o.Confirmed != nil {
		i.Confirmed = &record.InlineConfirmation{Samples: i.Confirmed.Samples + o.Confirmed.Samples,
			Seconds: max(i.Confirmed.Seconds, o.Confirmed.Seconds)}
	}
}

// readsPiece is how much of the digests of what was read is put together at a time.
const readsPiece = 1 << 10 * digestBytes

// shareReads gives every process the digests of what any of them read of each sample. What two of them read of one must be the same.
func (r *run) shareReads(ctx context.Context) error {
	if r.world.Size() == 1 {
		return nil
	}
	all := r.inline.reads
	err := r.world.Gather(ctx, bytes.NewReader(all.b), func(streams []io.Reader) error {
		piece := make([]byte, readsPiece)
		for at := 0; at < len(all.b); at += readsPiece {
			into := all.b[at:min(at+readsPiece, len(all.b))]
			for _, s := range streams[1:] {
				if _, err := io.ReadFull(s, piece[:len(into)]); err != nil {
					return fmt.Errorf("digests of what was read: %w", err)
				}
				for i := 0; i < len(into); i += digestBytes {
					mine, other := [digestBytes]byte(into[i:]), [digestBytes]byte(piece[i:])
					switch {
					case mine == [digestBytes]byte{}:
						copy(into[i:i+digestBytes], other[:])
					case other != [digestBytes]byte{} && other != mine:
						return r.inline.readOther(int64(at+i)/digestBytes, mine, other)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.world.Broadcast(ctx, bytes.NewReader(all.b), &filler{into: all.b})
}

// readOther is the error about a sample, by its number in reads.bin, of which two processes read different bytes.
func (v *inline) readOther(n int64, mine, other [digestBytes]byte) error {
	file, ds := n/v.reads.samples, v.parts[0]
	if file >= v.reads.parts[0] {
		file, ds = file-v.reads.parts[0], v.parts[1]
	}
	return fmt.Errorf("%w: sample %d of %s was read by two processes, and not the same bytes: digests %s and %s; leave the data set alone during a run, and "+
		"make sure that all hosts have the same one", ErrRead, n%v.reads.samples, ds.Path(int(file)), digestText(mine), digestText(other))
}

// filler is a writer that fills a slice.
type filler struct{ into []byte }

func (f *filler) Write(p []byte) (int, error) {
	if len(p) > len(f.into) {
		return 0, fmt.Errorf("%d bytes more than there is room for", len(p)-len(f.into))
	}
	copy(f.into, p)
	f.into = f.into[len(p):]
	return len(p), nil
}
