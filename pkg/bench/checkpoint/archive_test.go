package checkpoint

import (
	"archive/zip"
	"bytes"
	"io"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// transformer makes the dictionaries of DLIO's transformer states: nested by layer, or flat.
type transformer struct{ hidden, vocabulary, ffn, kv, tensor, shards int64 }

func (m transformer) layer(l, layers int) []int64 {
	h := m.hidden
	switch l {
	case 0, layers + 1:
		return []int64{h * m.vocabulary / m.tensor / m.shards}
	case layers + 2:
		return []int64{h / m.shards}
	}
	return []int64{h / m.shards, h * (h + 2*m.kv) / m.tensor / m.shards, h * h / m.tensor / m.shards, h / m.shards,
		2 * h * m.ffn / m.tensor / m.shards, h * m.ffn / m.tensor / m.shards}
}

func flat(b *builder, t Type, sizes []int64) []entry {
	var items []entry
	for i, n := range sizes {
		items = append(items, b.typed(strconv.Itoa(i), t, n))
	}
	return items
}

func typed(t testing.TB, name string) Type {
	t.Helper()
	ty, err := ParseType(name)
	if err != nil {
		t.Fatal(err)
	}
	return ty
}

// TestSizesAreDLIOs compares with files that DLIO wrote through PyTorch 1.13: sizes of its checkpoint trees, to the
// byte.
func TestSizesAreDLIOs(t *testing.T) {
	half, single := typed(t, "bf16"), typed(t, "fp32")
	model := func(m transformer, layers int) ([]entry, []Tensor) {
		b := &builder{}
		var state []entry
		for l := range layers + 3 {
			state = append(state, b.nested(strconv.Itoa(l), func() []entry { return flat(b, half, m.layer(l, layers)) }))
		}
		return state, b.tensors
	}
	layer := func(m transformer, l int) ([]entry, []Tensor) {
		b := &builder{}
		return flat(b, half, m.layer(l, 8)), b.tensors
	}
	optimizer := func(m int64) ([]entry, []Tensor) {
		b := &builder{}
		return flat(b, single, []int64{m, 5 * 512, m, 5 * 512, m, 5 * 512}), b.tensors
	}
	one := func(n int64) ([]entry, []Tensor) {
		b := &builder{}
		return []entry{b.tensor("model_states", n)}, b.tensors
	}
	whole := transformer{512, 16032, 1792, 128, 1, 1}
	halved, sharded := whole, whole
	halved.tensor, sharded.shards = 2, 2
	const h, v, f, kv = 512, 16032, 1792, 128
	const parameters = v*h + 8*(h+h*(h+2*kv)+h*h+h+2*f*h+f*h) + h + v*h
	check := func(name string, want int64, state []entry, tensors []Tensor) {
		t.Helper()
		if got := newArchive(state, tensors).size; got != want {
			t.Errorf("%s: found %d bytes, expected DLIO's %d", name, got, want)
		}
	}
	pick := func(state []entry, tensors []Tensor) func(string, int64) {
		return func(name string, want int64) { t.Helper(); check(name, want, state, tensors) }
	}
	pick(one(10240))("unet3d, model_states-0.pt", 10987)
	pick(layer(whole, 10))("one tensor of 512 bf16", 1771)
	pick(layer(whole, 1))("six tensors of a layer", 6819479)
	pick(layer(whole, 0))("embedding", 16417515)
	pick(model(whole, 8))("ZeRO 0, model", 87390348)
	pick(model(halved, 8))("ZeRO 1, tensor parallel 2, model", 43710604)
	pick(model(sharded, 8))("ZeRO 3 over 2 ranks, model", 43701900)
	pick(optimizer(parameters))("ZeRO 0, optimizer", 524293783)
	pick(optimizer(parameters/2))("ZeRO 1 and 3 over 2 ranks, optimizer", 262163095)
}

// pattern is content that is easy to check and differs between tensors.
func pattern(dst []byte, tensor int, off int64) {
	for i := range dst {
		dst[i] = byte((off+int64(i))*7 + int64(tensor)*31)
	}
}

// drawState draws a dictionary of up to 40 tensors, nested or not.
func drawState(t *rapid.T) ([]entry, []Tensor) {
	b := &builder{}
	elements := rapid.Custom(func(t *rapid.T) int64 {
		return rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(65530, 65540)).Draw(t, "elements")
	})
	var state []entry
	for i, n := range rapid.SliceOfN(rapid.IntRange(0, 4), 1, 10).Draw(t, "widths") {
		if n == 0 {
			state = append(state, b.tensor(strconv.Itoa(i), elements.Draw(t, "size")))
			continue
		}
		state = append(state, b.nested(strconv.Itoa(i), func() []entry {
			var items []entry
			for j := range n {
				items = append(items, b.tensor(string(rune('a'+j)), elements.Draw(t, "size")))
			}
			return items
		}))
	}
	return state, b.tensors
}

func TestArchiveIsZipOfAlignedRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arc := newArchive(drawState(t))
		var whole []byte
		src := newSource(arc, pattern)
		for { // pieces of any size
			p := make([]byte, rapid.IntRange(1, 100000).Draw(t, "piece"))
			n := src.read(p)
			whole = append(whole, p[:n]...)
			if n < len(p) {
				break
			}
		}
		if int64(len(whole)) != arc.size {
			t.Fatalf("found %d bytes, expected %d", len(whole), arc.size)
		}
		again := make([]byte, len(whole)+1)
		if n := newSource(arc, pattern).read(again); n != len(whole) || !bytes.Equal(again[:n], whole) {
			t.Fatal("the bytes depend on the pieces in which they are produced")
		}
		done := newSource(arc, pattern)
		done.read(again)
		off := rapid.Int64Range(0, arc.size+1).Draw(t, "offset")
		if n := done.resume(off).read(again); !bytes.Equal(again[:n], whole[min(off, arc.size):]) {
			t.Fatalf("resumed at %d: other bytes", off)
		}
		z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		if len(z.File) != len(arc.tensors)+2 {
			t.Fatalf("found %d records, expected %d", len(z.File), len(arc.tensors)+2)
		}
		for i, zf := range z.File {
			start, err := zf.DataOffset()
			if err != nil {
				t.Fatal(err)
			}
			if start%64 != 0 || zf.Method != zip.Store || zf.Name != arc.records[i].name {
				t.Fatalf("record %s: data at %d, method %d", zf.Name, start, zf.Method)
			}
			f, err := zf.Open()
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(f) // checks the CRC against the directory and the descriptor
			if err != nil {
				t.Fatalf("record %s: %v", zf.Name, err)
			}
			want := arc.records[i].data
			if k := arc.records[i].tensor; k >= 0 {
				want = make([]byte, arc.tensors[k].Bytes())
				pattern(want, k, 0)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("record %s: other content", zf.Name)
			}
		}
	})
}

// sparse is a file of which only some extents are known; the rest reads as zeros.
type sparse map[int64][]byte

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for start, b := range s {
		if lo, hi := max(off, start), min(off+int64(len(p)), start+int64(len(b))); lo < hi {
			copy(p[lo-off:], b[lo-start:hi-start])
		}
	}
	return len(p), nil
}

// TestArchiveBeyond4GiB lets Go's zip reader find its way in files whose sizes and offsets need 64 bits, at the edges
// of the rule.
func TestArchiveBeyond4GiB(t *testing.T) {
	for _, first := range []int64{1<<32 - 1000, 1<<32 - 2, 1<<32 - 1, 1 << 32, 10 << 40} {
		b := &builder{}
		state := []entry{b.tensor("a", first), b.tensor("b", 5), b.tensor("c", first), b.tensor("d", 7)}
		arc := newArchive(state, b.tensors)
		file := sparse{arc.directory: arc.tail(make([]uint32, len(arc.records)))}
		for i := range arc.records {
			r := &arc.records[i]
			file[r.head] = r.header()
			file[r.start+r.size] = r.descriptor(0)
		}
		z, err := zip.NewReader(file, arc.size)
		if err != nil {
			t.Fatalf("%d bytes: %v", first, err)
		}
		for i, zf := range z.File {
			start, err := zf.DataOffset()
			r := arc.records[i]
			if err != nil || start != r.start || start%64 != 0 || zf.Name != r.name || zf.UncompressedSize64 != uint64(r.size) {
				t.Errorf("%d bytes: record %s: found %s, %d bytes at %d, %v; expected %d bytes at %d",
					first, r.name, zf.Name, zf.UncompressedSize64, start, err, r.size, r.start)
			}
		}
		if len(z.File) != 6 {
			t.Errorf("%d bytes: found %d records, expected 6", first, len(z.File))
		}
	}
}
