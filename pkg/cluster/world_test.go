package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/cluster/clustertest"
)

// within fails the test, with all stacks, when f hangs.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		panic("the world hangs")
	}
}

// Ranks are numbered through the processes, whatever each of them brings, and meet as those of one process do.
func TestGroupOfProcesses(t *testing.T) {
	for _, shape := range [][]int{{1}, {5}, {1, 1}, {2, 2}, {1, 2, 5}, {5, 1, 1, 3}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			const rounds = 100
			total := 0
			for _, n := range shape {
				total += n
			}
			arrived := make([]atomic.Int64, rounds)
			seen := make([]atomic.Int64, total)
			within(t, func() {
				err := clustertest.Run(t.Context(), len(shape), func(ctx context.Context, w *cluster.World) error {
					g, err := cluster.NewGroup(ctx, w, shape[w.Rank()])
					if err != nil {
						return err
					}
					if g.Local() != shape[w.Rank()] || g.Size() != total || g.Rank(g.First()).Index() != 0 || g.Rank(g.First()-1) != nil ||
						g.Rank(g.First()+g.Local()) != nil {
						return fmt.Errorf("process %d: %d ranks from %d of %d", w.Rank(), g.Local(), g.First(), g.Size())
					}
					return g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
						seen[m.Rank()].Add(1)
						for i := range rounds {
							arrived[i].Add(1)
							if err := m.Barrier(ctx); err != nil {
								return err
							}
							if got := arrived[i].Load(); got != int64(total) {
								return fmt.Errorf("rank %d passed barrier %d after %d of %d had come", m.Rank(), i, got, total)
							}
							sum, err := m.Sum(ctx, int64(m.Rank()*i))
							if err != nil {
								return err
							}
							if want := int64(i * total * (total - 1) / 2); sum != want {
								return fmt.Errorf("rank %d round %d: sum %d, want %d", m.Rank(), i, sum, want)
							}
							high, err := m.Max(ctx, -int64((m.Rank()+i)%total))
							if err != nil || high != 0 {
								return fmt.Errorf("rank %d round %d: max %d, want 0; %v", m.Rank(), i, high, err)
							}
						}
						return nil
					})
				})
				if err != nil {
					t.Error(err)
				}
			})
			for r := range seen {
				if seen[r].Load() != 1 {
					t.Errorf("rank %d ran %d times", r, seen[r].Load())
				}
			}
		})
	}
}

// A barrier over processes lets go at the instant at which the last rank of the last process comes.
func TestGroupBarrierTakesNoVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := clustertest.Run(t.Context(), 3, func(ctx context.Context, w *cluster.World) error {
			g, err := cluster.NewGroup(ctx, w, 4)
			if err != nil {
				return err
			}
			return g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
				for i := 1; i <= 5; i++ {
					time.Sleep(time.Duration((m.Rank()*7)%12+1) * time.Millisecond)
					if err := m.Barrier(ctx); err != nil {
						return err
					}
					if got, want := time.Since(start), time.Duration(12*i)*time.Millisecond; got != want {
						return fmt.Errorf("rank %d left barrier %d at %v, want %v", m.Rank(), i, got, want)
					}
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// One rank's error ends all ranks of all processes at once; its own process gets the error itself, the others its text and where.
func TestGroupFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := errors.New("a disk is gone")
		start := time.Now()
		errs := make([]error, 3)
		_ = clustertest.New(3, 2).Run(t.Context(), func(ctx context.Context, w *cluster.World) error {
			g, err := cluster.NewGroup(ctx, w, 4)
			if err == nil {
				err = g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
					if m.Rank() == 9 {
						time.Sleep(time.Second)
						return fault
					}
					if m.Rank() == 5 { // reads while the fault comes
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return m.Barrier(ctx)
				})
			}
			errs[w.Rank()] = err
			return err
		})
		if errs[2] != fault {
			t.Errorf("process 2 got %v, want the fault itself", errs[2])
		}
		for _, err := range errs[:2] {
			var p *cluster.ProcessError
			if !errors.As(err, &p) || p.Rank != 2 || p.Node != "node1" || !strings.Contains(err.Error(), "process 2 on node1: a disk is gone") {
				t.Errorf("another process got %v", err)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("all ended after %v, want 1s", d)
		}
	})
}

// Processes whose ranks take different numbers of steps, or which go to different meetings, are found out in all processes.
func TestUnevenProcesses(t *testing.T) {
	steps := func(n int) func(context.Context, *cluster.World) error {
		return func(ctx context.Context, w *cluster.World) error {
			g, err := cluster.NewGroup(ctx, w, 2)
			if err != nil {
				return err
			}
			return g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
				for range n {
					if err := m.Barrier(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	barrier := func(ctx context.Context, w *cluster.World) error { return w.Barrier(ctx) }
	broadcast := func(ctx context.Context, w *cluster.World) error {
		_, err := w.BroadcastBytes(ctx, []byte("x"))
		return err
	}
	numbers := func(n int) func(context.Context, *cluster.World) error {
		return func(ctx context.Context, w *cluster.World) error {
			return w.Allreduce(ctx, make([]int64, n), cluster.Max)
		}
	}
	for _, c := range []struct {
		name string
		a, b func(context.Context, *cluster.World) error
		want string
	}{
		{"a step less", steps(10), steps(9), "some processes came to a barrier and others to the end of their ranks"},
		{"a step more", steps(10), steps(11), "some processes came to a barrier and others to the end of their ranks"},
		{"a broadcast", barrier, broadcast, "some processes came to a barrier and others to a broadcast"},
		{"sizes", numbers(3), numbers(4), "came to a reduction with different sizes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				errs := make([]error, 3)
				_ = clustertest.Run(t.Context(), 3, func(ctx context.Context, w *cluster.World) error {
					f := c.a
					if w.Rank() == 1 {
						f = c.b
					}
					errs[w.Rank()] = f(ctx, w)
					return errs[w.Rank()]
				})
				for r, err := range errs {
					if err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("process %d: %v, want %q", r, err, c.want)
					}
				}
				if !errors.Is(errors.Join(errs...), cluster.ErrUneven) {
					t.Errorf("%v: want ErrUneven", errs)
				}
			})
		})
	}
}

// A process is used by one goroutine at a time.
func TestWorldMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := clustertest.Run(t.Context(), 2, func(ctx context.Context, w *cluster.World) error {
			if w.Rank() == 1 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			go func() { _ = w.Barrier(ctx) }()
			synctest.Wait()
			return w.Barrier(ctx)
		})
		if !errors.Is(err, cluster.ErrMisuse) {
			t.Errorf("two barriers at a time: %v", err)
		}
	})
}

// Gathered streams arrive whole, in process 0, whatever their lengths and in whatever order they are read.
func TestGather(t *testing.T) {
	const n = 5
	content := func(rank int) []byte {
		rng := rand.New(rand.NewPCG(1, uint64(rank)))
		b := make([]byte, []int{200_000, 0, 1, 65_536, 131_073}[rank])
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for _, way := range []string{"one after the other", "interleaved", "backwards, not to the end"} {
		t.Run(way, func(t *testing.T) {
			calls := 0
			err := clustertest.Run(t.Context(), n, func(ctx context.Context, w *cluster.World) error {
				err := w.Gather(ctx, bytes.NewReader(content(w.Rank())), func(streams []io.Reader) error {
					calls++
					if w.Rank() != 0 || len(streams) != n {
						return fmt.Errorf("process %d is given %d streams", w.Rank(), len(streams))
					}
					got := make([][]byte, n)
					switch way {
					case "interleaved":
						for left := n; left > 0; {
							left = n
							for r, s := range streams {
								piece := make([]byte, 1000+r)
								k, err := s.Read(piece)
								got[r] = append(got[r], piece[:k]...)
								if err == io.EOF {
									left--
								} else if err != nil {
									return err
								}
							}
						}
					case "one after the other":
						for r, s := range streams {
							var err error
							if got[r], err = io.ReadAll(s); err != nil {
								return err
							}
						}
					default:
						piece := make([]byte, 1000)
						if _, err := io.ReadFull(streams[4], piece); err != nil || !bytes.Equal(piece, content(4)[:1000]) {
							return fmt.Errorf("process 4: %v", err)
						}
						if _, err := io.ReadFull(streams[3], piece); err != nil || !bytes.Equal(piece, content(3)[:1000]) {
							return fmt.Errorf("process 3: %v", err)
						}
						return nil
					}
					for r := range got {
						if !bytes.Equal(got[r], content(r)) {
							return fmt.Errorf("process %d: %d bytes arrived, want %d", r, len(got[r]), len(content(r)))
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
				all, err := w.GatherBytes(ctx, content(w.Rank()))
				if (w.Rank() == 0) != (len(all) == n) {
					return fmt.Errorf("process %d got %d documents", w.Rank(), len(all))
				}
				for r := range all {
					if !bytes.Equal(all[r], content(r)) {
						return fmt.Errorf("document %d differs", r)
					}
				}
				return err
			})
			if err != nil || calls != 1 {
				t.Errorf("sink was called %d times: %v", calls, err)
			}
		})
	}
}

// A stream that fails, and a sink that does, end the gathering in every process.
func TestGatherFault(t *testing.T) {
	fault := errors.New("the disk is full")
	for _, who := range []string{"source", "sink"} {
		errs := make([]error, 3)
		_ = clustertest.Run(t.Context(), 3, func(ctx context.Context, w *cluster.World) error {
			var src io.Reader = strings.NewReader("fine")
			if who == "source" && w.Rank() == 2 {
				src = io.MultiReader(src, failing{fault})
			}
			errs[w.Rank()] = w.Gather(ctx, src, func(streams []io.Reader) error {
				for _, s := range streams {
					if _, err := io.Copy(io.Discard, s); err != nil {
						return err
					}
				}
				if who == "sink" {
					return fault
				}
				return nil
			})
			return errs[w.Rank()]
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), fault.Error()) {
				t.Errorf("%s fails: process %d got %v", who, r, err)
			}
		}
	}
	w := cluster.Alone()
	if err := w.Gather(t.Context(), nil, func([]io.Reader) error { return fault }); err != fault || w.Err() != fault {
		t.Errorf("alone: %v, the world has %v", err, w.Err())
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestBroadcast(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 13} {
		for _, size := range []int{0, 1, 65_535, 65_536, 65_537, 200_000} {
			want := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
			err := clustertest.Run(t.Context(), n, func(ctx context.Context, w *cluster.World) error {
				var give []byte
				if w.Rank() == 0 {
					give = want
				}
				got, err := w.BroadcastBytes(ctx, give)
				if err == nil && !bytes.Equal(got, want) {
					err = fmt.Errorf("process %d got %d bytes, want %d", w.Rank(), len(got), size)
				}
				return err
			})
			if err != nil {
				t.Errorf("%d processes, %d bytes: %v", n, size, err)
			}
		}
	}
	if _, err := cluster.Alone().BroadcastBytes(t.Context(), make([]byte, cluster.MaxDocument+1)); err == nil {
		t.Error("a document above the limit was broadcast")
	}
}

func TestNodes(t *testing.T) {
	err := clustertest.New(5, 2).Run(t.Context(), func(_ context.Context, w *cluster.World) error {
		index, count := w.OnNode()
		if want := []int{2, 2, 2, 2, 1}[w.Rank()]; count != want || index != w.Rank()%2 || w.NodeOf(4) != "node2" || w.NodeOf(5) != "" {
			return fmt.Errorf("process %d is %d of %d on %s", w.Rank(), index, count, w.Node())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if index, count := cluster.Alone().OnNode(); index != 0 || count != 1 {
		t.Errorf("alone: %d of %d", index, count)
	}
}

// Processes that are killed, abort, or are cancelled at a random moment, with all kinds of meetings under way: all others end, with the
// first reason.
func TestEndAtAnyMoment(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for round := range 200 {
		n := 2 + rng.IntN(6)
		net := clustertest.New(n, 2)
		victim, wait, kind := rng.IntN(n), time.Duration(rng.IntN(2000))*time.Microsecond, rng.IntN(3)
		reason := errors.New("the reason")
		within(t, func() {
			_ = net.Run(t.Context(), func(ctx context.Context, w *cluster.World) error {
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				if w.Rank() == victim {
					timer := time.AfterFunc(wait, func() {
						switch kind {
						case 0:
							net.Kill(victim)
						case 1:
							w.Abort(reason)
						default:
							cancel(reason)
						}
					})
					defer timer.Stop()
				}
				err := everything(ctx, w)
				var p *cluster.ProcessError
				switch {
				case w.Rank() == victim && kind == 0 && !errors.Is(err, clustertest.ErrKilled):
					t.Errorf("round %d: the killed process got %v", round, err)
				case w.Rank() == victim && kind > 0 && !errors.Is(err, reason):
					t.Errorf("round %d: the failing process got %v", round, err)
				case w.Rank() != victim && (!errors.As(err, &p) || p.Rank != victim):
					t.Errorf("round %d, kind %d: process %d got %v", round, kind, w.Rank(), err)
				}
				return err
			})
		})
	}
}

// everything meets for ever, for everything that there is.
func everything(ctx context.Context, w *cluster.World) error {
	big := make([]byte, 100_000)
	for {
		g, err := cluster.NewGroup(ctx, w, 3)
		if err != nil {
			return err
		}
		if err := g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
			for range 5 {
				if err := m.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if _, err := w.GatherBytes(ctx, big); err != nil {
			return err
		}
		if _, err := w.BroadcastBytes(ctx, big); err != nil {
			return err
		}
		if _, err := w.ClockOffsets(ctx); err != nil {
			return err
		}
		if err := w.Handshake(ctx, map[string]string{"a": "b"}); err != nil {
			return err
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, p := range []cluster.Place{{Rank: 0, Size: 0}, {Rank: 2, Size: 2}, {Rank: -1, Size: 1}, {Size: cluster.MaxProcesses + 1}, {Size: 2}} {
		if _, err := cluster.New(t.Context(), p, nil); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
	w := cluster.Alone()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Barrier(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a barrier of one with a cancelled context: %v", err)
	}
	if err := cluster.Alone().Allreduce(t.Context(), nil, 0); err == nil {
		t.Error("an unknown operation was accepted")
	}
}

// The text of an abort is bounded, and stays text.
func TestLongReason(t *testing.T) {
	err := clustertest.Run(t.Context(), 2, func(ctx context.Context, w *cluster.World) error {
		if w.Rank() == 1 {
			return errors.New(strings.Repeat("é", 10_000) + "!")
		}
		err := w.Barrier(ctx)
		if err == nil || len(err.Error()) > 5000 || strings.ContainsRune(err.Error(), '\uFFFD') {
			t.Errorf("%d bytes of text: %v", len(err.Error()), err)
		}
		return nil
	})
	if err == nil {
		t.Error("the fault was lost")
	}
}

func BenchmarkGroupBarrier(b *testing.B) {
	for _, processes := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(processes, "x64"), func(b *testing.B) {
			b.ReportAllocs()
			err := clustertest.Run(b.Context(), processes, func(ctx context.Context, w *cluster.World) error {
				g, err := cluster.NewGroup(ctx, w, 64)
				if err != nil {
					return err
				}
				return g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
					for range b.N {
						if err := m.Barrier(ctx); err != nil {
							return err
						}
					}
					return nil
				})
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
