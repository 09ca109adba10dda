package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

// TFRecord emulates DLIO's tensorflow loader on tfrecord files: TFRecordDataset with W parallel reads, shuffle, batch, map and
// prefetch.
//
// W lanes stream one file each, front to back, in pieces of the transfer size; an interleave takes one sample of each in turn, and a lane
// is at most two samples ahead of it. The samples fill the shuffle buffer; when it is full, each one that leaves it lets one more in.
// Batches are made of those that leave it, and computation_threads + prefetch_size of them may be ready before they are asked for.
// preprocess_time is not slept, as in DLIO. At the end of an epoch the lanes have read just what was needed.
//
// A TFRecord serves one accelerator; its methods are for one goroutine.
type TFRecord struct {
	c     TFRecordConfig
	epoch int
	order StreamOrder
	next  int64
	slots []slot
	// begin starts an epoch of the goroutine that makes batches, room has a token for each batch that may be ready.
	begin, room chan struct{}
	stop        chan struct{}
	wait        sync.WaitGroup

	lanes []chan int64
	ring  []read // the reads on the way, by their number
}

// StreamOrder is the order of a loader that reads streams.
type StreamOrder interface {
	Order
	// Reads is the number of samples that each rank reads in an epoch; Read says which one is the i-th, from 0, and which lane reads it.
	Reads() int64
	Read(rank int, i int64) (sample, file, position, lane int64)
	// Of the samples that leave the buffer, a rank consumes those whose number is its own modulo Stride.
	Stride() int64
}

// Places says from which place of the shuffle buffer each sample is taken. It is for one goroutine.
type Places interface {
	// Buffer is the number of places, at least 1.
	Buffer() int64
	Place() int64
}

// TFRecordConfig describes one accelerator's loader. All fields must be given.
type TFRecordConfig struct {
	Source *Source
	// Format makes streams of files; Samples is the number of samples of each.
	Format  format.Streamed
	Samples int64
	Rank    int
	// BatchSize is in samples, Steps is the number of batches of an epoch.
	BatchSize int
	Steps     int64
	// Lanes is reader.read_threads, at least 1; Ready is reader.computation_threads + reader.prefetch_size, at least 1.
	Lanes, Ready int
	// Transfer is the size of a piece in bytes, at least 1 (TransferSize).
	Transfer int
	// Places begins the draws of the epoch's shuffle buffer.
	Places func(order Order) Places
}

// TransferSize is the buffer of a TFRecordDataset in bytes: reader.transfer_size, or TensorFlow's default where that is 0. It is never
// below what a container can read with.
func TransferSize(size int64) int64 {
	const byDefault = 256 << 10
	if size <= 0 {
		return byDefault
	}
	return max(size, format.MinBuffer)
}

// read is a sample on its way from a lane to the buffer.
type read struct {
	sample Sample
	as     Read  // what the sample was read as
	hold   *Hold // what was kept on the way; nil without Source.Capture
	spent  work
	ready  chan error
}

// NewTFRecord makes the loader and starts its lanes, which live until Close or until ctx ends.
func NewTFRecord(ctx context.Context, c TFRecordConfig) (*TFRecord, error) {
	if c.Source == nil || c.Format == nil || c.Samples < 1 || c.BatchSize < 1 || c.Steps < 0 || c.Lanes < 1 || c.Ready < 1 || c.Transfer < 1 || c.Places == nil {
		return nil, fmt.Errorf("data loader of accelerator %d: expected a source, a format, places, and at least 1 sample, lane, batch ready and "+
			"byte; found %d samples a file, batch %d, %d steps, %d lanes, %d ready, transfer size %d", c.Rank, c.Samples, c.BatchSize, c.Steps,
			c.Lanes, c.Ready, c.Transfer)
	}
	// No more batches are ready than an epoch has, however many may be.
	ready := min(int64(c.Ready), c.Steps)
	l := &TFRecord{c: c, begin: make(chan struct{}), room: make(chan struct{}, ready), stop: make(chan struct{})}
	l.slots = make([]slot, ready+1)
	for i := range l.slots {
		l.slots[i].ready = make(chan error, 1)
		l.slots[i].batch = c.Source.newBatch(c.BatchSize, 0)
	}
	for range ready {
		l.room <- struct{}{}
	}
	l.ring = make([]read, perThread*c.Lanes)
	for i := range l.ring {
		l.ring[i].ready = make(chan error, 1)
	}
	l.lanes = make([]chan int64, c.Lanes)
	for i := range l.lanes {
		q := make(chan int64, len(l.ring))
		l.lanes[i] = q
		w := &lane{l: l, w: newWorker(ctx, c.Source, c.Rank), buf: store.AlignedBuffer(c.Transfer)}
		l.wait.Go(func() { w.work(q) })
	}
	l.wait.Go(func() { l.batches(ctx) })
	return l, nil
}

// Start begins an epoch: see Loader. The order must be a StreamOrder.
func (l *TFRecord) Start(epoch int, order Order) {
	l.epoch, l.next = epoch, 0
	l.order, _ = order.(StreamOrder)
	if l.c.Steps == 0 {
		return
	}
	select {
	case l.begin <- struct{}{}:
	case <-l.stop:
	}
}

// Next waits for the next batch: see Loader.
func (l *TFRecord) Next(ctx context.Context) (*Batch, error) { return next(ctx, l) }

// Take is the first half of Next: see Halved.
func (l *TFRecord) Take(ctx context.Context) (*Batch, error) {
	if l.next >= l.c.Steps {
		return nil, io.EOF
	}
	s := &l.slots[l.next%int64(len(l.slots))]
	if err := receive(ctx, s.ready); err != nil {
		return nil, err
	}
	l.next++
	return &s.batch, nil
}

// Refill is the second half of Next: see Halved.
func (l *TFRecord) Refill() { l.room <- struct{}{} }

// Close tells all goroutines to end: see Loader.
func (l *TFRecord) Close() { close(l.stop) }

// Wait returns when they have: see Loader.
func (l *TFRecord) Wait() { l.wait.Wait() }

// errEnded ends an epoch that nobody waits for any more.
var errEnded = errors.New("the loader was closed")

// batches makes the batches of one epoch after the other.
func (l *TFRecord) batches(ctx context.Context) {
	b := shuffleBuffer{l: l, ctx: ctx}
	for {
		select {
		case <-l.begin:
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		}
		if l.order == nil {
			l.slots[0].ready <- fmt.Errorf("accelerator %d, epoch %d: the order of samples is not one of streams", l.c.Rank, l.epoch)
			return
		}
		b.start()
		for i := range l.c.Steps {
			select {
			case <-l.room:
			case <-l.stop:
				return
			case <-ctx.Done():
				return
			}
			s := &l.slots[i%int64(len(l.slots))]
			err := b.fill(&s.batch)
			if err != nil {
				err = fmt.Errorf("accelerator %d, epoch %d, batch %d: %w", l.c.Rank, l.epoch, i+1, err)
			}
			s.ready <- err
			if err != nil {
				return
			}
		}
	}
}

// shuffleBuffer takes samples from the lanes in order and gives them out shuffled.
type shuffleBuffer struct {
	l      *TFRecord
	ctx    context.Context
	draws  Places
	places []Sample
	reads  []Read // of the places; empty without Source.Capture
	hole   int64  // the place of the sample that left last; -1 before
	// Of this epoch's reads: sent to lanes, taken in, needed at most; left is the number of samples that left the buffer.
	sent, got, need, left int64
}

// start begins an epoch.
func (b *shuffleBuffer) start() {
	l := b.l
	b.draws = l.c.Places(l.order)
	b.places, b.reads, b.hole = b.places[:0], b.reads[:0], -1
	b.sent, b.got, b.left = 0, 0, 0
	last := (l.c.Steps*int64(l.c.BatchSize)-1)*l.order.Stride() + int64(l.c.Rank)%l.order.Stride()
	b.need = min(l.order.Reads(), last+b.draws.Buffer())
	b.dispatch()
}

// dispatch sends reads to the lanes, two samples ahead of the interleave for each. The interleave takes them in order and lane by
// lane, so that they are the next 2W.
func (b *shuffleBuffer) dispatch() {
	for b.sent < min(b.need, b.got+int64(len(b.l.ring))) {
		_, _, _, lane := b.l.order.Read(b.l.c.Rank, b.sent)
		b.l.lanes[max(lane, 0)] <- b.sent
		b.sent++
	}
}

// fill makes a batch of the samples that leave the buffer next and are the rank's own.
func (b *shuffleBuffer) fill(to *Batch) error {
	to.Open, to.Read, to.Decode, to.Ahead = 0, 0, 0, 0
	to.Begun = b.l.c.Source.since(time.Now())
	to.Holds = to.Holds[:0]
	stride := b.l.order.Stride()
	own := int64(b.l.c.Rank) % stride
	for i := 0; i < len(to.Samples); {
		for b.got < min(b.l.order.Reads(), b.left+b.draws.Buffer()) {
			if err := b.take(to); err != nil {
				return err
			}
		}
		if b.hole >= 0 { // nothing came to fill it
			last := len(b.places) - 1
			b.places[b.hole] = b.places[last]
			b.places = b.places[:last]
			if to.Reads != nil {
				b.reads[b.hole] = b.reads[last]
				b.reads = b.reads[:last]
			}
		}
		b.hole = b.draws.Place()
		if b.left%stride == own {
			to.Samples[i] = b.places[b.hole]
			if to.Reads != nil {
				to.Reads[i] = b.reads[b.hole]
			}
			i++
		}
		b.left++
	}
	to.Ready = b.l.c.Source.since(time.Now())
	return nil
}

// take puts the next sample into the buffer.
func (b *shuffleBuffer) take(to *Batch) error {
	r := &b.l.ring[b.got%int64(len(b.l.ring))]
	if err := b.receive(r.ready); err != nil {
		return err
	}
	to.Open += r.spent.open
	to.Read += r.spent.read
	to.Decode += r.spent.decode
	to.Ahead += r.sample.Asked
	s := r.sample
	s.Asked = 0 // counted where it was asked for, in the batch that waited for it
	if to.Reads != nil {
		to.Holds = append(to.Holds, r.hold)
		if b.hole >= 0 {
			b.reads[b.hole] = r.as
		} else {
			b.reads = append(b.reads, r.as)
		}
	}
	if b.hole >= 0 {
		b.places[b.hole], b.hole = s, -1
	} else {
		b.places = append(b.places, s)
	}
	b.got++
	b.dispatch()
	return nil
}

func (b *shuffleBuffer) receive(from <-chan error) error {
	select {
	case err := <-from:
		return err
	default:
	}
	select {
	case err := <-from:
		return err
	case <-b.l.stop:
		return errEnded
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}

// lane streams files for one of the parallel reads.
type lane struct {
	l      *TFRecord
	w      *worker // its file, the clock, and the end of the run
	buf    []byte
	stream format.SampleStream
	chain  *[32]byte // over what the stream asked for
	done   int64     // samples of the current file that were read
}

func (a *lane) work(queue <-chan int64) {
	defer a.close()
	for {
		select {
		case <-a.w.ctx.Done():
			return
		case <-a.l.stop:
			return
		case i := <-queue:
			runtime.Gosched() // let accelerators go to sleep first: see PyTorch
			r := &a.l.ring[i%int64(len(a.l.ring))]
			r.ready <- a.read(r, i)
		}
	}
}

// read reads the i-th sample of the epoch.
func (a *lane) read(r *read, i int64) error {
	if a.w.ctx.Err() != nil {
		return context.Cause(a.w.ctx)
	}
	s := &r.sample
	r.spent = work{}
	if s.Index, s.File, s.Position, _ = a.l.order.Read(a.w.rank, i); s.Index < 0 {
		return fmt.Errorf("the order of samples has no read %d for accelerator %d", i, a.w.rank)
	}
	w := a.w
	begun := time.Now()
	if a.stream == nil || w.index != s.File || a.done > s.Position {
		if err := a.close(); err != nil {
			return err
		}
		if err := w.take(s.File); err != nil {
			return err
		}
		a.stream, a.done = a.l.c.Format.Stream(w, w.cur.size, a.buf), 0
		if w.src.Capture != nil {
			a.chain = new([32]byte)
		}
	}
	w.opened, w.read, w.begun = time.Now(), 0, false
	s.Asked = 0
	if w.src.Capture != nil {
		r.hold = w.keep()
		defer w.sealed()
	}
	for a.done <= s.Position {
		got, err := a.next()
		if err == io.EOF {
			err = fmt.Errorf("expected %d samples in the file, found %d", a.l.c.Samples, a.done)
		}
		if err != nil {
			return fmt.Errorf("read sample %d of %s: %w", a.done, w.cur.name, err)
		}
		if s.Logical = got.Logical; got.Logical == format.Unsaid || w.src.Shared {
			s.Logical = w.src.sampleBytes(s.File)
		}
		s.Asked += got.Asked
		w.count.Add(got.Asked)
		a.done++
	}
	r.as = w.was
	done := time.Now()
	r.spent.open, r.spent.read = w.opened.Sub(begun), w.read
	r.spent.decode = done.Sub(w.opened) - w.read
	if a.done < a.l.c.Samples {
		return nil
	}
	err := a.close()
	r.spent.open += time.Since(done)
	return err
}

// next reads the next sample of the stream.
func (a *lane) next() (format.Sample, error) {
	w := a.w
	if w.hold == nil {
		return a.stream.Next()
	}
	w.begin(&Sample{File: w.index, Position: a.done})
	w.now.chain = a.chain
	got, err := a.stream.Next()
	w.finish(err == nil)
	return got, err
}

// close closes the current file.
func (a *lane) close() error {
	if a.stream != nil {
		a.stream.Close()
		a.stream = nil
	}
	return a.w.drop()
}
