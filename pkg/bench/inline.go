package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// hashBacklog is how many batches of an accelerator may be hashed later than in their own sleep. When the sleep of the next one ends, the
// accelerator waits for the oldest.
const hashBacklog = 1

// readyHeld is how much memory for what is read is made before the clock starts, if the plan has so much; more comes when it is needed.
const readyHeld = 1 << 30

// ErrRead is wrapped by the error of a run that read other bytes than the manifest has, where no other error says which.
var ErrRead = errors.New("other bytes were read than the data set has")

// inline is the state of a run that hashes what it reads while its accelerators sleep (benchpin.verify: inline).
type inline struct {
	p      *Plan
	form   loader.Form
	parts  [2]Dataset // training, evaluation
	pool   *hashPool
	blocks *loader.Blocks
	seen   [2][]atomic.Bool // files that were read and found equal to the manifest; where whole files are read
	reads  *Reads           // where parts of them are

	samples atomic.Int64 // whose digests stand in the transcript
	waited  atomic.Int64 // nanoseconds
	// confirmed is what was done after the clock; nil where nothing was to be done.
	confirmed *record.InlineConfirmation
	files     int64
	bytes     int64
	// others are what other processes hashed; in process 0.
	others []record.InlineVerification
}

// newInline prepares the hashing of a run; nil where the plan asks for none.
func (r *run) newInline() (*inline, error) {
	v := &inline{p: r.p, form: r.p.Inline(), parts: [2]Dataset{r.o.Dataset, evaluationOf(r.o.Dataset)}}
	if v.form == "" {
		return nil, nil
	}
	if v.form == loader.FormNone {
		v.pool = newHashPool(v.check)
		return v, nil
	}
	parts := 1
	if r.p.eval != nil {
		parts = 2
	}
	for i, ds := range v.parts[:parts] {
		if _, ok := ds.(Digested); !ok {
			return nil, errors.New("run: benchpin.verify is inline; expected a data set that has the digests of its manifest")
		}
		if v.form == loader.FormFile {
			v.seen[i] = make([]atomic.Bool, ds.Files())
		}
	}
	if v.form != loader.FormFile {
		v.reads = newReads(r.p)
	}
	var err error
	if v.blocks, err = loader.NewBlocks(r.p.blockBytes()); err != nil {
		return nil, err
	}
	v.blocks.Grow(min(r.p.partOf(r.p.held, r.count), readyHeld))
	v.pool = newHashPool(v.check)
	return v, nil
}

// capturing is what the loaders' source needs; nil where nothing is kept.
func (v *inline) capturing() *loader.Capturing {
	if v == nil || v.form == loader.FormNone {
		return nil
	}
	return &loader.Capturing{Form: v.form, Blocks: v.blocks}
}

func part(evaluation bool) int {
	if evaluation {
		return 1
	}
	return 0
}

// check compares a file that was hashed with the manifest, at once. Parts of files are compared when the clock has stopped.
func (v *inline) check(h *hashing, c *loader.Capture) error {
	if v.form != loader.FormFile {
		return nil
	}
	ds := v.parts[part(h.evaluation)]
	if want := ds.(Digested).Digest(int(c.File), 0); c.Sum != want {
		return fmt.Errorf("what was read in the run: %w", &manifest.MismatchError{Kind: manifest.Changed, Path: c.Name(),
			Expected: &manifest.Side{Size: ds.Size(int(c.File)), Digest: manifest.FormatDigest(want)},
			Found:    &manifest.Side{Size: c.Size(), Digest: manifest.FormatDigest(c.Sum)}})
	}
	v.seen[part(h.evaluation)][c.File].Store(true)
	return nil
}

// enter keeps the books of a batch that was hashed.
func (v *inline) enter(c *Chain, h *hashing) error {
	if err := h.failed.Load(); err != nil {
		return *err
	}
	for _, c := range h.captures {
		c.Link()
	}
	for i := range h.samples {
		s := &h.samples[i]
		digest := h.reads[i].Digest()
		if v.reads != nil {
			file := FileID{Evaluation: h.evaluation, Index: int(s.File)}
			if before, had := v.reads.set(file, s.Position, digest); had && before != digest {
				return fmt.Errorf("%w: sample %d of %s was read twice, and not the same bytes: expected digest %s, found %s; leave the data set alone "+
					"during a run", ErrRead, s.Position, v.parts[part(h.evaluation)].Path(file.Index), digestText(before), digestText(digest))
			}
		}
		c.AppendRead(entryOf(h.epoch, h.step, s), digest)
	}
	v.samples.Add(int64(len(h.samples)))
	return nil
}

// entryOf is the entry of a sample.
func entryOf(epoch int, step int64, s *loader.Sample) Entry {
	return Entry{Epoch: uint32(epoch), Step: uint32(step), Sample: uint64(s.Index), File: uint32(s.File), Position: uint32(s.Position),
		Logical: uint64(s.Logical)}
}

// ledger is what one accelerator has handed over and not yet entered into its transcript. It is used by its goroutine only.
type ledger struct {
	v *inline
	// pending are batches in order, the oldest first; spare those whose memory is free.
	pending, spare []*hashing
	chains         [2]*Chain // of training and evaluation
}

// submit hands a batch over to be hashed. The loader's batch keeps nothing of it.
func (l *ledger) submit(evaluation bool, epoch int, step int64, b *loader.Batch) error {
	if err := l.settle(); err != nil {
		return err
	}
	var h *hashing
	if n := len(l.spare); n > 0 {
		h, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		h = &hashing{done: make(chan struct{}, 1)}
	}
	h.evaluation, h.epoch, h.step = evaluation, epoch, step
	h.samples = append(h.samples[:0], b.Samples...)
	h.captures = h.captures[:0]
	if l.v.form == loader.FormNone {
		if len(h.reads) < len(h.samples) {
			h.reads = make([]loader.Read, len(h.samples))
		}
	} else {
		if len(h.reads) != len(b.Reads) {
			h.reads = make([]loader.Read, len(b.Reads))
		}
		h.reads, b.Reads = b.Reads, h.reads
		for i, hold := range b.Holds {
			if hold != nil {
				h.captures = append(h.captures, hold.Captures...)
			}
			b.Holds[i] = nil
		}
	}
	l.pending = append(l.pending, h)
	l.v.pool.add(h)
	return nil
}

// settle enters the batches that are hashed by now. It is called in the time of a compute sleep.
func (l *ledger) settle() error {
	for len(l.pending) > 0 {
		h := l.pending[0]
		if !h.ready {
			select {
			case <-h.done:
			default:
				return nil
			}
		}
		copy(l.pending, l.pending[1:])
		l.pending = l.pending[:len(l.pending)-1]
		h.ready = false
		err := l.v.enter(l.chains[part(h.evaluation)], h)
		clear(h.captures)
		clear(h.reads)
		l.spare = append(l.spare, h)
		if err != nil {
			return err
		}
	}
	return nil
}

// wait returns when all but the last so many batches are hashed, and since when: now, if nothing had to be waited for.
func (l *ledger) wait(ctx context.Context, backlog int, now time.Time) (time.Time, error) {
	since := now
	for i := range max(0, len(l.pending)-backlog) {
		h := l.pending[i]
		if !h.ready {
			select {
			case <-h.done:
			default:
				select {
				case <-h.done:
				case <-ctx.Done():
					return now, context.Cause(ctx)
				}
				since = time.Now()
			}
			h.ready = true
		}
		if err := h.failed.Load(); err != nil {
			return since, *err
		}
	}
	return since, nil
}

// drain waits for everything and enters it.
func (l *ledger) drain(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if _, err := l.wait(ctx, 0, time.Now()); err != nil {
		return err
	}
	return l.settle()
}

// ledger is that of one accelerator; nil where nothing is hashed in the run.
func (r *run) ledger(rank int) *ledger {
	if r.inline == nil {
		return nil
	}
	l := &ledger{v: r.inline, chains: [2]*Chain{r.chains[rank]}}
	if v := r.evaluating; v != nil {
		l.chains[1] = v.chains[rank]
	}
	return l
}

// hashed waits, after the compute sleep that ended now, for what must be hashed by then, and returns when it was.
func (a *accelerator) hashed(ctx context.Context, now time.Time) (time.Time, error) {
	if a.ledger == nil {
		return now, nil
	}
	since, err := a.ledger.wait(ctx, hashBacklog, now)
	a.inline.waited.Add(int64(since.Sub(now)))
	return since, err
}

// close ends the hashing.
func (v *inline) close() {
	if v != nil {
		v.pool.close()
	}
}

// digests are those of a run that came to its end; nil where there are none.
func (v *inline) digests() *Reads {
	if v == nil || v.confirmed == nil {
		return nil
	}
	return v.reads
}

// Inline is what a run hashed while it ran.
type Inline struct {
	// Files and FileBytes are the files that were read, companions included, and were found equal to the manifest as a whole.
	Files, FileBytes int64
	record.InlineVerification
}

// hashed says what this process hashed in a run.
func (v *inline) hashed() record.InlineVerification {
	cpu := time.Duration(v.pool.cpu.Load())
	i := record.InlineVerification{
		Reads: string(v.form), Samples: record.Int(v.samples.Load()), Bytes: record.Int(v.pool.bytes.Load()), Hashers: v.pool.workers,
		HashCPUSeconds: cpu.Seconds(), WaitedSeconds: time.Duration(v.waited.Load()).Seconds(), Confirmed: v.confirmed,
	}
	if v.blocks != nil {
		i.HeldBytes = record.Int(v.blocks.Most())
	}
	return i
}

// result says what was hashed in a run.
func (v *inline) result() *Inline {
	if v == nil {
		return nil
	}
	i := &Inline{InlineVerification: v.hashed()}
	for k := range v.others {
		i.add(&v.others[k])
	}
	for part, seen := range v.seen {
		for f := range seen {
			if seen[f].Load() {
				v.files, v.bytes = v.files+1, v.bytes+v.parts[part].Size(f)
			}
		}
	}
	i.Files, i.FileBytes = v.files, v.bytes
	return i
}
