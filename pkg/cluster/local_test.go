package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newLocal(t testing.TB, n int) *Local {
	t.Helper()
	l, err := NewLocal(n)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// finish fails the test, with all stacks, when f hangs: a barrier's worst fault must not look like a slow test.
func finish(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		panic("the group hangs")
	}
}

// No rank passes a barrier before all have come to it, and none is ever more than one barrier ahead, with many more ranks than cores.
func TestBarrierKeepsRanksTogether(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 512} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const rounds = 200
			l := newLocal(t, n)
			arrived := make([]atomic.Int64, rounds)
			finish(t, func() {
				err := l.Run(t.Context(), func(ctx context.Context, m *Member) error {
					for i := range rounds {
						arrived[i].Add(1)
						if err := m.Barrier(ctx); err != nil {
							return err
						}
						if got := arrived[i].Load(); got != int64(n) {
							return fmt.Errorf("rank %d passed barrier %d after %d of %d had come", m.Rank(), i, got, n)
						}
						if i+2 < rounds && arrived[i+2].Load() != 0 {
							return fmt.Errorf("somebody reached barrier %d while rank %d had not reached %d", i+2, m.Rank(), i+1)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The same under virtual time: the barrier lets go at the instant at which the last rank comes, not a nanosecond later.
func TestBarrierTakesNoVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 32
		l := newLocal(t, n)
		start := time.Now()
		err := l.Run(t.Context(), func(ctx context.Context, m *Member) error {
			for i := 1; i <= 5; i++ {
				time.Sleep(time.Duration(m.Rank()+1) * time.Millisecond)
				if err := m.Barrier(ctx); err != nil {
					return err
				}
				if got, want := time.Since(start), time.Duration(i*n)*time.Millisecond; got != want {
					return fmt.Errorf("rank %d left barrier %d at %v, want %v", m.Rank(), i, got, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// One rank's error reaches every rank at once and is the same error for all.
func TestAbortReachesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 512
		l := newLocal(t, n)
		fault := errors.New("a disk is gone")
		errs := make([]error, n)
		start := time.Now()
		err := l.Run(t.Context(), func(ctx context.Context, m *Member) error {
			if m.Rank() == 77 {
				time.Sleep(time.Second)
				errs[77] = fault
				return fault
			}
			errs[m.Rank()] = m.Barrier(ctx)
			return errs[m.Rank()]
		})
		if err != fault {
			t.Errorf("Run returned %v, want the fault itself", err)
		}
		for r, e := range errs {
			if e != fault {
				t.Fatalf("rank %d got %v, want %v", r, e, fault)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("all ended after %v, want 1s", d)
		}
		if err := l.Rank(3).Barrier(t.Context()); err != fault {
			t.Errorf("a barrier after the abort returned %v", err)
		}
		l.Abort(errors.New("too late"))
		if l.Err() != fault {
			t.Errorf("a second abort replaced the first: %v", l.Err())
		}
	})
}

func TestCancelledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, 16)
		reason := errors.New("interrupted by the user")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		err := l.Run(ctx, func(ctx context.Context, m *Member) error {
			if m.Rank() == 0 { // never comes, but ends with the others
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return m.Barrier(ctx)
		})
		if !errors.Is(err, reason) {
			t.Errorf("error %v, want the cause of the cancellation", err)
		}
	})
	l := newLocal(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Rank(0).Barrier(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a single rank with a cancelled context: %v", err)
	}
}

// A context that ends between barriers, or after the last, is no fault: only the barrier's own one counts.
func TestContextOfAnEarlierBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, 8)
		err := l.Run(t.Context(), func(ctx context.Context, m *Member) error {
			for i := range 20 {
				epoch, cancel := context.WithCancel(ctx)
				defer cancel()
				for range 3 {
					if err := m.Barrier(epoch); err != nil {
						return err
					}
				}
				// Some cancel before the next barrier, some while others are in it, the rest after the last.
				if m.Rank()%3 == 0 {
					cancel()
				} else if m.Rank()%3 == 1 {
					time.AfterFunc(time.Duration(i), cancel)
					time.Sleep(time.Duration(m.Rank()))
				}
			}
			return nil
		})
		synctest.Wait()
		if err != nil || l.Err() != nil {
			t.Errorf("Run returned %v, the group has %v", err, l.Err())
		}
	})
}

// A rank that is short is found out, whether it ends before or after the others come to wait.
func TestUnevenRanks(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("ends early ", early), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLocal(t, 8)
				err := l.Run(t.Context(), func(ctx context.Context, m *Member) error {
					steps := 10
					if m.Rank() == 5 {
						steps = 9
					}
					for range steps {
						if err := m.Barrier(ctx); err != nil {
							return err
						}
						if (m.Rank() == 5) != early {
							time.Sleep(time.Millisecond)
						}
					}
					return nil
				})
				if !errors.Is(err, ErrUneven) {
					t.Errorf("error %v, want %v", err, ErrUneven)
				}
			})
		})
	}
}

func TestPanicIsAnError(t *testing.T) {
	l := newLocal(t, 4)
	finish(t, func() {
		err := l.Run(t.Context(), func(ctx context.Context, m *Member) error {
			if m.Rank() == 2 {
				var none []int
				_ = none[m.Rank()]
			}
			return m.Barrier(ctx)
		})
		if err == nil || !strings.Contains(err.Error(), "rank 2 panicked") {
			t.Errorf("error %v, want one that names the rank", err)
		}
	})
}

func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, 3)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			wg.Go(func() { errs[i] = l.Rank(1).Barrier(t.Context()) })
		}
		wg.Wait()
		for _, err := range errs {
			if !errors.Is(err, ErrMisuse) {
				t.Errorf("one rank on two goroutines: %v", err)
			}
		}
	})
	l := newLocal(t, 2)
	l.Rank(0).Leave()
	l.Rank(0).Leave()
	if l.Err() != nil {
		t.Errorf("leaving twice: %v", l.Err())
	}
	if err := l.Rank(0).Barrier(t.Context()); !errors.Is(err, ErrMisuse) {
		t.Errorf("a barrier after leaving: %v", err)
	}
	if _, err := NewLocal(0); err == nil {
		t.Error("a group of none was made")
	}
	if _, err := NewLocal(MaxRanks + 1); err == nil {
		t.Error("a group above the limit was made")
	}
	if l.Rank(-1) != nil || l.Rank(2) != nil {
		t.Error("a rank out of range is not nil")
	}
	l = newLocal(t, 2)
	l.Abort(nil)
	if !errors.Is(l.Err(), ErrAborted) {
		t.Errorf("an abort without a reason: %v", l.Err())
	}
	select {
	case <-l.Aborted():
	default:
		t.Error("Aborted is not closed")
	}
}

func TestReductions(t *testing.T) {
	const n, rounds = 65, 50
	l := newLocal(t, n)
	finish(t, func() {
		err := l.Run(t.Context(), func(ctx context.Context, m *Member) error {
			for i := int64(0); i < rounds; i++ {
				sum, err := m.Sum(ctx, i*int64(m.Rank()))
				if err != nil {
					return err
				}
				if want := i * n * (n - 1) / 2; sum != want {
					return fmt.Errorf("rank %d round %d: sum %d, want %d", m.Rank(), i, sum, want)
				}
				high, err := m.Max(ctx, -i-int64((m.Rank()+int(i))%n))
				if err != nil {
					return err
				}
				if high != -i {
					return fmt.Errorf("rank %d round %d: max %d, want %d", m.Rank(), i, high, -i)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Aborts, cancellations and early ends at random moments against ranks at full speed. Whatever happens, everybody ends, and all
// ranks that failed have the group's one error.
func TestAbortAtAnyMoment(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 300 {
		n := 2 + rng.IntN(40)
		wait := time.Duration(rng.IntN(300)) * time.Microsecond
		kind := rng.IntN(4)
		stop := int64(rng.IntN(200))
		chosen := rng.IntN(n)
		abortMoment(t, round, n, wait, kind, stop, chosen)
	}
}

func abortMoment(t *testing.T, round, n int, wait time.Duration, kind int, stop int64, chosen int) {
	t.Helper()
	fault := errors.New("fault")
	l := newLocal(t, n)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	errs := make([]error, n)
	finish(t, func() {
		var outside sync.WaitGroup
		if kind < 2 {
			outside.Go(func() {
				time.Sleep(wait)
				if kind == 0 {
					l.Abort(fault)
				} else {
					cancel(fault)
				}
			})
		}
		err := l.Run(ctx, func(ctx context.Context, m *Member) error {
			r := m.Rank()
			for i := int64(0); ; i++ {
				if r == chosen && i == stop {
					switch kind {
					case 2:
						errs[r] = fault
						return fault
					case 3:
						return nil
					}
				}
				if errs[r] = m.Barrier(ctx); errs[r] != nil {
					return errs[r]
				}
			}
		})
		outside.Wait()
		want := fault
		if kind == 3 {
			want = ErrUneven
		}
		if !errors.Is(err, want) {
			t.Errorf("round %d, %d ranks, kind %d: Run returned %v, want %v", round, n, kind, err, want)
		}
		for r, e := range errs {
			if e != err && !(kind == 3 && r == chosen) {
				t.Errorf("round %d, kind %d: rank %d got %v, the group %v", round, kind, r, e, err)
			}
		}
	})
}

// A barrier allocates nothing, whatever the number of ranks.
func TestBarrierAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 2, 64, 512} {
		l := newLocal(t, n)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for r := 1; r < n; r++ {
			wg.Go(func() {
				for l.Rank(r).Barrier(ctx) == nil {
				}
			})
		}
		meet := func() {
			if err := l.Rank(0).Barrier(ctx); err != nil {
				t.Error(err)
			}
		}
		for range 100 { // the runtime makes its wait records once
			meet()
		}
		if a := testing.AllocsPerRun(500, meet); a >= 1 {
			t.Errorf("%d ranks: %v allocations a barrier", n, a)
		}
		l.Abort(nil)
		wg.Wait()
		cancel()
	}
}

func BenchmarkBarrier(b *testing.B) {
	for _, n := range []int{1, 2, 8, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLocal(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			err := l.Run(b.Context(), func(ctx context.Context, m *Member) error {
				for range b.N {
					if err := m.Barrier(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

func ExampleLocal_Run() {
	l, err := NewLocal(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = l.Run(context.Background(), func(ctx context.Context, m *Member) error {
		if m.Rank() == 1 {
			return errors.New("img_7_of_9.npz: input/output error")
		}
		return m.Barrier(ctx)
	})
	fmt.Println(err)
	// Output: img_7_of_9.npz: input/output error
}
