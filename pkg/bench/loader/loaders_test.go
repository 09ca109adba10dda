package loader

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
)

// records is a container of n samples of 100 bytes each, read one by one or as a stream, each with one read.
type records struct{ n int64 }

func (r records) ReadSample(f io.ReaderAt, _ int64, k int, buf []byte) (format.Sample, error) {
	_, err := f.ReadAt(buf[:100], int64(k)*100)
	return format.Sample{Logical: 100, Asked: 100}, err
}

func (r records) Stream(f io.ReaderAt, _ int64, buf []byte) format.SampleStream {
	return &recordStream{f: f, n: r.n, buf: buf}
}

type recordStream struct {
	f    io.ReaderAt
	n, k int64
	buf  []byte
}

func (s *recordStream) Next() (format.Sample, error) {
	if s.k == s.n {
		return format.Sample{}, io.EOF
	}
	_, err := s.f.ReadAt(s.buf[:100], s.k*100)
	s.k++
	return format.Sample{Logical: 100, Asked: 100}, err
}

func (s *recordStream) Close() {}

// streams is an order of streams without shuffling: lane i of W reads the file i, i+W, ... one sample at a time, all lanes in turn. Every
// stride-th sample is the rank's own.
type streams struct{ n, lanes, reads, stride int64 }

func (o streams) Reads() int64  { return o.reads }
func (o streams) Stride() int64 { return o.stride }
func (o streams) Read(_ int, i int64) (sample, file, position, lane int64) {
	if i < 0 || i >= o.reads {
		return -1, -1, -1, -1
	}
	group, j := i/(o.n*o.lanes), i%(o.n*o.lanes)
	lane, position = j%o.lanes, j/o.lanes
	file = group*o.lanes + lane
	return file*o.n + position, file, position, lane
}
func (o streams) Sample(rank int, pos int64) (sample, file, position int64) {
	sample, file, position, _ = o.Read(rank, pos*o.stride+int64(rank)%o.stride)
	return sample, file, position
}

// firstOf is a shuffle buffer that always gives its first place.
type firstOf struct{ places int64 }

func (f firstOf) Buffer() int64 { return f.places }
func (firstOf) Place() int64    { return 0 }

func tfrecord(t testing.TB, ctx context.Context, src *Source, c TFRecordConfig, places int64) *TFRecord {
	t.Helper()
	c.Source, c.Format, c.Transfer = src, src.Decoder.(records), 4096
	c.Samples = src.Decoder.(records).n
	c.Places = func(Order) Places { return firstOf{places} }
	l, err := NewTFRecord(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// arrivals takes all batches as soon as they are there, and returns when that was.
func arrivals(t *testing.T, l Loader, order Order) []time.Duration {
	t.Helper()
	var at []time.Duration
	start := time.Now()
	l.Start(1, order)
	for {
		if _, err := l.Next(t.Context()); err == io.EOF {
			return at
		} else if err != nil {
			t.Fatal(err)
		}
		at = append(at, time.Since(start))
	}
}

func seconds(s ...int) []time.Duration {
	d := make([]time.Duration, len(s))
	for i := range s {
		d[i] = time.Duration(s[i]) * time.Second
	}
	return d
}

// TestTFRecordTimes: every read takes a second. W lanes read W samples a second, a batch is there when the sample that lets its last one out of
// the buffer is.
func TestTFRecordTimes(t *testing.T) {
	for _, c := range []struct {
		name          string
		lanes, ready  int
		batch         int
		steps         int64
		n, places     int64
		reads, stride int64
		want          []time.Duration
	}{
		{"one lane: a batch of 3 takes 3 s", 1, 2, 3, 4, 6, 1, 12, 1, seconds(3, 6, 9, 12)},
		{"more batches ready than there are", 1, 1 << 40, 3, 4, 6, 1, 12, 1, seconds(3, 6, 9, 12)},
		{"three lanes: a batch of 3 takes 1 s", 3, 2, 3, 4, 2, 1, 12, 1, seconds(1, 2, 3, 4)},
		{"two lanes, batch of 3: 3, 6, 9 samples take 2, 3, 5 s", 2, 2, 3, 4, 3, 1, 12, 1, seconds(2, 3, 5, 6)},
		{"a buffer of 4: the first batch needs 4 + 3 - 1 samples, the rest is there with the last", 1, 9, 3, 4, 6, 4, 12, 1, seconds(6, 9, 12, 12)},
		{"a buffer as large as all: everything comes at the end", 1, 9, 3, 4, 6, 100, 12, 1, seconds(12, 12, 12, 12)},
		{"all ranks read everything and keep each third", 1, 9, 2, 2, 12, 1, 12, 3, seconds(4, 10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{size: c.n * 100, latency: time.Second}
				src := source(t, m, 4096, 64)
				src.Decoder = records{c.n}
				l := tfrecord(t, t.Context(), src, TFRecordConfig{BatchSize: c.batch, Steps: c.steps, Lanes: c.lanes, Ready: c.ready}, c.places)
				defer l.Close()
				if got := arrivals(t, l, streams{n: c.n, lanes: int64(c.lanes), reads: c.reads, stride: c.stride}); !slices.Equal(got, c.want) {
					t.Errorf("batches came after %v, expected %v", got, c.want)
				}
			})
		})
	}
}

// TestTFRecordReadsAhead: ready batches, the samples in the buffer, and two samples for each lane; not one more.
func TestTFRecordReadsAhead(t *testing.T) {
	for _, c := range []struct {
		lanes, ready, batch int
		places              int64
	}{{1, 1, 1, 1}, {3, 2, 4, 1}, {2, 1, 3, 7}, {4, 3, 2, 5}} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 100, latency: time.Second}
			src := source(t, m, 4096, 64)
			src.Decoder = records{1} // so that every read opens a file
			l := tfrecord(t, t.Context(), src, TFRecordConfig{BatchSize: c.batch, Steps: 50, Lanes: c.lanes, Ready: c.ready}, c.places)
			l.Start(1, streams{n: 1, lanes: int64(c.lanes), reads: 50 * int64(c.batch), stride: 1})
			for taken := range 4 {
				time.Sleep(time.Hour)
				synctest.Wait()
				m.mu.Lock()
				got := len(m.opened)
				m.mu.Unlock()
				if want := (c.ready+taken)*c.batch + int(c.places) - 1 + 2*c.lanes; got != want {
					t.Errorf("%+v: %d batches were taken, %d samples were read; expected %d", c, taken, got, want)
				}
				if _, err := l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := m.most.Load(); got != int64(c.lanes) {
				t.Errorf("%+v: %d reads at once, expected one a lane", c, got)
			}
			l.Close()
			l.Wait()
		})
	}
}

// TestTFRecordFollowsItsOrder: what is delivered is what the order says, epoch after epoch, each file is opened once an epoch and the bytes are
// those of the samples that were read.
func TestTFRecordFollowsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{size: 500, latency: time.Millisecond}
		src := source(t, m, 4096, 64)
		src.Decoder = records{5}
		for rank := range 2 {
			m.opened = nil
			order := streams{n: 5, lanes: 3, reads: 60, stride: 2}
			l := tfrecord(t, t.Context(), src, TFRecordConfig{Rank: rank, BatchSize: 5, Steps: 6, Lanes: 3, Ready: 2}, 1)
			for epoch := range 2 {
				l.Start(epoch+1, order)
				var bytes, pos int64
				for range 6 {
					b, err := l.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					bytes += b.Asked()
					for _, s := range b.Samples {
						g, f, k := order.Sample(rank, pos)
						if s.Index != g || s.File != f || s.Position != k || s.Logical != 100 {
							t.Fatalf("rank %d, position %d: found %+v, expected %d %d %d", rank, pos, s, g, f, k)
						}
						pos++
					}
				}
				if want := int64(59+rank) * 100; bytes != want {
					t.Errorf("rank %d: %d bytes were asked, expected %d", rank, bytes, want)
				}
			}
			synctest.Wait()
			if len(m.opened) != 24 {
				t.Errorf("%d files were opened, expected 12 in each epoch", len(m.opened))
			}
			l.Close()
			l.Wait()
		}
	})
}

// TestTensorFlowTimes: W threads make whole batches, W at a time. With batches of 2 s:
func TestTensorFlowTimes(t *testing.T) {
	for _, c := range []struct {
		threads, prefetch int
		want              []time.Duration
	}{
		{1, 0, seconds(2, 4, 6, 8, 10, 12)},
		{2, 0, seconds(2, 2, 4, 4, 6, 6)},
		{3, 2, seconds(2, 2, 2, 4, 4, 4)},
		{8, 1, seconds(2, 2, 2, 2, 2, 2)},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 10, latency: time.Second}
			l, err := NewTensorFlow(t.Context(), TensorFlowConfig{Source: source(t, m, 10, 64), BatchSize: 2, Steps: 6, Threads: c.threads, Prefetch: c.prefetch})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if got := arrivals(t, l, inOrder{}); !slices.Equal(got, c.want) {
				t.Errorf("%d threads: batches came after %v, expected %v", c.threads, got, c.want)
			}
		})
	}
}

// TestTensorFlowReadsAhead: two batches of each thread, and those that were prefetched behind them.
func TestTensorFlowReadsAhead(t *testing.T) {
	for _, c := range []struct{ threads, prefetch int }{{1, 0}, {1, 1}, {3, 0}, {2, 5}, {4, 2}} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 10, latency: time.Second}
			l, err := NewTensorFlow(t.Context(), TensorFlowConfig{Source: source(t, m, 10, 64), BatchSize: 1, Steps: 60, Threads: c.threads, Prefetch: c.prefetch})
			if err != nil {
				t.Fatal(err)
			}
			l.Start(1, inOrder{})
			for taken := range 5 {
				time.Sleep(time.Hour)
				synctest.Wait()
				if got, want := len(m.opened), 2*c.threads+c.prefetch+taken; got != want {
					t.Errorf("%+v: %d batches were taken, %d were read; expected %d", c, taken, got, want)
				}
				if _, err := l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			l.Close()
			l.Wait()
		})
	}
}

// TestDALITimes: the samples of a batch are shared by the threads, and the next batch is begun when there is room in the queue.
func TestDALITimes(t *testing.T) {
	for _, c := range []struct {
		threads, depth, batch int
		want                  []time.Duration
	}{
		{1, 1, 4, seconds(4, 8, 12, 16)},
		{4, 1, 4, seconds(1, 2, 3, 4)},
		{2, 2, 4, seconds(2, 4, 6, 8)},
		{3, 4, 1, seconds(1, 1, 1, 2)}, // position p belongs to thread p mod 3
		{3, 1, 1, seconds(1, 2, 3, 4)},
		{2, 4, 3, seconds(2, 3, 5, 6)},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 10, latency: time.Second}
			l, err := NewDALI(t.Context(), DALIConfig{Source: source(t, m, 10, 64), BatchSize: c.batch, Steps: 4, Threads: c.threads, Depth: c.depth})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if got := arrivals(t, l, inOrder{}); !slices.Equal(got, c.want) {
				t.Errorf("%+v: batches came after %v", c, got)
			}
		})
	}
}

// TestIdleReadsNothing: batches come at once, with the samples of the order and no bytes.
func TestIdleReadsNothing(t *testing.T) {
	l, err := NewIdle(1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	var l2 Loader = l
	for epoch := range 2 {
		l2.Start(epoch+1, inOrder{perRank: 6})
		for s := range int64(3) {
			b, err := l2.Next(t.Context())
			if err != nil || b.Asked() != 0 || b.Samples[0] != (Sample{Index: 6 + 2*s, File: 6 + 2*s}) {
				t.Fatalf("step %d: %v, %+v", s, err, b)
			}
		}
		if _, err := l2.Next(t.Context()); err != io.EOF {
			t.Errorf("after the last batch: %v", err)
		}
	}
	l2.Close()
	l2.Wait()
}

func TestTransferAndQueue(t *testing.T) {
	for size, want := range map[int64]int64{-1: 256 << 10, 0: 256 << 10, 1: 4096, 4096: 4096, 262145: 262145} {
		if got := TransferSize(size); got != want {
			t.Errorf("TransferSize(%d) = %d, want %d", size, got, want)
		}
	}
	for size, want := range map[int]int{-1: 2, 0: 2, 1: 1, 7: 7} {
		if got := QueueDepth(size); got != want {
			t.Errorf("QueueDepth(%d) = %d, want %d", size, got, want)
		}
	}
}

// TestWrongLoaders: what cannot be a loader is an error when it is made.
func TestWrongLoaders(t *testing.T) {
	src := source(t, &memory{}, 10, 1)
	for i, make1 := range []func() error{
		func() error {
			_, err := NewTensorFlow(t.Context(), TensorFlowConfig{Source: src, BatchSize: 1})
			return err
		},
		func() error {
			_, err := NewTensorFlow(t.Context(), TensorFlowConfig{BatchSize: 1, Threads: 1})
			return err
		},
		func() error {
			_, err := NewDALI(t.Context(), DALIConfig{Source: src, BatchSize: 1, Threads: 1})
			return err
		},
		func() error { _, err := NewIdle(0, 0, 1); return err },
		func() error { _, err := NewTFRecord(t.Context(), TFRecordConfig{Source: src}); return err },
	} {
		if err := make1(); err == nil || !strings.Contains(err.Error(), "accelerator 0: expected") {
			t.Errorf("%d: found %v", i, err)
		}
	}
}
