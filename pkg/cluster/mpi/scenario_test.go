//go:build mpi && cgo

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
)

// scenarioVariable names, for a process that a test's mpirun has started, what to do.
const scenarioVariable = "BENCHPIN_TEST_MPI_SCENARIO"

// TestMain is also the program that the tests start under mpirun: the test binary itself.
func TestMain(m *testing.M) {
	if name := os.Getenv(scenarioVariable); name != "" {
		os.Exit(play(name))
	}
	os.Exit(m.Run())
}

// play is a process of a job.
func play(name string) int {
	name, argument, _ := strings.Cut(name, " ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := Join(ctx, os.LookupEnv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "join:", err)
		return 2
	}
	w := p.World()
	ctx, free := w.Context(ctx)
	defer free()
	f, known := scenarios[name]
	if !known {
		fmt.Fprintln(os.Stderr, "no scenario", name)
		return 2
	}
	code, err := f(ctx, w, argument)
	if err != nil {
		code = max(code, 1)
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", w.Rank(), err)
	}
	return p.End(code, err)
}

var scenarios = map[string]func(ctx context.Context, w *cluster.World, argument string) (int, error){
	"everything": everything,
	"handshake":  handshake,
	"fault":      fault,
	"alone":      failAlone,
	"uneven":     uneven,
	"code":       endWith,
	"forever":    forever,
	"hang":       hang,
	"rate":       rate,
}

// everything meets in every way, and process 0 says what came of it: one line that must not depend on who carries which accelerators.
func everything(ctx context.Context, w *cluster.World, argument string) (int, error) {
	accelerators, err := strconv.Atoi(argument)
	if err != nil {
		return 2, err
	}
	if err := w.Handshake(ctx, map[string]string{"workload": "blake3:00", "": strings.Repeat("x", 100_000)}); err != nil {
		return 1, err
	}
	g, err := cluster.NewGroup(ctx, w, accelerators)
	if err != nil {
		return 1, err
	}
	sums := make([]int64, g.Local())
	err = g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
		for i := range int64(20) {
			if err := m.Barrier(ctx); err != nil {
				return err
			}
			sum, err := m.Sum(ctx, i*int64(m.Rank()+1))
			if err != nil {
				return err
			}
			sums[m.Index()] += sum
		}
		return nil
	})
	if err != nil {
		return 1, err
	}
	n := int64(g.Size())
	for i, sum := range sums {
		if want := 190 * n * (n + 1) / 2; sum != want {
			return 1, fmt.Errorf("rank %d: the sums come to %d, want %d", g.First()+i, sum, want)
		}
	}
	big := make([]int64, 20_000) // more than one piece
	big[w.Rank()] = int64(w.Rank()) + 1
	if err := w.Allreduce(ctx, big, cluster.Sum); err != nil {
		return 1, err
	}
	for r := range w.Size() {
		if big[r] != int64(r)+1 {
			return 1, fmt.Errorf("number %d is %d", r, big[r])
		}
	}
	mine := bytes.Repeat([]byte{byte('a' + w.Rank())}, 150_000*w.Rank())
	err = w.Gather(ctx, bytes.NewReader(mine), func(streams []io.Reader) error {
		for r, s := range streams {
			got, err := io.ReadAll(s)
			if err != nil {
				return err
			}
			if !bytes.Equal(got, bytes.Repeat([]byte{byte('a' + r)}, 150_000*r)) {
				return fmt.Errorf("%d bytes of process %d are not what it sent", len(got), r)
			}
		}
		return nil
	})
	if err != nil {
		return 1, err
	}
	doc, err := w.BroadcastBytes(ctx, bytes.Repeat([]byte("0123456789"), 20_000))
	if err != nil || len(doc) != 200_000 || !bytes.HasSuffix(doc, []byte("6789")) {
		return 1, fmt.Errorf("a broadcast of %d bytes: %v", len(doc), err)
	}
	offsets, err := w.ClockOffsets(ctx)
	if err != nil {
		return 1, err
	}
	nodes := map[string]bool{}
	for _, o := range offsets {
		nodes[o.Node] = true
		// One machine has one clock: what is found must be as near to 0 as it claims to be, give or take a descheduled process.
		if o.Offset.Abs() > o.Uncertainty+time.Millisecond || o.Uncertainty > 5*time.Second {
			return 1, fmt.Errorf("the clock of process %d is %v ahead, +-%v", o.Rank, o.Offset, o.Uncertainty)
		}
	}
	if err := w.Agree(ctx, nil); err != nil {
		return 1, err
	}
	if w.Rank() == 0 {
		fmt.Printf("everything: %d processes on %d nodes, %d accelerators\n", w.Size(), len(nodes), g.Size())
	}
	return 0, nil
}

func handshake(ctx context.Context, w *cluster.World, _ string) (int, error) {
	fields := map[string]string{"version": "1"}
	if w.Rank() == w.Size()-1 {
		fields["version"] = "2"
	}
	return 1, w.Handshake(ctx, fields)
}

// fault has one rank of one process fail among barriers.
func fault(ctx context.Context, w *cluster.World, _ string) (int, error) {
	g, err := cluster.NewGroup(ctx, w, 2)
	if err != nil {
		return 1, err
	}
	return 1, g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
		for i := range 1 << 30 {
			if i == 50 && m.Rank() == g.Size()-1 {
				return errors.New("img_7_of_9.npz: input/output error")
			}
			if err := m.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// failAlone has one process go to its end with a failure while the others wait for it.
func failAlone(ctx context.Context, w *cluster.World, _ string) (int, error) {
	if w.Rank() == w.Size()-1 {
		return 4, errors.New("the manifest is damaged")
	}
	return 1, w.Barrier(ctx)
}

func uneven(ctx context.Context, w *cluster.World, _ string) (int, error) {
	for range 10 + w.Rank()/(w.Size()-1) {
		if err := w.Barrier(ctx); err != nil {
			return 1, err
		}
	}
	_, err := w.BroadcastBytes(ctx, nil)
	return 1, err
}

// endWith has process 0 find a threshold missed, which only it knows.
func endWith(ctx context.Context, w *cluster.World, _ string) (int, error) {
	if err := w.Barrier(ctx); err != nil {
		return 1, err
	}
	if w.Rank() == 0 {
		time.Sleep(300 * time.Millisecond) // it writes the record; the others wait at the end
		fmt.Println("written")
		return 3, nil
	}
	return 0, nil
}

// forever meets until it is ended, after telling the test its process id.
func forever(ctx context.Context, w *cluster.World, _ string) (int, error) {
	fmt.Printf("pid %d rank %d\n", os.Getpid(), w.Rank())
	for {
		g, err := cluster.NewGroup(ctx, w, 3)
		if err != nil {
			return 1, err
		}
		if err := g.Run(ctx, func(ctx context.Context, m *cluster.Member) error {
			for range 20 {
				if err := m.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return 1, err
		}
		if _, err := w.GatherBytes(ctx, make([]byte, 100_000)); err != nil {
			return 1, err
		}
		if _, err := w.BroadcastBytes(ctx, make([]byte, 100_000)); err != nil {
			return 1, err
		}
	}
}

// hang has one process fail while another never comes to its end.
func hang(ctx context.Context, w *cluster.World, _ string) (int, error) {
	switch w.Rank() {
	case 0:
		return 1, errors.New("process 0 has failed")
	case 1:
		select {}
	}
	return 1, w.Barrier(ctx)
}

// rate measures what a barrier costs, and what waiting in one does.
func rate(ctx context.Context, w *cluster.World, _ string) (int, error) {
	const rounds = 2000
	if err := w.Barrier(ctx); err != nil {
		return 1, err
	}
	begin := time.Now()
	for range rounds {
		if err := w.Barrier(ctx); err != nil {
			return 1, err
		}
	}
	each := time.Since(begin) / rounds
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return 1, err
	}
	begin = time.Now()
	if w.Rank() == 0 {
		time.Sleep(2 * time.Second)
	}
	if err := w.Barrier(ctx); err != nil {
		return 1, err
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		return 1, err
	}
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	fmt.Printf("rank %d of %d: a barrier takes %v; waiting %v took %v of CPU\n", w.Rank(), w.Size(), each, time.Since(begin).Round(time.Millisecond), cpu)
	return 0, nil
}
