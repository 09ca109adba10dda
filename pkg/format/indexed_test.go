package format

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/stream"
)

// TestIndexedSizes has DLIO's own files (its runs gen_idx and gen_mmapidx_1s).
func TestIndexedSizes(t *testing.T) {
	for _, c := range []struct {
		f           Format
		samples     int
		data, index int64
	}{{newIndexed(), 100, 10240000, 800}, {newMappedIndexed(), 1, 102400, 8}} {
		l := Layout{Dims: []int{320, 320}, Samples: c.samples, DType: dtype(t, "uint8")}
		if got, err := c.f.Size(l); err != nil || got != c.data {
			t.Errorf("%s: %d bytes, %v; want %d", c.f.Name(), got, err, c.data)
		}
		for i, suffix := range []string{".off.idx", ".sz.idx"} {
			companion := c.f.(Companioned).Companions()[i]
			if got, err := companion.Size(l); err != nil || got != c.index {
				t.Errorf("%s%s: %d bytes, %v; want %d", c.f.Name(), suffix, got, err, c.index)
			}
			if got, want := companion.Path("train/img_0_of_8."+c.f.Name()), "train/img_0_of_8."+c.f.Name()+suffix; got != want {
				t.Errorf("index %s, want %s", got, want)
			}
		}
	}
}

// TestIndexedReadsTheSample checks the very bytes that are asked for: the sample's, or those of the pages around it.
func TestIndexedReadsTheSample(t *testing.T) {
	const n, samples = 5000, 7
	l := Layout{Dims: []int{n}, Samples: samples, DType: dtype(t, "uint8")}
	for _, f := range []Format{newIndexed(), newMappedIndexed()} {
		p := made(t, f, l, 5, 0)
		want := make([]byte, n)
		for k := range samples {
			l.DType.Fill(want, stream.New("benchpin/test", 1, 5), 3, int64(k)*n)
			off := binary.LittleEndian.Uint64(p.idx[0][8*k:])
			if !bytes.Equal(p.data[off:][:n], want) || binary.LittleEndian.Uint64(p.idx[1][8*k:]) != n {
				t.Fatalf("%s: sample %d is not where the index says", f.Name(), k)
			}
			got, file, err := p.read(t, k, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			start, end := int64(k)*n, int64(k+1)*n
			if f.Name() == "mmap_indexed_binary" {
				start, end = start/4096*4096, min((end+4095)/4096*4096, p.size)
			}
			if len(file.pieces) != 2 || file.pieces[0] != start || file.pieces[1] != end-start || got.Asked != 16+end-start {
				t.Errorf("%s: sample %d: %v, %+v; want %d bytes at %d", f.Name(), k, file.pieces, got, end-start, start)
			}
		}
		if _, err := f.ReadSample(bytes.NewReader(p.data), p.size, 0, nil); err == nil || !strings.Contains(err.Error(), ".off.idx") {
			t.Errorf("%s without its index: %v", f.Name(), err)
		}
	}
}

func FuzzReadIndexed(f *testing.F) {
	plain, mapped := newIndexed(), newMappedIndexed()
	p := made(f, plain, Layout{Dims: []int{3, 700}, Samples: 5, DType: dtype(f, "uint8")}, 1, 0)
	f.Add(p.data, p.idx[0], p.idx[1], 4)
	f.Add([]byte{1, 2}, bytes.Repeat([]byte{0xff}, 16), bytes.Repeat([]byte{0xff}, 16), 1)
	f.Fuzz(func(t *testing.T, data, off, sz []byte, k int) {
		var logical [2]int64
		var fails [2]bool
		for i, f := range []Format{plain, mapped} {
			p := pair{f: f, data: data, idx: [][]byte{off, sz}, size: int64(len(data))}
			small, _, err1 := p.read(t, k, MinBuffer)
			large, _, err2 := p.read(t, k, 1<<16)
			if small != large || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: buffer 4 KiB: %+v, %v\nbuffer 64 KiB: %+v, %v", f.Name(), small, err1, large, err2)
			}
			logical[i], fails[i] = small.Logical, err1 != nil
		}
		if logical[0] != logical[1] || fails[0] != fails[1] {
			t.Fatalf("indexed_binary and mmap_indexed_binary disagree: %v, %v", logical, fails)
		}
	})
}
