package format

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// failing fails with err once more than left bytes went through it.
type failing struct {
	left int
	err  error
}

func (w *failing) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

type failingFile struct{ err error }

func (f failingFile) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestErrorsOfTheStorePassThrough(t *testing.T) {
	want := errors.New("disk on fire")
	for _, s := range specimens() {
		l := s.fitted(Layout{Dims: []int{100, 100}, Samples: 3, DType: s.types(t)[min(4, len(s.types(t))-1)]})
		f := s.format(t)
		p := made(t, f, l, 1, 0)
		if c, ok := f.(CompanionReader); ok {
			for broken := range len(p.idx) + 1 {
				if _, err := c.ReadSampleWith(failingFile{want}, p.size, func(i int) (io.ReaderAt, int64, error) {
					if i == broken {
						return nil, 0, want
					}
					return bytes.NewReader(p.idx[i]), int64(len(p.idx[i])), nil
				}, 0, nil); !errors.Is(err, want) {
					t.Errorf("%s: reading with companion %d broken gave %v", s, broken, err)
				}
			}
		} else if _, err := f.ReadSample(failingFile{want}, p.size, 0, nil); !s.idle && !errors.Is(err, want) {
			t.Errorf("%s: reading gave %v", s, err)
		}
		step := max(1, len(p.data)/31)
		content := l.DType.Seeded(stream.New("benchpin/test", 1, 1), 3)
		for left := 0; left < len(p.data); left += step {
			if err := f.Write(&failing{left, want}, l, content, make([]byte, MinBuffer)); !errors.Is(err, want) {
				t.Errorf("%s: writing %d bytes to a disk of %d gave %v", s, len(p.data), left, err)
			}
		}
		if err := f.Write(&failing{len(p.data) - 1, nil}, l, content, make([]byte, MinBuffer)); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: a short write gave %v", s, err)
		}
		if c, ok := f.(Companioned); ok {
			for i, c := range c.Companions() {
				if err := c.Write(&failing{len(p.idx[i]) - 1, want}, l); !errors.Is(err, want) {
					t.Errorf("%s: writing companion %d to a full disk gave %v", s, i, err)
				}
			}
		}
	}
}

func TestBadLayouts(t *testing.T) {
	u8 := dtype(t, "uint8")
	for _, l := range []Layout{
		{}, {Dims: []int{0}, Samples: 1, DType: u8}, {Dims: []int{2, -1}, Samples: 1, DType: u8}, {Dims: []int{2}, DType: u8},
		{Dims: []int{2}, Samples: 1}, {Dims: []int{1 << 31, 1 << 31}, Samples: 3, DType: u8}, {Dims: []int{2}, Samples: 1, DType: u8, File: -1},
		{Dims: []int{1 << 62, 1 << 62, 1 << 62}, Samples: 1, DType: u8}, {Dims: slices.Repeat([]int{1}, MaxDims+1), Samples: 1, DType: u8},
	} {
		for _, s := range specimens() {
			f := s.format(t)
			if n, err := f.Size(l); err == nil {
				t.Errorf("%s of layout %+v has %d bytes, want an error", s, l, n)
			}
			if err := f.Write(io.Discard, l, zeros{}, nil); err == nil {
				t.Errorf("%s of layout %+v was written", s, l)
			}
			if m, ok := f.(Measured); ok {
				if n, err := m.Measure(l, zeros{}, nil); err == nil {
					t.Errorf("%s of layout %+v was measured: %d bytes", s, l, n)
				}
			}
			c, ok := f.(Companioned)
			if !ok {
				continue
			}
			for i, c := range c.Companions() {
				if n, err := c.Size(l); err == nil {
					t.Errorf("%s: companion %d of layout %+v has %d bytes, want an error", s, i, l, n)
				}
				if err := c.Write(io.Discard, l); err == nil {
					t.Errorf("%s: companion %d of layout %+v was written", s, i, l)
				}
			}
		}
	}
}

// TestRefusedTypes: an element type that a container does not take is an error before anything is written.
func TestRefusedTypes(t *testing.T) {
	for _, s := range specimens() {
		f := s.format(t)
		for _, d := range dtypes() {
			if s.dtypes == nil || slices.Contains(s.dtypes, d.Name) {
				continue
			}
			l := s.fitted(Layout{Dims: []int{3, 4}, Samples: 2, DType: d.DType})
			l.DType = d.DType
			if n, err := f.Size(l); err == nil || !strings.Contains(err.Error(), d.Name) {
				t.Errorf("%s of %s: size %d, %v; want an error that names the type", s, d.Name, n, err)
			}
			var out bytes.Buffer
			if err := f.Write(&out, l, zeros{}, nil); err == nil || out.Len() > 0 {
				t.Errorf("%s of %s: %d bytes were written, %v", s, d.Name, out.Len(), err)
			}
		}
	}
}

// TestOneFormatManyReaders: the value is shared by all workers of a run, which read different files at once.
func TestOneFormatManyReaders(t *testing.T) {
	for _, s := range specimens() {
		f := s.format(t)
		var group sync.WaitGroup
		for i := range 4 {
			l := s.fitted(Layout{Dims: []int{40 + 7*i, 30}, Samples: 2 + i, DType: s.types(t)[0]})
			p := made(t, f, l, uint64(i), 0)
			group.Go(func() {
				for j := range 40 {
					got, _, err := p.read(t, j%l.Samples, MinBuffer+j)
					if err != nil || !s.unsaid && got.Logical != l.SampleBytes() {
						t.Errorf("%s: reader %d: %+v, %v", s, i, got, err)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

// reading returns a function that reads the last sample of a file, over and over, as a run does.
func (s specimen) reading(t testing.TB, l Layout) func() {
	f := s.format(t)
	p := made(t, f, l, 1, 0)
	buf, file := make([]byte, 1<<16), bytes.NewReader(p.data)
	c, ok := f.(CompanionReader)
	if !ok {
		return func() {
			if _, err := f.ReadSample(file, p.size, l.Samples-1, buf); err != nil {
				t.Fatal(err)
			}
		}
	}
	var idx []*bytes.Reader
	for _, b := range p.idx {
		idx = append(idx, bytes.NewReader(b))
	}
	open := func(i int) (io.ReaderAt, int64, error) { return idx[i], idx[i].Size(), nil }
	return func() {
		if _, err := c.ReadSampleWith(file, p.size, open, l.Samples-1, buf); err != nil {
			t.Fatal(err)
		}
	}
}

// keptScratch skips a test that counts allocations where scratch memory is not kept.
func keptScratch(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("the race detector makes pools forget memory at random")
	}
}

// TestReadingAllocatesNothing holds the steady state of a run: whatever the format, once warm.
func TestReadingAllocatesNothing(t *testing.T) {
	keptScratch(t)
	for _, s := range specimens() {
		if s.allocates {
			continue
		}
		l := s.fitted(Layout{Dims: []int{300, 300}, Samples: 2, DType: s.types(t)[0]})
		if got := testing.AllocsPerRun(100, s.reading(t, l)); got >= 1 { // a garbage collection in between may empty the pool once
			t.Errorf("%s: reading a sample allocates %.1f times", s, got)
		}
	}
}

// TestWritingNeedsOnlyItsBuffer writes a file of 16 MiB and counts what was allocated.
func TestWritingNeedsOnlyItsBuffer(t *testing.T) {
	keptScratch(t)
	for _, s := range specimens() {
		if s.allocates {
			continue
		}
		l := s.fitted(Layout{Dims: []int{1 << 12, 1 << 12}, Samples: 1, DType: s.types(t)[0]})
		f, buf := s.format(t), make([]byte, 1<<20)
		least := uint64(math.MaxUint64)
		for range 3 { // the first time makes scratch memory that is kept, and a garbage collection may take it away once more
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := f.Write(&failing{left: 1 << 40}, l, zeros{}, buf); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if least = min(least, after.TotalAlloc-before.TotalAlloc); least <= 64<<10 {
				break
			}
		}
		if n := least; n > 64<<10 {
			t.Errorf("%s: writing 16 MiB allocates %d bytes", s, n)
		}
	}
}
