package stream

import (
	"bytes"
	"io"
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Any slice read alone equals that slice of the whole, through Fill and through ReadAt.
func TestSliceOfWhole(t *testing.T) {
	s := New("benchpin/test", 1, 99)
	rapid.Check(t, func(t *rapid.T) {
		index := rapid.Uint64().Draw(t, "index")
		base := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 1<<62), rapid.Uint64Range(1<<63-5000, 1<<63-4096),
			rapid.Uint64Range(math.MaxUint64-5000, math.MaxUint64)).Draw(t, "base")
		whole := make([]byte, rapid.IntRange(0, 4096).Draw(t, "size"))
		s.Fill(whole, index, base)
		a := rapid.IntRange(0, len(whole)).Draw(t, "a")
		b := rapid.IntRange(a, len(whole)).Draw(t, "b")
		part := bytes.Repeat([]byte{0xa5}, b-a+2) // dirty, with a guard on both sides
		s.Fill(part[1:len(part)-1], index, base+uint64(a))
		if !bytes.Equal(part[1:len(part)-1], whole[a:b]) {
			t.Fatalf("bytes [%d,%d) of stream %d alone differ from the whole at %d", a, b, index, base)
		}
		if part[0] != 0xa5 || part[len(part)-1] != 0xa5 {
			t.Fatal("Fill wrote outside its slice")
		}
		if base < 1<<62 {
			if _, err := io.ReadFull(io.NewSectionReader(s.At(index), int64(base)+int64(a), int64(b-a)), part[1:len(part)-1]); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(part[1:len(part)-1], whole[a:b]) {
				t.Fatalf("ReadAt of [%d,%d) differs from Fill", a, b)
			}
		}
	})
}

func TestReadAtNegative(t *testing.T) {
	if n, err := New("x", 1, 1).At(3).ReadAt(make([]byte, 4), -1); err == nil || n != 0 {
		t.Fatalf("ReadAt(-1) = %d, %v; want an error", n, err)
	}
}

// Every part of a family's name, the index and the domain's length prefix matter.
func TestFamiliesDiffer(t *testing.T) {
	names := []struct {
		domain  string
		version uint32
		seed    uint64
	}{{"a", 1, 1}, {"a", 1, 2}, {"a", 2, 1}, {"b", 1, 1}, {"", 1, 1}, {"a\x00", 1, 1}, {"a\x00\x00\x00\x01", 1, 1}, {"a", 1, 1 << 32}}
	seen := make(map[string]int)
	for i, n := range names {
		s := New(n.domain, n.version, n.seed)
		for index := range uint64(3) {
			p := make([]byte, 16)
			s.Fill(p, index, 0)
			for _, key := range []string{string(p)} {
				if j, ok := seen[key]; ok {
					t.Errorf("families %v and %v share a block", names[i], names[j])
				}
				seen[key] = i
			}
		}
	}
}

// One family used by many goroutines at once, in any order, gives what one goroutine gets.
func TestConcurrent(t *testing.T) {
	s := New("benchpin/test", 1, 5)
	const n = 64
	want := make([][]byte, n)
	normals, gammas := make([]float64, n), make([]float64, n)
	for i := range n {
		want[i] = make([]byte, 999)
		s.Fill(want[i], uint64(i), uint64(i*7))
		normals[i], gammas[i] = s.Normal(uint64(i), 3), s.Gamma(uint64(i), 4, 0.7)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			p := make([]byte, 999)
			for k := range 4 * n {
				i := (k*(2*g+1) + g) % n
				s.Fill(p, uint64(i), uint64(i*7))
				if !bytes.Equal(p, want[i]) || s.Normal(uint64(i), 3) != normals[i] || s.Gamma(uint64(i), 4, 0.7) != gammas[i] {
					t.Errorf("stream %d differs when used concurrently", i)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestDrawsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget memory at random, so that allocations say nothing")
	}
	s := New("benchpin/test", 1, 5)
	i := uint64(0)
	got := testing.AllocsPerRun(2000, func() {
		i++
		s.Uint64(1, i)
		s.Uniform(1, i, 1000)
		s.Normal(1, i)
		s.Gamma(1, i, 3)
		s.Poisson(1, i, 50)
	})
	if got >= 1 { // a garbage collection in between may empty the pool once
		t.Errorf("five draws allocate %.1f times", got)
	}
}

func TestBadParameters(t *testing.T) {
	s := New("benchpin/test", 1, 5)
	for _, a := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if x := s.Gamma(1, 1, a); !math.IsNaN(x) {
			t.Errorf("Gamma(shape %v) = %v, want NaN", a, x)
		}
	}
	for _, l := range []float64{-1, math.NaN(), math.Inf(1), 2 * MaxPoisson} {
		if x := s.Poisson(1, 1, l); !math.IsNaN(x) {
			t.Errorf("Poisson(%v) = %v, want NaN", l, x)
		}
	}
	if x := s.Poisson(1, 1, 0); x != 0 {
		t.Errorf("Poisson(0) = %v", x)
	}
	if x := s.Poisson(1, 1, MaxPoisson); math.Abs(x-MaxPoisson) > 10*math.Sqrt(MaxPoisson) {
		t.Errorf("Poisson(%g) = %g", MaxPoisson, x)
	}
	if x := s.Gamma(1, 1, math.SmallestNonzeroFloat64); x != 0 {
		t.Errorf("Gamma(tiny) = %v, want 0 by underflow", x)
	}
}

func BenchmarkFill(b *testing.B) {
	s, p := New("benchpin/test", 1, 5), make([]byte, 1<<20)
	b.SetBytes(int64(len(p)))
	for i := 0; b.Loop(); i++ {
		s.Fill(p, 1, uint64(i)<<20)
	}
}

// BenchmarkCopy is the reference for BenchmarkFill: moving the same bytes.
func BenchmarkCopy(b *testing.B) {
	p, q := make([]byte, 1<<20), make([]byte, 1<<20)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		copy(p, q)
	}
}

func BenchmarkNormal(b *testing.B) {
	s := New("benchpin/test", 1, 5)
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		s.Normal(1, i)
	}
}
