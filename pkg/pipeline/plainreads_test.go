package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
)

// slowFiles are equal files on a store whose servers deliver so many bytes a second each, after a latency.
type slowFiles struct {
	n       int
	size    int64
	latency time.Duration
	rate    float64
	servers chan struct{}
	fail    error

	mu      sync.Mutex
	evicted map[string]int
	opened  map[string]int
}

func (s *slowFiles) Files() int            { return s.n }
func (s *slowFiles) Path(i int) string     { return fmt.Sprint("f", i) }
func (s *slowFiles) Size(int) int64        { return s.size }
func (s *slowFiles) SampleBytes(int) int64 { return s.size }

func (s *slowFiles) Open(name string) (store.File, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[name]++
	return &slowFile{s}, nil
}

func (s *slowFiles) evict(name string) error {
	s.mu.Lock()
	s.evicted[name]++
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	return nil
}

type slowFile struct{ s *slowFiles }

func (f *slowFile) ReadAt(p []byte, off int64) (int, error) {
	n := min(int64(len(p)), f.s.size-off)
	if n <= 0 {
		return 0, io.EOF
	}
	time.Sleep(f.s.latency)
	f.s.servers <- struct{}{}
	time.Sleep(time.Duration(float64(n) / f.s.rate * 1e9))
	<-f.s.servers
	return int(n), nil
}
func (f *slowFile) Info() (store.Info, error) { return store.Info{}, nil }
func (f *slowFile) Close() error              { return nil }

// TestPlainReads measures stores of a known speed, in virtual time: those that more readers get more of, and those that give all they have.
func TestPlainReads(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name    string
		files   int
		size    int64
		latency time.Duration
		rate    float64
		servers int
		readers int
		want    []float64 // bytes/s
		atOnce  []int
	}{
		{"one server, whoever asks", 1000, mb, 0, 100 * mb, 1, 4, []float64{100 * mb, 100 * mb}, []int{4, 16}},
		{"a server for each", 1000, mb, 0, 10 * mb, 1000, 4, []float64{40 * mb, 160 * mb}, []int{4, 16}},
		{"latency", 1000, mb, 90 * time.Millisecond, 100 * mb, 1000, 4, []float64{40 * mb, 160 * mb}, []int{4, 16}},
		{"large files that no reader finishes", 100, 100 * mb, 0, 10 * mb, 1000, 2, []float64{20 * mb, 80 * mb}, []int{2, 8}},
		{"few files, which are read to the end", 8, mb, 0, 10 * mb, 1000, 2, []float64{20 * mb, 80 * mb}, []int{2, 8}},
		{"one file", 1, mb, 0, 10 * mb, 1000, 8, []float64{10 * mb}, []int{1}},
		{"more readers than are asked for at once", 100000, 4096, time.Millisecond, math.Inf(1), 1000, 500, []float64{256 * 4096 * 1000}, []int{256}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowFiles{n: c.files, size: c.size, latency: c.latency, rate: c.rate, servers: make(chan struct{}, c.servers), evicted: map[string]int{}, opened: map[string]int{}}
				p := plain{open: s.Open, evict: s.evict, files: s}
				found, err := p.measure(t.Context(), c.readers)
				if err != nil {
					t.Fatal(err)
				}
				if len(found.Rates) != len(c.want) || !found.Cold {
					t.Fatalf("expected %d measurements of dropped files, found %+v", len(c.want), found)
				}
				for i, r := range found.Rates {
					if r.Readers != c.atOnce[i] || math.Abs(r.BytesPerSecond/c.want[i]-1) > 0.11 {
						t.Errorf("expected %.0f MB/s with %d at once, found %.1f with %d", c.want[i]/mb, c.atOnce[i], r.BytesPerSecond/mb, r.Readers)
					}
				}
				for name := range s.opened {
					if s.evicted[name] == 0 {
						t.Fatalf("%s was read from the page cache", name)
					}
				}
			})
		})
	}
}

// TestPlainReadsEnd with an error, or when they are told to.
func TestPlainReadsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowFiles{n: 10, size: 100, rate: 1, servers: make(chan struct{}, 1), evicted: map[string]int{}, opened: map[string]int{}}
		s.fail = errors.New("no such luck")
		p := plain{open: s.Open, files: s}
		if _, err := p.measure(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "no such luck") {
			t.Errorf("found %v", err)
		}
		s.fail = nil
		s.size = 0
		if _, err := p.measure(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "nothing could be read") {
			t.Errorf("empty files: found %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		s.size = 100
		if _, err := p.measure(ctx, 2); err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("found %v", err)
		}
	})
}
