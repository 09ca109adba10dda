package manifest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pathOf is the audit path of RFC 6962 section 2.1.1 as it stands there: recursive, over all leaves at once.
func pathOf(m int, leaves [][]byte) [][32]byte {
	n := len(leaves)
	if n == 1 {
		return nil
	}
	k := 1
	for k*2 < n {
		k *= 2
	}
	if m < k {
		return append(pathOf(m, leaves[:k]), rootOf(leaves[k:]))
	}
	return append(pathOf(m-k, leaves[k:]), rootOf(leaves[:k]))
}

// TestProve compares every proof of every manifest of up to 70 entries with the definition, whatever the frames.
func TestProve(t *testing.T) {
	for n := 1; n <= 70; n++ {
		es := someEntries(n)
		m := mustOpen(t, write(t, int64(1+n/3), Meta{}, es...))
		var leaves [][]byte
		all := make([]int64, n)
		for i, e := range es {
			leaves = append(leaves, e.AppendLine(nil))
			all[i] = int64(i)
		}
		together, err := m.ProveAll(context.Background(), all)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range es {
			p, err := m.ProvePath(context.Background(), e.Path)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []Proof{p, together[i]} {
				if want := pathOf(i, leaves); p.Index != int64(i) || p.Count != int64(n) || !slices.Equal(p.Path, want) {
					t.Fatalf("entry %d of %d: %+v, expected path %x", i, n, p, want)
				}
				if got, err := p.Verify(m.Root()); err != nil || got != e {
					t.Fatalf("entry %d of %d: %v, %v", i, n, got, err)
				}
			}
		}
	}
}

// TestProofForged: nothing about a proof can be another than it is, but for numbers that leave the way to the root the same.
func TestProofForged(t *testing.T) {
	const n = 13
	es := someEntries(n)
	m := mustOpen(t, write(t, 4, Meta{}, es...))
	root := m.Root()
	for i := range es {
		p, err := m.Prove(context.Background(), int64(i))
		if err != nil {
			t.Fatal(err)
		}
		refused := func(what string, forge func(p *Proof, root *[32]byte)) {
			t.Helper()
			q, r := p, root
			q.Line, q.Path = bytes.Clone(p.Line), slices.Clone(p.Path)
			forge(&q, &r)
			if _, err := q.Verify(r); !errors.Is(err, ErrProof) {
				t.Errorf("entry %d, %s: %v, expected ErrProof", i, what, err)
			}
		}
		refused("root", func(_ *Proof, root *[32]byte) { root[31] ^= 1 })
		refused("line", func(p *Proof, _ *[32]byte) { p.Line[12] ^= 1 })
		refused("empty line", func(p *Proof, _ *[32]byte) { p.Line = nil })
		refused("negative number", func(p *Proof, _ *[32]byte) { p.Index = -1 })
		refused("number past the end", func(p *Proof, _ *[32]byte) { p.Index = p.Count })
		refused("count of none", func(p *Proof, _ *[32]byte) { p.Index, p.Count = 0, 0 })
		refused("count of more than there can be", func(p *Proof, _ *[32]byte) { p.Count = MaxNumber + 1 })
		refused("longer path", func(p *Proof, _ *[32]byte) { p.Path = append(p.Path, root) })
		refused("endless path", func(p *Proof, _ *[32]byte) { p.Path = make([][32]byte, MaxProofPath+1) })
		refused("shorter path", func(p *Proof, _ *[32]byte) { p.Path = p.Path[:len(p.Path)-1] })
		refused("no path", func(p *Proof, _ *[32]byte) { p.Path = nil })
		refused("a node for a leaf", func(p *Proof, _ *[32]byte) {
			h := LeafHash(p.Line)
			p.Line = append(h[:], p.Path[0][:]...)
			p.Path, p.Index, p.Count = p.Path[1:], p.Index/2, (p.Count+1)/2
		})
		for k := range p.Path {
			refused(fmt.Sprint("hash ", k), func(p *Proof, _ *[32]byte) { p.Path[k][0] ^= 0x80 })
		}
		for other := range int64(n) {
			if other != int64(i) {
				refused(fmt.Sprint("number ", other), func(p *Proof, _ *[32]byte) { p.Index = other })
			}
		}
	}
}

// TestProofKnownAnswer holds the form of proofs: hashes made with b3sum over bytes put together by hand (docs/manifest.md).
func TestProofKnownAnswer(t *testing.T) {
	leaf := func(s string) [32]byte {
		var d [32]byte
		if _, err := hex.Decode(d[:], []byte(s)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	line := `{"path":"a/b","size":6,"digest":"blake3:8e4c7c1b99dbfd50e7a95185fead5ee1448fa904a2fdd778eaf5f2dbfd629a99"}`
	p := Proof{Index: 1, Count: 3, Line: []byte(line), Path: [][32]byte{
		leaf("51a342f422e645d9d1ec0111678796f1c3f0765121ea20d0e269323f896303b0"),
		leaf("8768a57c81d1b0e9e0fb800bd6553eacf9ff0f4bbfa6762e5c31e4584902a191"),
	}}
	e, err := p.Verify(leaf("a1f1acff4a271f27bc6c76e274f764f7cee098f931e71d3b49e991e260d7cfbd"))
	if err != nil || e.Path != "a/b" || e.Size != 6 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestProofLine: a proof about a line that is no entry is refused, though the tree has it.
func TestProofLine(t *testing.T) {
	var tree Tree
	tree.Add([]byte("no entry"))
	if _, err := (Proof{Count: 1, Line: []byte("no entry")}).Verify(tree.Root()); !errors.Is(err, ErrSyntax) {
		t.Errorf("%v, expected class syntax", err)
	}
}

func TestProveProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(r, "n")
		m := mustOpen(t, write(t, int64(rapid.IntRange(1, 2000).Draw(r, "lines")), Meta{}, someEntries(n)...))
		indices := rapid.SliceOfN(rapid.Int64Range(0, int64(n-1)), 0, 20).Draw(r, "indices")
		ps, err := m.ProveAll(context.Background(), indices)
		if err != nil || len(ps) != len(indices) {
			r.Fatalf("%d proofs, %v", len(ps), err)
		}
		want := someEntries(n)
		for k, p := range ps {
			if e, err := p.Verify(m.Root()); err != nil || p.Index != indices[k] || e != want[indices[k]] {
				r.Fatalf("entry %d of %d: %+v, %v", indices[k], n, e, err)
			}
		}
	})
}

func TestProveWhatIsNotThere(t *testing.T) {
	m := mustOpen(t, write(t, 3, Meta{}, someEntries(10)...))
	empty := mustOpen(t, write(t, 3, Meta{}))
	for _, path := range []string{"", "a", "train/img_000004_of_10.npz.old", "train/img_000004_of_10.np", "z"} {
		for _, m := range []*Manifest{m, empty} {
			if p, err := m.ProvePath(context.Background(), path); !errors.Is(err, ErrNoEntry) || (path != "" && !strings.Contains(err.Error(), path)) {
				t.Errorf("%q: %+v, %v", path, p, err)
			}
		}
	}
	for _, i := range []int64{-1, 10} {
		if p, err := m.Prove(context.Background(), i); !errors.Is(err, ErrNoEntry) {
			t.Errorf("%d: %+v, %v", i, p, err)
		}
	}
	if i, e, err := m.Find(context.Background(), "train/img_000004_of_10.npz"); err != nil || i != 4 || e != someEntries(10)[4] {
		t.Errorf("%d, %+v, %v", i, e, err)
	}
}

// TestProveDamaged: a manifest that is damaged anywhere proves nothing, even about entries in other frames.
func TestProveDamaged(t *testing.T) {
	p := write(t, 3, Meta{}, someEntries(10)...)
	p.entries[len(p.entries)-5] ^= 1
	if _, err := mustOpen(t, p).Prove(context.Background(), 0); !errors.Is(err, ErrFrame) {
		t.Errorf("%v, expected class frame", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := mustOpen(t, write(t, 3, Meta{}, someEntries(10)...)).Prove(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected context.Canceled", err)
	}
}

// FuzzProof: whatever is accepted for a known tree is one of its leaves.
func FuzzProof(f *testing.F) {
	es := someEntries(7)
	m := mustOpen(f, write(f, 2, Meta{}, es...))
	for i := range es {
		p, err := m.Prove(context.Background(), int64(i))
		if err != nil {
			f.Fatal(err)
		}
		var path []byte
		for _, h := range p.Path {
			path = append(path, h[:]...)
		}
		f.Add(p.Index, p.Count, p.Line, path)
	}
	root := m.Root()
	f.Fuzz(func(t *testing.T, index, count int64, line, hashes []byte) {
		var path [][32]byte
		for chunk := range slices.Chunk(hashes, 32) {
			if len(chunk) == 32 {
				path = append(path, [32]byte(chunk))
			}
		}
		if e, err := (Proof{index, count, line, path}).Verify(root); err == nil && !slices.Contains(es, e) {
			t.Fatalf("%+v is proven, and no entry", e)
		}
	})
}
