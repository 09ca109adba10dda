package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// pinned is a shelf with a manifest of what it held when it was pinned.
type pinned struct {
	*shelf
	companions []format.Companion
	digests    map[string][32]byte
}

func pin(s *shelf, f format.Format) pinned {
	p := pinned{shelf: s, digests: map[string][32]byte{}}
	if c, ok := f.(format.Companioned); ok {
		p.companions = c.Companions()
	}
	for path, b := range s.bytes {
		p.digests[path] = blake3.Sum256(b)
	}
	return p
}

func (p pinned) Digest(i, companion int) [32]byte {
	path := p.Path(i)
	if companion > 0 {
		path = p.companions[companion-1].Path(path)
	}
	return p.digests[path]
}

func (p pinned) Evaluation() Dataset { return pinned{p.valid, p.companions, p.digests} }

// runInline runs a workload whose bytes are hashed in the run.
func runInline(w *workload.Workload, data pinned, from, after loader.Opener) (*Plan, *Result, error) {
	w.Benchpin.Verify = workload.VerifyInline
	p, err := NewPlan(w, data)
	if err != nil {
		return nil, nil, err
	}
	res, err := Run(context.Background(), Options{Plan: p, Dataset: data, Data: from, Confirm: after, Steps: &memFile{}, EvalSteps: &memFile{},
		DeviceBytes: func() (int64, error) { return 0, nil }})
	return p, res, err
}

// byHand computes the digest of a sample of a whole file or of parts of it as docs/transcript.md says, by means of the format alone.
func byHand(t testing.TB, p *Plan, data pinned, evaluation bool, file, k int) [32]byte {
	t.Helper()
	part := data
	if evaluation {
		part.shelf = data.valid
	}
	path := part.Path(file)
	b := data.bytes[path]
	account := func(read func(f io.ReaderAt, open func(int) (io.ReaderAt, int64, error))) []span {
		l := &listing{}
		read(&listed{l, 0, b}, func(i int) (io.ReaderAt, int64, error) {
			c := data.bytes[data.companions[i].Path(path)]
			return &listed{l, uint64(i) + 1, c}, int64(len(c)), nil
		})
		return l.spans
	}
	buf := make([]byte, 4096+31*file) // pieces of another size than the run's
	switch p.Inline() {
	case loader.FormNone:
		return [32]byte{}
	case loader.FormFile:
		return blake3.Sum256(b)
	case loader.FormStream:
		var chain [32]byte
		l := &listing{}
		s := p.reading.streamed.Stream(&listed{l, 0, b}, int64(len(b)), make([]byte, p.reading.transfer))
		defer s.Close()
		for range k + 1 {
			l.spans = nil
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
			var asked []byte
			for _, s := range l.spans {
				asked = append(asked, s.bytes...)
			}
			sum := blake3.Sum256(asked)
			chain = blake3.Sum256(append(chain[:], sum[:]...))
		}
		return chain
	case loader.FormGroups:
		r := p.reading.format.(format.Remembering).Remember()
		var came, group []span
		for _, s := range account(func(f io.ReaderAt, _ func(int) (io.ReaderAt, int64, error)) {
			if _, err := r.ReadSampleOf(1, f, int64(len(b)), k, buf); err != nil {
				t.Fatal(err)
			}
		}) {
			if _, _, footer := r.(format.Recalling).Recalled(); s.off >= uint64(footer) {
				came = append(came, s)
			} else {
				group = append(group, s)
			}
		}
		x, y := sumOf(came), sumOf(group)
		return blake3.Sum256(append(x[:], y[:]...))
	}
	return sumOf(account(func(f io.ReaderAt, open func(int) (io.ReaderAt, int64, error)) {
		var err error
		if c, ok := p.reading.format.(format.CompanionReader); ok {
			_, err = c.ReadSampleWith(f, int64(len(b)), open, k, buf)
		} else {
			_, err = p.reading.format.ReadSample(f, int64(len(b)), k, buf)
		}
		if err != nil {
			t.Fatal(err)
		}
	}))
}

// span is a stretch that was read.
type span struct {
	companion, off uint64
	bytes          []byte
}

func sumOf(spans []span) [32]byte {
	var b []byte
	for _, s := range spans {
		b = binary.BigEndian.AppendUint64(b, s.companion)
		b = binary.BigEndian.AppendUint64(b, s.off)
		b = binary.BigEndian.AppendUint64(b, uint64(len(s.bytes)))
		b = append(b, s.bytes...)
	}
	return blake3.Sum256(b)
}

type listing struct{ spans []span }

type listed struct {
	l         *listing
	companion uint64
	b         []byte
}

func (f *listed) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.b[min(off, int64(len(f.b))):])
	if last := len(f.l.spans) - 1; last >= 0 && f.l.spans[last].companion == f.companion &&
		f.l.spans[last].off+uint64(len(f.l.spans[last].bytes)) == uint64(off) {
		f.l.spans[last].bytes = append(f.l.spans[last].bytes, p[:n]...)
	} else if n > 0 {
		f.l.spans = append(f.l.spans, span{f.companion, uint64(off), append([]byte(nil), p[:n]...)})
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// handMade has the digests of samples as they are computed by hand.
type handMade struct {
	sizes
	digest func(file, k int) [32]byte
}

func (h handMade) ReadDigest(file, k int) ([32]byte, bool) { return h.digest(file, k), true }

// TestInlineOfAnyConfiguration: whatever container, loader and keys, a run that hashes what it reads has the transcript that follows from the
// files, computed another way; it counts what it hashed, holds no more than the plan says, and asks nothing more of the store.
func TestInlineOfAnyConfiguration(t *testing.T) {
	for batch := range 4 {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				name := rapid.SampledFrom(format.Names()).Draw(rt, "container")
				w := drawWorkload(rt, name)
				f, bad := container(w)
				if bad != nil {
					rt.Fatal(bad)
				}
				varied := rapid.Bool().Draw(rt, "varied sizes") && name != "parquet" && name != "synthetic"
				data := pin(newShelf(t, f, w.Dataset.NumFilesTrain+1, w.Dataset.NumFilesEval+1, w.Dataset.NumSamplesPerFile, varied), f)
				after := data.again()
				p, res, err := runInline(w, data, data, after)
				if err != nil || !res.Complete {
					rt.Fatalf("not complete: %v", err)
				}
				for evaluation, found := range map[bool]*record.EvaluationTranscript{false: {Root: res.Transcript.Root}, true: res.Transcript.Evaluation} {
					s, part := p.Schedule(), Dataset(data)
					if evaluation {
						if s, _ = p.EvaluationSchedule(); p.eval == nil {
							continue
						}
						part = data.Evaluation()
					}
					want, err := Expected(rt.Context(), s, handMade{p.reading.sizes(part), func(file, k int) [32]byte {
						return byHand(t, p, data, evaluation, file, k)
					}})
					if err != nil || want.Root != found.Root {
						rt.Fatalf("evaluation %v: the files give %s, the run %s: %v", evaluation, want.Root, found.Root, err)
					}
				}
				checkInline(rt, p, data, res)
			})
		})
	}
}

func checkInline(t *rapid.T, p *Plan, data pinned, res *Result) {
	in := res.Inline
	entries := int64(res.Transcript.Entries)
	if e := res.Transcript.Evaluation; e != nil {
		entries += int64(e.Entries)
	}
	if int64(in.Samples) != entries || in.Reads != string(p.Inline()) {
		t.Fatalf("%d entries, and %+v", entries, in)
	}
	asked := int64(0)
	for _, e := range res.Metrics.Epochs {
		asked += int64(*e.BytesAsked.Value)
	}
	if v := res.Metrics.Evaluation; v != nil {
		for _, e := range v.Passes {
			asked += int64(*e.BytesAsked.Value)
		}
	}
	if got := data.asked.Load(); got != asked {
		t.Fatalf("the store was asked for %d bytes in the run, %d are counted", got, asked)
	}
	if p.Inline() == loader.FormFile && (int64(in.Bytes) != asked || in.Confirmed != nil) {
		t.Fatalf("%d bytes were read whole, %d hashed; confirmed %v", asked, in.Bytes, in.Confirmed)
	}
	if in.Bytes > record.Int(asked) || in.HeldBytes > p.MemoryBytes {
		t.Fatalf("%d bytes asked, %d hashed, %d held of %d planned", asked, in.Bytes, in.HeldBytes, p.MemoryBytes)
	}
	if data.open.Load() != 0 {
		t.Fatalf("%d files are still open", data.open.Load())
	}
	if p.HasReads() != (res.Reads != nil) || p.HasReads() != (in.Confirmed != nil) {
		t.Fatalf("reads %v, confirmed %v", res.Reads, in.Confirmed)
	}
	if (in.Files == 0) != (p.Inline() == loader.FormNone) {
		t.Fatalf("%d files were compared", in.Files)
	}
}

// swapped serves other bytes of one file from its so-manieth opening on, as long as the given number of openings.
type swapped struct {
	*shelf
	path     string
	from, to int64
	change   func([]byte) []byte
	n        atomic.Int64
}

func (s *swapped) Open(name string) (store.File, error) {
	f, err := s.shelf.Open(name)
	if err != nil || name != s.path {
		return f, err
	}
	if n := s.n.Add(1); n >= s.from && n < s.to {
		f.(*shelfFile).b = s.change(append([]byte(nil), f.(*shelfFile).b...))
	}
	return f, nil
}

// TestInlineFindsOtherBytes: bytes that are not the manifest's stop the run although nothing about the file tells, and the error names the file;
// whatever the container, and whether the file is so for once, from then on, or in the run alone.
func TestInlineFindsOtherBytes(t *testing.T) {
	for _, name := range format.Names() {
		for _, of := range loaderNames(name) {
			if of == "synthetic" || of == "none" || name == "synthetic" {
				continue
			}
			for _, way := range []struct {
				name     string
				from, to int64
			}{{"always", 1, 1 << 40}, {"once", 1, 2}, {"the second time", 2, 3}} {
				t.Run(name+"/"+of+"/"+way.name, func(t *testing.T) {
					w := testWorkload(func(w *workload.Workload) {
						w.Dataset.Format, w.Dataset.NumFilesTrain, w.Reader.DataLoader, w.Reader.ReadThreads = name, 4, of, 2
						w.Dataset.NumSamplesPerFile, w.Train.Epochs, w.Reader.TransferSize, w.Dataset.RecordLengthBytes = 1, 2, 4096, 1200
						w.Dataset.Parquet.RowGroupSize = 1
						if of == "tensorflow" {
							w.Framework = of
						}
					})
					f, bad := container(w)
					if bad != nil {
						t.Fatal(bad)
					}
					data := pin(newShelf(t, f, 4, 0, 1, false), f)
					after := data.again()
					from := &swapped{shelf: data.shelf, path: data.paths[2], from: way.from, to: way.to, change: flipPayload(t, f, data.bytes[data.paths[2]])}
					_, res, err := runInline(w, data, from, after)
					if err == nil || res.Complete {
						t.Fatal("other bytes were read and nobody noticed")
					}
					contains(t, err, data.paths[2])
					var m *manifest.MismatchError
					if !errors.As(err, &m) && !errors.Is(err, ErrRead) {
						t.Errorf("found another error: %v", err)
					}
				})
			}
		}
	}
}

// flipPayload flips a byte of a file that its reader does not miss.
func flipPayload(t *testing.T, f format.Format, b []byte) func([]byte) []byte {
	t.Helper()
	buf := make([]byte, 1<<16)
	if _, ok := f.(format.CompanionReader); ok || f.Name() == "tfrecord" || f.Name() == "npz" || f.Name() == "png" {
		// What has checksums, or is read by its index, is damaged where they do not look, or is put right.
		return replaced(t, f, b)
	}
	for at := len(b) / 2; at < len(b); at++ {
		c := append([]byte(nil), b...)
		c[at] ^= 1
		if _, err := f.ReadSample(&listed{&listing{}, 0, c}, int64(len(c)), 0, buf); err == nil {
			return func(b []byte) []byte { b[at] ^= 1; return b }
		}
	}
	t.Fatalf("%s: each byte is noticed", f.Name())
	return nil
}

// replaced is another sound file of the same shape.
func replaced(t *testing.T, f format.Format, b []byte) func([]byte) []byte {
	t.Helper()
	other := newShelf(t, f, 4, 0, 1, false)
	c := other.bytes[other.paths[3]]
	if len(c) != len(b) {
		t.Fatalf("%s: files of %d and %d bytes", f.Name(), len(b), len(c))
	}
	return func([]byte) []byte { return c }
}

// TestInlineHashesInTheSleep in virtual time: hashing takes no time there, so that nothing is waited for, and AU is that of a run without.
func TestInlineHashesInTheSleep(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Benchpin.Verify, w.Reader.BatchSize, w.Train.ComputationTime = workload.VerifyInline, 2, constant(100*ms)
	})
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, 25*ms, 0, 0) },
		func(o *Options) { o.Dataset = simDigests{o.Dataset.(*sim)} },
		func(t *testing.T, _ *Plan, res *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			near(t, "AU", figure(t, "AU", res.Metrics.AU), 100)
			if in := res.Inline; in.WaitedSeconds != 0 || in.Files != 16 || in.Samples != 16 {
				t.Errorf("found %+v", in)
			}
		})
}

type simDigests struct{ *sim }

func (s simDigests) Digest(int, int) [32]byte { return blake3.Sum256(s.content) }

// TestInlineBacklog: an accelerator never has more than one batch that is hashed later than in its own sleep; it waits for the one before, and the
// time stands apart.
func TestInlineBacklog(t *testing.T) {
	v := &inline{form: loader.FormFile, seen: [2][]atomic.Bool{make([]atomic.Bool, 1)}}
	hold := make(chan struct{})
	var once sync.Once
	v.pool = &hashPool{}
	l := &ledger{v: v}
	for range 3 {
		l.pending = append(l.pending, &hashing{done: make(chan struct{}, 1)})
	}
	start := time.Now()
	go func() {
		time.Sleep(20 * time.Millisecond)
		l.pending[0].done <- struct{}{}
		time.Sleep(20 * time.Millisecond)
		once.Do(func() { close(hold) })
		l.pending[1].done <- struct{}{}
	}()
	end, err := l.wait(t.Context(), 1, start)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-hold:
	default:
		t.Error("it did not wait for the second batch")
	}
	if d := end.Sub(start); d < 40*time.Millisecond {
		t.Errorf("waited %v", d)
	}
	if again, err := l.wait(t.Context(), 1, end); err != nil || again != end {
		t.Errorf("nothing is to be waited for: %v after, %v", again.Sub(end), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, err := l.wait(ctx, 0, end); !errors.Is(err, stop) {
		t.Errorf("found %v", err)
	}
}

// TestInlineMemoryIsRefused where no machine has it.
func TestInlineMemoryIsRefused(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Benchpin.Verify, w.Reader.BatchSize, w.Dataset.NumFilesTrain = workload.VerifyInline, 1<<20, 1<<21
		w.Reader.ReadThreads, w.Reader.PrefetchSize = 4, 1<<20
	})
	_, err := NewPlan(w, vast{})
	if !errors.Is(err, ErrImpossible) {
		t.Fatalf("found %v", err)
	}
	contains(t, err, "benchpin.verify is inline", "prefetch_size")
}

type vast struct{}

func (vast) Files() int            { return 1 << 21 }
func (vast) Path(i int) string     { return fmt.Sprint(i) }
func (vast) Size(int) int64        { return 1 << 40 }
func (vast) SampleBytes(int) int64 { return 1 << 40 }

// TestInlineNeedsTheManifest: without digests nothing can be compared.
func TestInlineNeedsTheManifest(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) { w.Benchpin.Verify = workload.VerifyInline })
	data := newSim(t, 16, 1, 0, 0, 0)
	p, err := NewPlan(w, data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), Options{Plan: p, Dataset: data, Data: data, Steps: &memFile{}}); err == nil || !strings.Contains(err.Error(), "digests") {
		t.Errorf("found %v", err)
	}
}

// again is a shelf of the same files that counts apart.
func (s *shelf) again() *shelf {
	return &shelf{bytes: s.bytes, paths: s.paths, size: s.size, one: s.one, valid: s.valid}
}
