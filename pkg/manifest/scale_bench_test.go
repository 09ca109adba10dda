package manifest

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/store"
)

// scaleSizes are the numbers of entries that are compared: the rate at the last one with that at the first one.
var scaleSizes = [...]int{100_000, 1_000_000, 10_000_000}

// madeUp is entry i of n, in the order of paths: each with a digest of its own, which nothing can compress. A variant differs from another
// one in one file of a thousand: it is changed, removed, added, or renamed.
func madeUp(i, n, variant int) Entry {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], uint64(i))
	path := make([]byte, 0, 64)
	path = fmt.Appendf(path, "train/%04d/img_%08d_of_%08d.npz", i/10_000, i, n)
	if i%1000 == 999 {
		switch i / 1000 % 4 {
		case 0:
			b[8] = byte(variant)
		case 1:
			path = append(path, "."+strconv.Itoa(variant)...) // the same bytes
		default:
			path = append(path, "."+strconv.Itoa(variant)...)
			b[8] = byte(variant)
		}
	}
	return Entry{string(path), 1, blake3.Sum256(b[:])}
}

func writeMadeUp(path string, n, variant int) error {
	f, err := Create(path, Meta{})
	if err != nil {
		return err
	}
	defer f.Abort()
	for i := range n {
		if err := f.Add(madeUp(i, n, variant)); err != nil {
			return err
		}
	}
	_, err = f.Commit()
	return err
}

// listing is a store that lists the files of a manifest and has no bytes of them.
type listing struct{ n, variant int }

func (listing) Open(name string) (store.File, error) { return nil, fmt.Errorf("%s was opened", name) }
func (l listing) List(_ context.Context, yield func(store.Info) error) error {
	for i := range l.n {
		e := madeUp(i, l.n, l.variant)
		if err := yield(store.Info{Path: e.Path, Size: e.Size}); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkScale writes, verifies (presence and size), compares and proves made-up manifests of 10^5, 10^6 and 10^7 entries. For each size it
// reports entries per second, and at the end, as the ratio of the largest size to the smallest, measured before and after it in the same
// run, how far the rate falls: by the clock and, since other work on the machine changes that, by the time of all cores. peak-MiB is the
// most memory that the process had (resident), looked at every few milliseconds.
func BenchmarkScale(b *testing.B) {
	dir := b.TempDir()
	name := func(n, variant int) string { return filepath.Join(dir, fmt.Sprintf("%d-%d.json", n, variant)) }
	open := func(n, variant int) *Manifest {
		m, err := Open(name(n, variant))
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	ctx := context.Background()
	scale := func(operation string, do func(n int) error) {
		b.Run(operation, func(b *testing.B) {
			var small, large work
			stop := watchMemory()
			for b.Loop() {
				for _, n := range scaleSizes {
					var w work
					for passes := 0; passes == 0 || w.wall < time.Second; passes++ {
						start := now()
						if err := do(n); err != nil {
							b.Fatal(err)
						}
						w.add(start, n)
					}
					b.ReportMetric(w.rate(), fmt.Sprintf("entries/s-%d", n))
					switch n {
					case scaleSizes[0]:
						small.entries, small.wall, small.cpu = small.entries+w.entries, small.wall+w.wall, small.cpu+w.cpu
					case scaleSizes[len(scaleSizes)-1]:
						large.entries, large.wall, large.cpu = large.entries+w.entries, large.wall+w.wall, large.cpu+w.cpu
					}
				}
				for start := now(); time.Since(start.at) < time.Second; { // the small size again, after the large one
					again := now()
					if err := do(scaleSizes[0]); err != nil {
						b.Fatal(err)
					}
					small.add(again, scaleSizes[0])
				}
			}
			b.ReportMetric(large.rate()/small.rate(), "ratio")
			b.ReportMetric((float64(large.entries)/large.cpu.Seconds())/(float64(small.entries)/small.cpu.Seconds()), "cpu-ratio")
			b.ReportMetric(float64(large.cpu.Nanoseconds())/float64(large.entries), "cpu-ns/entry")
			b.ReportMetric(float64(stop())/(1<<20), "peak-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
	scale("write", func(n int) error { return writeMadeUp(name(n, 0), n, 0) })
	for _, n := range scaleSizes {
		for variant := range 2 {
			if _, err := os.Stat(name(n, variant)); err != nil { // also where only some of the operations are run
				if err := writeMadeUp(name(n, variant), n, variant); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
			for _, n := range scaleSizes {
				st, err := os.Stat(EntriesPath(name(n, 0)))
				if err != nil {
					b.Fatal(err)
				}
				m := open(n, 0)
				b.ReportMetric(float64(st.Size())/float64(n), fmt.Sprintf("bytes/entry-%d", n))
				b.ReportMetric(float64(len(m.HeaderBytes()))/float64(len(m.Header().Frames)), fmt.Sprintf("header-bytes/frame-%d", n))
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(0, "ns/op")
	})
	scale("verify", func(n int) error {
		m := open(n, 0)
		defer m.Close()
		r, err := Verify(ctx, m, listing{n, 0}, VerifyOptions{MetadataOnly: true})
		if err == nil && r.Skipped != int64(n) {
			err = fmt.Errorf("%d of %d entries compared", r.Skipped, n)
		}
		return err
	})
	scale("diff", func(n int) error {
		first, second := open(n, 0), open(n, 1)
		defer first.Close()
		defer second.Close()
		s, err := Diff(ctx, first, second, func(Change) error { return nil })
		changed, renamed := int64((n/1000+3)/4), int64((n/1000+2)/4)
		if err == nil && (s.Changed.Files != changed || s.Renamed.Files != renamed || s.Removed.Files != int64(n/1000)-changed-renamed) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	scale("prove", func(n int) error {
		m := open(n, 0)
		defer m.Close()
		e := madeUp(n*2/3, n, 0)
		p, err := m.ProvePath(ctx, e.Path)
		if err != nil {
			return err
		}
		if got, err := p.Verify(m.Root()); err != nil || got != e {
			return fmt.Errorf("%+v, %w", got, err)
		}
		return nil
	})
}

// moment is a point in time, by the clock and by the time that this process had on all cores.
type moment struct {
	at  time.Time
	cpu time.Duration
}

func now() moment {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r) // it fails only for a wrong argument
	return moment{time.Now(), time.Duration(r.Utime.Nano() + r.Stime.Nano())}
}

// work is what a number of entries cost.
type work struct {
	entries   int
	wall, cpu time.Duration
}

func (w *work) add(start moment, entries int) {
	end := now()
	w.entries += entries
	w.wall += end.at.Sub(start.at)
	w.cpu += end.cpu - start.cpu
}

func (w *work) rate() float64 { return float64(w.entries) / w.wall.Seconds() }

// watchMemory looks at the resident memory of the process until the function is called that it returns, which returns the largest number
// of bytes seen.
func watchMemory() func() int64 {
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, resident())
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-peak
	}
}

func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
