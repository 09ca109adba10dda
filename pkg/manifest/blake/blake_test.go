package blake

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// sizes are those at which something changes: chunks, 16 chunks, groups, powers of two of all of them, and one around each.
func sizes() []int {
	var s []int
	for _, at := range []int{0, 64, 1024, 2048, 3 * 1024, 16 << 10, 17 << 10, 32 << 10, 48 << 10, 64 << 10, 100_000, 1 << 20, 2 << 20, 3 << 20, 4 << 20, 5 << 20, 7 << 20} {
		for d := -1; d <= 1; d++ {
			if at+d >= 0 {
				s = append(s, at+d)
			}
		}
	}
	return append(s, 1<<20+1024, 1<<20+1025, 1<<20+16<<10, 3<<20+777, 17<<20+13, 33<<20)
}

func random(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(b)
	return b
}

// eachKind runs a test with and without the assembly.
func eachKind(t *testing.T, test func(t *testing.T)) {
	t.Run(fmt.Sprintf("wide=%t", wide()), test)
	if wide() {
		narrow(t)
		t.Run("wide=false", test)
	}
}

func TestSumEqualsZeebo(t *testing.T) {
	eachKind(t, func(t *testing.T) {
		for _, n := range sizes() {
			p := random(n, 1)
			want := blake3.Sum256(p)
			if got := Sum(p); got != want {
				t.Errorf("%d bytes: expected %x, found %x", n, want, got)
			}
			if int64(n) <= GroupSize {
				continue
			}
			cvs := make([]CV, Groups(int64(n)))
			for i := range cvs {
				cvs[i] = Group(p[i*GroupSize:min(n, (i+1)*GroupSize)], int64(i))
			}
			if got := Digest(cvs); got != want {
				t.Errorf("%d bytes from groups: expected %x, found %x", n, want, got)
			}
		}
	})
}

func TestWritesInAnyPieces(t *testing.T) {
	all := random(5<<20, 2)
	eachKind(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := all[:rapid.OneOf(rapid.IntRange(0, 70<<10), rapid.IntRange(1<<20-2000, 1<<20+2000), rapid.IntRange(0, len(all))).Draw(t, "size")]
			want := blake3.Sum256(p)
			var h Hasher
			size := len(p)
			for rest := p; len(rest) > 0; {
				n := min(len(rest), rapid.OneOf(rapid.IntRange(1, 3000), rapid.IntRange(1, 1<<20), rapid.Just(16<<10)).Draw(t, "piece"))
				if m, err := h.Write(rest[:n]); m != n || err != nil {
					t.Fatalf("expected %d bytes written, found %d, %v", n, m, err)
				}
				rest = rest[n:]
			}
			if got := h.Sum(); got != want {
				t.Fatalf("%d bytes: expected %x, found %x", size, want, got)
			}
			groups := h.Groups()
			if size <= GroupSize {
				if len(groups) != 0 {
					t.Fatalf("%d bytes: expected no groups, found %d", size, len(groups))
				}
				return
			}
			if int64(len(groups)) != Groups(int64(size)) {
				t.Fatalf("%d bytes: expected %d groups, found %d", size, Groups(int64(size)), len(groups))
			}
			i := rapid.IntRange(0, len(groups)-1).Draw(t, "group")
			if got := Group(p[i*GroupSize:min(size, (i+1)*GroupSize)], int64(i)); got != groups[i] {
				t.Fatalf("group %d: expected %x, found %x", i, got, groups[i])
			}
		})
	})
}

// A hasher keeps nothing of the file before.
func TestReset(t *testing.T) {
	var h Hasher
	for _, n := range []int{3<<20 + 5, 0, 1 << 20, 1023, 2 << 20, 16 << 10} {
		h.Reset()
		p := random(n, 3)
		_, _ = h.Write(p)
		if got, want := h.Sum(), blake3.Sum256(p); got != want {
			t.Errorf("%d bytes: expected %x, found %x", n, want, got)
		}
	}
}

// Numbers of chunks beyond 32 bits: the two halves of the counter.
func TestLateGroups(t *testing.T) {
	if !wide() {
		t.Skip("nothing to compare with: there is no assembly for this machine")
	}
	p := random(GroupSize, 4)
	for _, index := range []int64{0, 1, 1<<22 - 1, 1 << 22, 1<<22 + 1, 1 << 32, 1<<43 - 1} {
		asm := Group(p, index)
		func() {
			t.Run(fmt.Sprint(index), func(t *testing.T) {
				narrow(t)
				if got := Group(p, index); got != asm {
					t.Errorf("group %d: guts has %x, the assembly %x", index, got, asm)
				}
			})
		}()
	}
}

func TestNoAllocations(t *testing.T) {
	p := random(300<<10, 5)
	var h Hasher
	if n := testing.AllocsPerRun(20, func() {
		h.Reset()
		_, _ = h.Write(p)
		_ = h.Sum()
	}); n != 0 {
		t.Errorf("expected no allocation, found %v", n)
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("a"), uint32(1), uint16(1))
	f.Add([]byte("xyz"), uint32(1<<20+1), uint16(777))
	f.Fuzz(func(t *testing.T, seed []byte, size uint32, piece uint16) {
		if len(seed) == 0 || piece == 0 {
			return
		}
		p := make([]byte, size%(3<<20))
		for i := range p {
			p[i] = seed[i%len(seed)] + byte(i>>10)
		}
		var h Hasher
		for rest := p; len(rest) > 0; {
			n := min(len(rest), int(piece)*64)
			_, _ = h.Write(rest[:n])
			rest = rest[n:]
		}
		if got, want := h.Sum(), blake3.Sum256(p); got != want {
			t.Errorf("%d bytes: expected %x, found %x", len(p), want, got)
		}
	})
}

// TestBlocks: inputs of one block side by side have the digests that they have alone, however many there are.
func TestBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T) {
		p := random(Lanes*BlockSize, 12)
		for n := range Lanes + 1 {
			var in [Lanes][BlockSize]byte
			for i := range in {
				copy(in[i][:], p[i*BlockSize:])
			}
			var got [Lanes][32]byte
			for range 3 { // as links of a chain
				Blocks(&got, &in, n)
				for i := range n {
					if want := blake3.Sum256(in[i][:]); got[i] != want {
						t.Fatalf("input %d of %d: expected %x, found %x", i, n, want, got[i])
					}
					copy(in[i][:], got[i][:])
				}
			}
		}
	})
}

func BenchmarkSum(b *testing.B) {
	for _, size := range []int{4 << 10, 100_000, 1 << 20} {
		p := random(size, 6)
		b.Run(fmt.Sprintf("%d/ours", size), func(b *testing.B) {
			var h Hasher
			b.SetBytes(int64(size))
			for b.Loop() {
				h.Reset()
				_, _ = h.Write(p)
				_ = h.Sum()
			}
		})
		b.Run(fmt.Sprintf("%d/zeebo", size), func(b *testing.B) {
			h := blake3.New()
			b.SetBytes(int64(size))
			for b.Loop() {
				h.Reset()
				_, _ = h.Write(p)
				_ = h.Sum(nil)
			}
		})
	}
}
