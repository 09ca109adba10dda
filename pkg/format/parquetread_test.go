package format

import (
	"bytes"
	gogzip "compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/stream"
)

type goRow struct {
	A int32     `parquet:"a"`
	B *float64  `parquet:"b,optional"`
	C string    `parquet:"c,dict"`
	D []float32 `parquet:"d,list"`
	E int64     `parquet:"e,delta"`
	F [16]byte  `parquet:"f"`
	G struct {
		X bool    `parquet:"x"`
		Y []int32 `parquet:"y"`
	} `parquet:"g"`
}

// TestWeReadParquetGos reads what parquet-go wrote, in either version of pages, with dictionaries, lists and groups.
func TestWeReadParquetGos(t *testing.T) {
	var rows []goRow
	half := 0.5
	for i := range 500 {
		r := goRow{A: int32(i), C: fmt.Sprint("text ", i%7), D: make([]float32, 3), E: int64(i * i)}
		if i%3 == 0 {
			r.B = &half
		}
		r.G.Y = make([]int32, i%4)
		rows = append(rows, r)
	}
	codecs := map[string]parquet.WriterOption{
		"none": parquet.Compression(&parquet.Uncompressed), "snappy": parquet.Compression(&parquet.Snappy),
		"gzip": parquet.Compression(&parquet.Gzip), "zstd": parquet.Compression(&parquet.Zstd), "lz4": parquet.Compression(&parquet.Lz4Raw)}
	for name, codec := range codecs {
		for _, version := range []int{1, 2} {
			var out bytes.Buffer
			err := parquet.Write(&out, rows, codec, parquet.DataPageVersion(version), parquet.MaxRowsPerRowGroup(120), parquet.PageBufferSize(400))
			if err != nil {
				t.Fatal(err)
			}
			size := int64(out.Len())
			all, err := New(Spec{Name: "parquet"})
			if err != nil {
				t.Fatal(err)
			}
			some, err := New(Spec{Name: "parquet", Columns: []Column{{Name: "d", DType: "float32", Size: 3}, {Name: "a", DType: "int32", Size: 1},
				{Name: "e", DType: "int64", Size: 1, Skip: true}}})
			if err != nil {
				t.Fatal(err)
			}
			for k := 0; k < len(rows); k += 33 {
				a, err := all.ReadSample(bytes.NewReader(out.Bytes()), size, k, nil)
				if err != nil {
					t.Fatalf("%s, pages v%d, row %d: %v", name, version, k, err)
				}
				b, err := some.ReadSample(bytes.NewReader(out.Bytes()), size, k, nil)
				if err != nil || b.Logical != 16 || b.Asked >= a.Asked {
					t.Fatalf("%s, pages v%d, row %d: %+v of %+v, %v", name, version, k, b, a, err)
				}
			}
			if _, err := all.ReadSample(bytes.NewReader(out.Bytes()), size, len(rows), nil); err == nil {
				t.Errorf("%s: row %d was read", name, len(rows))
			}
			for bad, columns := range map[string][]Column{
				"1 of the 2 columns": {{Name: "a", DType: "int32", Size: 1}, {Name: "z", DType: "int32", Size: 1}},
				`"a" is not of type`: {{Name: "a", DType: "float32", Size: 1}},
				`"d" is not a list`:  {{Name: "d", DType: "float64", Size: 3}},
				`"a" is not of`:      {{Name: "a", DType: "int32", Size: 2}},
				`"e" is not of`:      {{Name: "e", DType: "int8", Size: 1}},
			} {
				f, err := New(Spec{Name: "parquet", Columns: columns})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.ReadSample(bytes.NewReader(out.Bytes()), size, 0, nil); err == nil || !strings.Contains(err.Error(), bad) {
					t.Errorf("%s, columns %v: %v", name, columns, err)
				}
			}
		}
	}
}

// bodies returns the pages of all chunks of a file, as they stand in it, with their sizes decompressed.
func bodies(t *testing.T, data []byte) (pages [][]byte, plain []int64) {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Metadata().RowGroups {
		for _, c := range g.Columns {
			m := c.MetaData
			start := m.DataPageOffset
			if m.DictionaryPageOffset > 0 {
				start = m.DictionaryPageOffset
			}
			r := &parquetReader{reader: reader{format: "parquet"}}
			r.reset(bytes.NewReader(data), int64(len(data)), nil)
			for r.span(start, start+m.TotalCompressedSize); r.at() < r.size; {
				var h parquetPageHead
				if err := r.pageHead(&h); err != nil {
					t.Fatal(err)
				}
				pages, plain = append(pages, data[r.at():r.at()+h.size]), append(plain, h.plain)
				if err := r.skip(h.size); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return pages, plain
}

// TestPagesHoldTheSame decompresses every page by another decoder than the writer's, and compares it with that of a file which is
// not compressed.
func TestPagesHoldTheSame(t *testing.T) {
	columns := append(everyColumn(700), Column{Name: "tiny", DType: "bool", Size: 1}, Column{Name: "long", DType: "float32", Size: 400000})
	l := tableLayout(columns, 20)
	var want [][]byte
	for _, word := range parquetWords() {
		f, err := New(Spec{Name: "parquet", Columns: columns, RowGroup: 7, Compression: word})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := f.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, 25), 1), nil); err != nil {
			t.Fatal(err)
		}
		pages, plain := bodies(t, out.Bytes())
		if want == nil {
			want = pages
		}
		if len(pages) != len(want) || len(pages) < 100 {
			t.Fatalf("%s: %d pages, %d if they are not compressed", word, len(pages), len(want))
		}
		for i, p := range pages {
			var got []byte
			var err error
			switch word {
			case "":
				got = p
			case "snappy":
				got, err = snappy.Decode(nil, p)
			case "lz4":
				var n int
				got = make([]byte, plain[i])
				n, err = lz4.UncompressBlock(p, got)
				got = got[:n]
			case "gzip":
				var r *gogzip.Reader
				if r, err = gogzip.NewReader(bytes.NewReader(p)); err == nil {
					got, err = io.ReadAll(r)
				}
			case "zstd":
				var d *zstd.Decoder
				if d, err = zstd.NewReader(bytes.NewReader(p)); err == nil {
					got, err = io.ReadAll(d)
					d.Close()
				}
			}
			if err != nil || !bytes.Equal(got, want[i]) || plain[i] != int64(len(got)) {
				t.Fatalf("%s: page %d of %d bytes, which should become %d, becomes %d: %v", word, i, len(p), plain[i], len(got), err)
			}
		}
		t.Logf("%q: %d bytes for %d", word, out.Len(), l.PayloadBytes())
	}
}

// TestParquetMemory: a reader with a memory sees what one without sees, and asks for the footer once a file and for each row group once
// while it is among the last four.
func TestParquetMemory(t *testing.T) {
	columns := append(everyColumn(3), Column{Name: "not read", DType: "float64", Size: 50, Skip: true})
	f, err := New(Spec{Name: "parquet", Columns: columns, RowGroup: 10})
	if err != nil {
		t.Fatal(err)
	}
	l := tableLayout(columns, 95)
	var files [][]byte
	for i := range uint64(2) {
		files = append(files, madeBy(t, f, l, l.DType.Seeded(stream.New("benchpin/test", 1, 27), i)))
	}
	size := int64(len(files[0]))
	footer := 8 + int64(binary.LittleEndian.Uint32(files[0][size-8:]))
	rapid.Check(t, func(t *rapid.T) {
		m := f.(Remembering).Remember()
		type place struct{ file, group int }
		var recent []place
		last := -1
		for range rapid.IntRange(1, 60).Draw(t, "reads") {
			at := place{file: rapid.IntRange(0, 1).Draw(t, "file")}
			k := rapid.IntRange(0, 94).Draw(t, "row")
			at.group = k / 10
			plain, err := f.ReadSample(bytes.NewReader(files[at.file]), size, k, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := plain
			switch i := slices.Index(recent, at); {
			case i >= 0:
				want.Asked, recent = 0, slices.Delete(recent, i, i+1)
			case last == at.file:
				want.Asked -= footer
			}
			if want.Asked > 0 {
				last = at.file
			}
			if recent = append(recent, at); len(recent) > parquetGroups {
				recent = recent[1:]
			}
			if got, err := m.ReadSampleOf(int64(at.file), bytes.NewReader(files[at.file]), size, k, nil); err != nil || got != want {
				t.Fatalf("row %d of file %d: %+v, %v; want %+v", k, at.file, got, err, want)
			}
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				m.Forget()
				recent, last = nil, -1
			}
			for _, k := range []int{-1, 95} {
				if _, err := m.ReadSampleOf(int64(at.file), bytes.NewReader(files[at.file]), size, k, nil); err == nil {
					t.Fatalf("row %d was read", k)
				}
				last = -1
			}
			if len(recent) > 0 && rapid.Bool().Draw(t, "damaged") {
				cut := files[at.file][:size-1]
				if _, err := m.ReadSampleOf(7, bytes.NewReader(cut), size-1, k, nil); err == nil {
					t.Fatal("a damaged file was read")
				}
			}
		}
	})
}

// TestParquetDamage cuts and bends files of every compression: an error that names the place, or other numbers; never a panic.
func TestParquetDamage(t *testing.T) {
	columns := everyColumn(3)
	l := tableLayout(columns, 20)
	for _, word := range parquetWords() {
		f, err := New(Spec{Name: "parquet", Columns: columns, RowGroup: 8, Compression: word})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := f.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, 22), 1), nil); err != nil {
			t.Fatal(err)
		}
		data := out.Bytes()
		step, refused := 41, 0
		if os.Getenv("BENCHPIN_LONG") == "1" {
			if step = 1; raceDetector { // tenfold slower, and nothing runs side by side
				step = 7
			}
		}
		for i := 0; i < len(data); i += step {
			bent := bytes.Clone(data)
			bent[i] ^= 1 << (i % 8)
			for _, b := range [][]byte{bent, data[:i]} {
				_, err := f.ReadSample(bytes.NewReader(b), int64(len(b)), 9, nil)
				var damage *DataError
				if err != nil && (!errors.As(err, &damage) || damage.Format != "parquet" || damage.Offset < 0 || damage.Offset > int64(len(b))) {
					t.Fatalf("%s: byte %d: %v", word, i, err)
				}
				if err != nil {
					refused++
				} else if len(b) < len(data) {
					t.Fatalf("%s: the first %d of %d bytes were read", word, i, len(data))
				}
			}
		}
		t.Logf("%q: %d of %d damaged files were refused", word, refused, 2*((len(data)+step-1)/step))
	}
}

// TestLongVectorsNeedLittleMemory writes rows of 40 MB without holding one, and reads them the same way.
func TestLongVectorsNeedLittleMemory(t *testing.T) {
	columns := []Column{{Name: "a", DType: "float32", Size: 10 << 20}, {Name: "b", DType: "int8", Size: 1}}
	f, err := New(Spec{Name: "parquet", Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	l := tableLayout(columns, 2)
	var out bytes.Buffer
	size, err := f.Size(l)
	if err != nil {
		t.Fatal(err)
	}
	out.Grow(int(size))
	buf := make([]byte, 64<<10)
	if got := allocatedBy(func() {
		if err := f.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, 23), 1), buf); err != nil {
			t.Fatal(err)
		}
	}); got > 2<<20 { // the stream's own small change, for each piece
		t.Errorf("writing %d bytes took %d bytes of memory", size, got)
	}
	if got := allocatedBy(func() {
		if _, err := f.ReadSample(bytes.NewReader(out.Bytes()), size, 1, buf); err != nil {
			t.Fatal(err)
		}
	}); got > 64<<10 {
		t.Errorf("reading a row group of %d bytes took %d bytes of memory", size, got)
	}
}

func FuzzReadParquet(f *testing.F) {
	columns := []Column{{Name: "a", DType: "float16", Size: 1}, {Name: "b", DType: "int8", Size: 3}, {Name: "c", DType: "bool", Size: 1}}
	l := tableLayout(columns, 5)
	var all Format
	for _, word := range parquetWords() {
		w, err := New(Spec{Name: "parquet", Columns: columns, RowGroup: 3, Compression: word})
		if err != nil {
			f.Fatal(err)
		}
		var out bytes.Buffer
		if err := w.Write(&out, l, l.DType.Seeded(stream.New("benchpin/test", 1, 24), 1), nil); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes(), 4)
		if all == nil {
			all = w
		}
	}
	any, err := ByName("parquet")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, k int) {
		for _, r := range []Format{all, any} {
			small, err1 := r.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, MinBuffer))
			large, err2 := r.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, 1<<16))
			if small != large || (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
				t.Fatalf("buffer 4 KiB: %+v, %v\nbuffer 64 KiB: %+v, %v", small, err1, large, err2)
			}
			if err1 == nil && (small.Asked < 8 || small.Logical < 0) {
				t.Fatalf("%+v of a file of %d bytes", small, len(data))
			}
		}
	})
}

// allocatedBy returns the bytes that f allocates.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestCovered: what a reader says that it covers is what reading each sample says, and asks for nothing.
func TestCovered(t *testing.T) {
	const rows, group = 47, 5
	f, err := New(Spec{Name: "parquet", Columns: []Column{{Name: "a", DType: "float32", Size: 3}, {Name: "b", DType: "int8", Size: 2, Skip: true}}, RowGroup: group})
	if err != nil {
		t.Fatal(err)
	}
	u8, err := ParseDType("uint8")
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{Dims: []int{14}, Samples: rows, DType: u8}
	var b bytes.Buffer
	if err := f.Write(&b, l, l.DType.Seeded(stream.New("benchpin/test", 1, 1), 0), make([]byte, 1<<16)); err != nil {
		t.Fatal(err)
	}
	file, buf := bytes.NewReader(b.Bytes()), make([]byte, MinBuffer)
	m := f.(Remembering).Remember()
	for _, k := range []int{0, 3, 4, 5, 46, 44, 45, 20, 7} {
		read, err := m.ReadSampleOf(1, file, file.Size(), k, buf)
		if err != nil {
			t.Fatal(err)
		}
		from, to := m.(Covering).Covered()
		if from != k/group*group || to != min(rows, from+group) {
			t.Errorf("after sample %d: covers %d to %d", k, from, to)
		}
		for other := from; other < to; other++ {
			got, err := m.ReadSampleOf(1, file, file.Size(), other, buf)
			if err != nil || got.Asked != 0 || got.Logical != read.Logical {
				t.Errorf("sample %d, covered by sample %d: found %+v, %v", other, k, got, err)
			}
		}
	}
}
