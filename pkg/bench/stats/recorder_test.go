package stats

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
)

// record plays a run into a recorder as the engine does: every rank on its own goroutine, with a barrier a step.
func play(ctx context.Context, rec *Recorder, r run) error {
	l, err := cluster.NewLocal(r.p.Accelerators)
	if err != nil {
		return err
	}
	return l.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
		k := rec.Rank(m.Rank())
		var block int32
		for i := m.Rank(); i < len(r.rows); i += r.p.Accelerators {
			s := r.rows[i]
			if block != s.Block || s.Step == 1 {
				if err := k.StartBlock(int(s.Epoch), s.BlockStart); err != nil {
					return err
				}
				block = s.Block
			}
			if err := k.Add(Step{Step: s.Step, Start: s.Start, Load: s.Load, Compute: s.Compute, Prescribed: s.Prescribed, Proc: s.Proc,
				Barrier: s.Barrier, Open: s.Open, Read: s.Read, Decode: s.Decode, Samples: s.Samples, Bytes: s.Bytes,
				Queue: s.Queue, Ready: s.Ready, Preprocess: s.Preprocess, Hash: s.Hash}); err != nil {
				return err
			}
			if s.Step == r.p.StepsPerEpoch || r.saves[s.Step] {
				if err := k.EndBlock(s.BlockEnd); err != nil {
					return err
				}
			}
			if m.Rank()%3 == 0 {
				runtime.Gosched() // let the others overtake
			}
			if err := m.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// However the ranks interleave, the recorder writes the file that the sorted rows give.
func TestRecorderWritesSortedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, ranks := range []int{1, 2, 5, 64, 300} {
		r := makeRun(rng, Params{Accelerators: ranks, Epochs: 2, StepsPerEpoch: 60, BatchSize: 2})
		want := file(t, r.rows)
		for range 3 {
			var b bytes.Buffer
			rec, err := NewRecorder(&b, ranks)
			if err != nil {
				t.Fatal(err)
			}
			if err := play(t.Context(), rec, r); err != nil {
				t.Fatal(err)
			}
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				rows, _, err := readAll(b.Bytes())
				t.Fatalf("%d ranks: the file is not that of the sorted rows (%v, rows equal: %v)", ranks, err, reflect.DeepEqual(rows, r.rows))
			}
		}
	}
}

// After a failed run the file holds what some ranks had ended, in order.
func TestRecorderKeepsAnEndedRun(t *testing.T) {
	var b bytes.Buffer
	rec, err := NewRecorder(&b, 3)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		m := rec.Rank(k)
		if err := m.StartBlock(1, 0); err != nil {
			t.Fatal(err)
		}
		for s := int64(1); s <= 5; s++ {
			if k == 1 && s == 5 || k == 2 && s >= 4 {
				break
			}
			if err := m.Add(Step{Step: s, Start: s * 100, Proc: 50, Barrier: 50, Samples: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	rows, _, err := readAll(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var got [][2]int64
	for _, s := range rows {
		got = append(got, [2]int64{s.Step, int64(s.Rank)})
	}
	want := [][2]int64{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {5, 0}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("steps and ranks %v, want %v", got, want)
	}
	if _, err := summarise(b.Bytes(), Params{Accelerators: 3, Epochs: 1, StepsPerEpoch: 9, BatchSize: 1, Partial: true}); err != nil {
		t.Errorf("its figures: %v", err)
	}
}

func TestRecorderRefusals(t *testing.T) {
	if _, err := NewRecorder(io.Discard, 0); err == nil {
		t.Error("a recorder of no ranks was made")
	}
	rec, err := NewRecorder(io.Discard, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if rec.Rank(-1) != nil || rec.Rank(2) != nil {
		t.Error("a rank out of range is not nil")
	}
	k := rec.Rank(0)
	step := func(s int64) Step { return Step{Step: s, Start: s * 10, Proc: 5, Samples: 1} }
	if err := k.Add(step(1)); !errors.Is(err, ErrImpossible) {
		t.Errorf("a step outside a block: %v", err)
	}
	if err := k.EndBlock(1); !errors.Is(err, ErrImpossible) {
		t.Errorf("the end of no block: %v", err)
	}
	if err := k.StartBlock(1, 0); err != nil {
		t.Fatal(err)
	}
	if err := k.StartBlock(1, 0); !errors.Is(err, ErrImpossible) {
		t.Errorf("a block in a block: %v", err)
	}
	if err := k.Add(Step{Step: 1, Start: 10, Proc: 5, Compute: 6}); !errors.Is(err, ErrImpossible) {
		t.Errorf("a step with more compute than time: %v", err)
	}
	for s := int64(1); s <= openSteps+1; s++ {
		if err := k.Add(step(s)); err != nil {
			t.Fatalf("step %d: %v", s, err)
		}
	}
	if err := k.Add(step(openSteps + 2)); err == nil || !strings.Contains(err.Error(), "out of step") {
		t.Errorf("a rank far ahead of the other: %v", err)
	}
	other := rec.Rank(1)
	if err := errors.Join(other.StartBlock(1, 0), other.Add(step(1))); err != nil {
		t.Fatal(err)
	}
	if err := other.EndBlock(3); !errors.Is(err, ErrImpossible) {
		t.Errorf("a block that ends before its step: %v", err)
	}
}

// fullDisk fails after so many bytes.
type fullDisk struct{ left atomic.Int64 }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left.Add(-int64(len(p))) < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A full disk reaches the ranks as an error, and the run neither hangs nor loses the reason.
func TestRecorderOnAFullDisk(t *testing.T) {
	r := makeRun(rand.New(rand.NewPCG(9, 9)), Params{Accelerators: 4, Epochs: 1, StepsPerEpoch: 40000, BatchSize: 2})
	var d fullDisk
	d.left.Store(1 << 20)
	rec, err := NewRecorder(&d, 4)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		err := play(context.Background(), rec, r)
		done <- errors.Join(err, rec.Close())
	}()
	select {
	case err = <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("the recorder hangs")
	}
	if !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

// slowDisk makes the ranks wait for it.
type slowDisk struct{ bytes.Buffer }

func (d *slowDisk) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return d.Buffer.Write(p)
}

// When the disk falls behind, the ranks wait and nothing is lost.
func TestRecorderOnASlowDisk(t *testing.T) {
	r := makeRun(rand.New(rand.NewPCG(10, 10)), Params{Accelerators: 16, Epochs: 1, StepsPerEpoch: 9000, BatchSize: 2})
	var d slowDisk
	rec, err := NewRecorder(&d, 16)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(play(t.Context(), rec, r), rec.Close()); err != nil {
		t.Fatal(err)
	}
	if rows, _, err := readAll(d.Bytes()); err != nil || !reflect.DeepEqual(rows, r.rows) {
		t.Errorf("rows are lost or changed: %v", err)
	}
}

// Recording a step costs its rank no allocation: what is allocated at all belongs to the writer, and far less than once a step.
func TestRecordingAllocatesLittle(t *testing.T) {
	rec, err := NewRecorder(io.Discard, 1)
	if err != nil {
		t.Fatal(err)
	}
	k := rec.Rank(0)
	if err := k.StartBlock(1, 0); err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	add := func() {
		n++
		if err := k.Add(Step{Step: n, Start: n * 10, Proc: 5, Samples: 1}); err != nil {
			t.Error(err)
		}
	}
	for range groupRows {
		add()
	}
	// AllocsPerRun rounds down: count the steps of many at a time.
	a := testing.AllocsPerRun(20, func() {
		for range 10_000 {
			add()
		}
	})
	t.Logf("%v allocations in 10,000 steps", a)
	if a > 1000 {
		t.Errorf("%v allocations in 10,000 steps", a)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkAdd(b *testing.B) {
	rec, err := NewRecorder(io.Discard, 1)
	if err != nil {
		b.Fatal(err)
	}
	k := rec.Rank(0)
	if err := k.StartBlock(1, 0); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		n++
		if err := k.Add(Step{Step: n, Start: n * 1000, Load: 100, Compute: 800, Proc: 900 + n%10, Samples: 1, Bytes: n}); err != nil {
			b.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSummarise(b *testing.B) {
	p := Params{Accelerators: 8, Epochs: 2, StepsPerEpoch: 20000, BatchSize: 2}
	r := makeRun(rand.New(rand.NewPCG(11, 11)), p)
	f := file(b, r.rows)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := summarise(f, p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(r.rows)), "ns/row")
}
