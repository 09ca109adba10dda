package loader

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
)

// every makes each kind of loader for 9 steps of a batch of 2.
func every(t testing.TB, ctx context.Context, src *Source, steps int64) map[string]Loader {
	t.Helper()
	tf, err := NewTensorFlow(ctx, TensorFlowConfig{Source: src, BatchSize: 2, Steps: steps, Threads: 2, Prefetch: 2})
	if err != nil {
		t.Fatal(err)
	}
	unbuffered, err := NewTensorFlow(ctx, TensorFlowConfig{Source: src, BatchSize: 2, Steps: steps, Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	dali, err := NewDALI(ctx, DALIConfig{Source: src, BatchSize: 2, Steps: steps, Threads: 2, Depth: 2})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Loader{"tensorflow": tf, "tensorflow without prefetch": unbuffered, "dali": dali,
		"tfrecord": tfrecord(t, ctx, src, TFRecordConfig{BatchSize: 2, Steps: steps, Lanes: 2, Ready: 2}, 3)}
}

func orderFor(steps int64) Order { return streams{n: 1, lanes: 2, reads: 2 * steps, stride: 1} }

// TestEveryLoaderNamesTheFile: the error of a read comes in place of its batch, names accelerator, epoch, batch and file, and nobody is left
// waiting.
func TestEveryLoaderNamesTheFile(t *testing.T) {
	boom := errors.New("boom")
	for _, name := range []string{"tensorflow", "tensorflow without prefetch", "dali", "tfrecord"} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{size: 100, latency: time.Second, fail: map[string]error{"f7": boom}}
			src := source(t, m, 4096, 64)
			src.Decoder = records{1}
			l := every(t, t.Context(), src, 9)
			for other := range l {
				if other != name {
					l[other].Close()
				}
			}
			l[name].Start(1, orderFor(9))
			var err error
			for err == nil {
				_, err = l[name].Next(t.Context())
			}
			if !errors.Is(err, boom) || !strings.Contains(err.Error(), "f7") || !strings.Contains(err.Error(), "accelerator 0, epoch 1, batch") {
				t.Errorf("%s: found %v", name, err)
			}
			l[name].Close()
			l[name].Wait()
		})
	}
}

// TestEveryLoaderStops: cancelled in the middle, Next returns the cause, and all goroutines end.
func TestEveryLoaderStops(t *testing.T) {
	stop := errors.New("stop")
	for _, name := range []string{"tensorflow", "tensorflow without prefetch", "dali", "tfrecord"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			m := &memory{size: 100, latency: time.Second}
			src := source(t, m, 4096, 64)
			src.Decoder = records{1}
			all := every(t, ctx, src, 9)
			l := all[name]
			l.Start(1, orderFor(9))
			time.AfterFunc(2500*time.Millisecond, func() { cancel(stop) })
			start := time.Now()
			var err error
			for err == nil {
				_, err = l.Next(ctx)
			}
			for _, l := range all {
				l.Close()
				l.Wait()
			}
			if d := time.Since(start); !errors.Is(err, stop) || d > 3600*time.Millisecond {
				t.Errorf("%s: returned after %v: %v", name, d, err)
			}
		})
	}
}

// TestEveryLoaderAllocatesNothing in its steady state.
func TestEveryLoaderAllocatesNothing(t *testing.T) {
	const steps = 500
	m := &memory{size: 100}
	src := source(t, m, 4096, 16)
	src.Store = &steady{memFile{m: m}}
	src.Path = func(int64) string { return "f" }
	src.Decoder = steadyRecords{}
	tf, err := NewTensorFlow(t.Context(), TensorFlowConfig{Source: src, BatchSize: 4, Steps: steps, Threads: 2, Prefetch: 2})
	if err != nil {
		t.Fatal(err)
	}
	dali, err := NewDALI(t.Context(), DALIConfig{Source: src, BatchSize: 4, Steps: steps, Threads: 2, Depth: 2})
	if err != nil {
		t.Fatal(err)
	}
	idle, err := NewIdle(0, 4, steps)
	if err != nil {
		t.Fatal(err)
	}
	tfr, err := NewTFRecord(t.Context(), TFRecordConfig{Source: src, Format: one{}, Samples: 1, BatchSize: 4, Steps: steps, Lanes: 2, Ready: 2,
		Transfer: 4096, Places: func() func(Order) Places { var p Places = firstOf{9}; return func(Order) Places { return p } }()})
	if err != nil {
		t.Fatal(err)
	}
	var order Order = streams{n: 1, lanes: 2, reads: 4 * steps, stride: 1}
	for name, l := range map[string]Loader{"tensorflow": tf, "dali": dali, "idle": idle, "tfrecord": tfr} {
		epoch := 0
		got := testing.AllocsPerRun(5, func() {
			epoch++
			l.Start(epoch, order)
			for {
				if _, err := l.Next(t.Context()); err == io.EOF {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
		})
		// 2,000 samples an epoch: anything that a sample, a batch or an open allocates shows as 500 and more.
		if got > 20 {
			t.Errorf("%s: %.0f allocations in an epoch of %d batches, expected none", name, got, steps)
		}
		l.Close()
		l.Wait()
	}
}

// steadyRecords asks for nothing, so that it needs no file.
type steadyRecords struct{}

func (steadyRecords) ReadSample(io.ReaderAt, int64, int, []byte) (format.Sample, error) {
	return format.Sample{Logical: 100}, nil
}

// one is a format with one stream that never ends and reads nothing.
type one struct{}

func (one) Stream(io.ReaderAt, int64, []byte) format.SampleStream { return endless{} }

type endless struct{}

func (endless) Next() (format.Sample, error) { return format.Sample{Logical: 100}, nil }
func (endless) Close()                       {}
