package format

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	gojpeg "image/jpeg"
	gopng "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/stream"
)

// onePicture makes a layout of an image that is big enough to be one.
func onePicture(l Layout) Layout {
	n := int(l.SampleBytes() % 5000)
	l.Samples = 1
	l.DType, _ = ParseDType("uint8")
	switch {
	case len(l.Dims) == 2 && l.Dims[0] >= 20 && l.Dims[1] >= 20:
	case n%3 == 0:
		l.Dims = []int{400 + n}
	default:
		l.Dims = []int{21 + n%90, 25 + n/90}
	}
	return l
}

// shownPicture is onePicture of two dimensions: with sizing encoded, the record of an image of one dimension is not its pixels.
func shownPicture(l Layout) Layout {
	if l = onePicture(l); len(l.Dims) == 1 {
		l.Dims = []int{20, l.Dims[0] / 20}
	}
	return l
}

// pictures is one format with one sizing.
type pictures struct {
	name, sizing string
	f            Format
}

func allPictures(t testing.TB) []pictures {
	t.Helper()
	var all []pictures
	for _, name := range []string{"jpeg", "png"} {
		for _, sizing := range []string{sizingExact, sizingEncoded} {
			f, err := New(Spec{Name: name, Sizing: sizing})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pictures{name, sizing, f})
		}
	}
	return all
}

// pixelsOf returns the size of the image that the layout stands for, and its pixels.
func pixelsOf(l Layout, c Content) (height, width int, pixels []byte) {
	p, _ := newPicture(l)
	pixels = make([]byte, p.height*p.width)
	c.Fill(pixels, 0)
	return int(p.height), int(p.width), pixels
}

// TestGoDecodesPictures: every image decodes to the pixels that the stream defines: a png's exactly, a jpeg's nearly. A png of
// exact size is shorter than asked by a few rows.
func TestGoDecodesPictures(t *testing.T) {
	s := stream.New("benchpin/test", 1, 12)
	all := allPictures(t)
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(all).Draw(t, "format")
		l := Layout{Samples: 1, DType: dtypes()[5].DType}
		if rapid.Bool().Draw(t, "flat") {
			l.Dims = []int{rapid.IntRange(500, 100000).Draw(t, "bytes")}
		} else {
			l.Dims = []int{rapid.IntRange(25, 300).Draw(t, "height"), rapid.IntRange(25, 300).Draw(t, "width")}
		}
		c := l.DType.Seeded(s, rapid.Uint64().Draw(t, "file"))
		data := madeOf(t, p.f, l, c)
		height, width, want := pixelsOf(l, c)
		var img image.Image
		var err error
		worst := 0
		if p.name == "png" {
			img, err = gopng.Decode(bytes.NewReader(data))
			if p.sizing == sizingExact {
				height = img.Bounds().Dy()
			}
		} else {
			img, err = gojpeg.Decode(bytes.NewReader(data))
			worst = 255
		}
		if err != nil {
			t.Fatal(err)
		}
		gray, ok := img.(*image.Gray)
		if !ok || gray.Bounds() != image.Rect(0, 0, width, height) {
			t.Fatalf("%T %v, want %d x %d gray pixels", img, img.Bounds(), height, width)
		}
		var sum int
		for y := range height {
			for x := range width {
				d := int(gray.GrayAt(x, y).Y) - int(want[y*width+x])
				if d < 0 {
					d = -d
				}
				if sum += d; d > worst {
					t.Fatalf("pixel %d, %d is off by %d", y, x, d)
				}
			}
		}
		// Quality 75 blurs random pixels by 9 on average; what exact sizing leaves to a small image is its header's size less.
		limit := height * width * 10
		if p.name == "jpeg" && p.sizing == sizingExact {
			limit = height * width * 2
			if len(data) < 20000 {
				limit = height * width * 50
			}
		}
		if sum > limit {
			t.Fatalf("%d x %d pixels are off by %d, on average %.1f", height, width, sum, float64(sum)/float64(height*width))
		}
	})
}

func madeOf(t interface{ Fatalf(string, ...any) }, f Format, l Layout, c Content) []byte {
	var out bytes.Buffer
	if err := f.Write(&out, l, c, nil); err != nil {
		t.Fatalf("write %+v: %v", l, err)
	}
	if size, err := f.Size(l); err != nil || size != int64(out.Len()) {
		t.Fatalf("Size(%+v) = %d, %v; %d bytes were written", l, size, err, out.Len())
	}
	return out.Bytes()
}

// TestRecordsAreMet: with exact sizing a file has the bytes that were asked for, whatever they are, or there is an error that says
// how many it takes at least; and then that many do.
func TestRecordsAreMet(t *testing.T) {
	for _, p := range allPictures(t) {
		if p.sizing != sizingExact {
			continue
		}
		least := 0
		for n := 1; n < 3000; n++ {
			size, err := p.f.Size(Layout{Dims: []int{n}, Samples: 1, DType: dtype(t, "uint8")})
			switch {
			case err == nil && size != int64(n):
				t.Fatalf("%s: %d bytes for a record of %d", p.name, size, n)
			case err == nil && least == 0:
				least = n
			case err != nil && least > 0:
				t.Fatalf("%s: a record of %d bytes is possible, one of %d is not: %v", p.name, least, n, err)
			case err != nil && !strings.Contains(err.Error(), fmt.Sprintf("record of %d bytes; it takes at least", n)):
				t.Fatalf("%s: %v", p.name, err)
			}
		}
		if least == 0 || least > 400 {
			t.Errorf("%s: the smallest file has %d bytes", p.name, least)
		}
	}
}

// fixed is content of one value.
type fixed byte

func (c fixed) Fill(p []byte, _ int64) {
	for i := range p {
		p[i] = byte(c)
	}
}

// checkers is content that needs more bits than random pixels do: blocks in which two patterns take turns at full contrast.
type checkers int64

func (w checkers) Fill(p []byte, off int64) {
	for i := range p {
		at := off + int64(i)
		x, y := at%int64(w), at/int64(w)
		p[i] = byte(-((x*x*7 + y*y*13 + x*y*5) >> 2 & 1))
	}
}

// TestAnyPixelsFit: sizes do not depend on pixels, whichever they are, and what does not fit becomes plain.
func TestAnyPixelsFit(t *testing.T) {
	for _, p := range allPictures(t) {
		for _, dims := range [][]int{{64, 64}, {21, 30}, {100, 333}, {8, 8 * 60}} {
			l := Layout{Dims: dims, Samples: 1, DType: dtype(t, "uint8")}
			for name, c := range map[string]Content{"black": fixed(0), "white": fixed(255), "gray": fixed(128), "checkers": checkers(dims[1])} {
				data := madeOf(t, p.f, l, c)
				img, kind, err := image.Decode(bytes.NewReader(data))
				if err != nil || kind != p.name || img.Bounds().Dx() != dims[1] {
					t.Errorf("%s %s of %v, %s: %v", p.sizing, p.name, dims, name, err)
				}
				if _, err := p.f.ReadSample(bytes.NewReader(data), int64(len(data)), 0, nil); err != nil {
					t.Errorf("%s %s of %v, %s: %v", p.sizing, p.name, dims, name, err)
				}
			}
		}
	}
}

// TestPicturesDoNotCompress: a store that compresses or finds equal blocks gains next to nothing.
func TestPicturesDoNotCompress(t *testing.T) {
	s := stream.New("benchpin/test", 1, 13)
	for _, p := range allPictures(t) {
		l := Layout{Dims: []int{338, 338}, Samples: 1, DType: dtype(t, "uint8")}
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		data := madeOf(t, p.f, l, l.DType.Seeded(s, 1))
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if ratio := float64(packed.Len()) / float64(len(data)); ratio < 0.97 {
			t.Errorf("%s %s: deflate makes %.3f of it", p.sizing, p.name, ratio)
		}
	}
}

// TestNoise measures again what the tables say that random pixels take.
func TestNoise(t *testing.T) {
	tables := newJPEGTables()
	s := stream.New("benchpin/test", 1, 14)
	u8 := dtype(t, "uint8")
	for _, q := range []int{1, 2, 3, 4, 5, 6, 10, 20, 50, 100, 180, 255} {
		p := jpegPlan{picture: picture{height: 400, width: 400}, size: 1 << 40, wrap: true}
		for i := range p.quant {
			p.quant[i] = uint8(q)
		}
		e := &jpegEncoder{strip: make([]byte, p.stripBytes())}
		n, err := e.scan(&writer{w: &failing{left: 1 << 40}, buf: make([]byte, 1<<16)}, tables, p, u8.Seeded(s, uint64(q)))
		if err != nil {
			t.Fatal(err)
		}
		got, want := float64(n*8*16)/2500, float64(tables.noise[q])
		if got < 0.985*want-16 || got > 1.015*want+16 {
			t.Errorf("quantiser %d: a block takes %.0f sixteenths of a bit, the table says %.0f", q, got, want)
		}
		if tables.noise[q] >= tables.noise[q-1] {
			t.Errorf("quantiser %d takes no less than %d", q, q-1)
		}
	}
	// With quality 75 sizes are DLIO's, up to the spare bytes (semantics of DLIO: 338² give 65,381, 388² give 85,569 bytes).
	f, err := New(Spec{Name: "jpeg", Sizing: sizingEncoded})
	if err != nil {
		t.Fatal(err)
	}
	for side, dlio := range map[int]int64{338: 65381, 388: 85569} {
		size, err := f.Size(Layout{Dims: []int{side, side}, Samples: 1, DType: u8})
		if err != nil || size < dlio || size > dlio+dlio/60 {
			t.Errorf("%d x %d pixels: %d bytes, %v; DLIO's have %d", side, side, size, err, dlio)
		}
	}
}

func TestRefusedPictures(t *testing.T) {
	u8 := dtype(t, "uint8")
	for _, p := range allPictures(t) {
		for text, l := range map[string]Layout{
			"one image":          {Dims: []int{100, 100}, Samples: 2, DType: u8},
			"pixels are uint8":   {Dims: []int{100, 100}, Samples: 1, DType: dtype(t, "int8")},
			"at most 65535":      {Dims: []int{1, 65536}, Samples: 1, DType: u8},
			"dimensions [2 2 9]": {Dims: []int{2, 2, 9}, Samples: 1, DType: u8},
			"dimensions []":      {Samples: 1, DType: u8},
		} {
			if _, err := p.f.Size(l); err == nil || !strings.Contains(err.Error(), text) || !strings.HasPrefix(err.Error(), p.name+": ") {
				t.Errorf("%s %s of %+v: %v", p.sizing, p.name, l, err)
			}
		}
	}
	if _, err := New(Spec{Name: "png", Sizing: "nearly"}); err == nil || !strings.Contains(err.Error(), "exact, encoded") {
		t.Errorf("sizing nearly: %v", err)
	}
	if _, err := New(Spec{Name: "jpeg", Compression: "gzip"}); err == nil || !strings.Contains(err.Error(), "dataset.compression") {
		t.Errorf("compression: %v", err)
	}
}

// TestDamagedPictures names damages that must be noticed, each in its place.
func TestDamagedPictures(t *testing.T) {
	l := Layout{Dims: []int{64, 64}, Samples: 1, DType: dtype(t, "uint8")}
	s := stream.New("benchpin/test", 1, 15)
	for _, p := range allPictures(t) {
		data := madeOf(t, p.f, l, l.DType.Seeded(s, 1))
		damage := map[string]func(b []byte) []byte{
			"empty":     func(b []byte) []byte { return nil },
			"text":      func(b []byte) []byte { return []byte("no image at all, but text that is long enough") },
			"head lost": func(b []byte) []byte { return b[1:] },
			"end lost":  func(b []byte) []byte { return b[:len(b)-2] },
			"twice":     func(b []byte) []byte { return append(b[:len(b)-12:len(b)-12], b...) },
		}
		if p.name == "png" {
			damage["pixel"] = func(b []byte) []byte { b[1000] ^= 1; return b }
			damage["more"] = func(b []byte) []byte { return append(b, 0) }
			damage["no pixels"] = func(b []byte) []byte { return append(b[:pngHeader:pngHeader], b[len(b)-chunkFrame:]...) }
			damage["chunk too long"] = func(b []byte) []byte { b[pngHeader] = 0x7f; return b }
			damage["other bits"] = func(b []byte) []byte { b[24] = 3; return b }
		} else {
			damage["marker among pixels"] = func(b []byte) []byte { copy(b[1000:], "\xff\xd8\xff"); return b }
			damage["segment too long"] = func(b []byte) []byte { b[4] = 0xff; return b }
			damage["no pixels"] = func(b []byte) []byte { return append(b[:jpegHeader-10:jpegHeader-10], 0xff, markerEOI) }
			damage["no frame"] = func(b []byte) []byte { return append(b[:2:2], b[jpegHeader-10:]...) }
			damage["no width"] = func(b []byte) []byte { copy(b[96:], "\x00\x00"); return b }
		}
		for name, f := range damage {
			bent := f(bytes.Clone(data))
			var bad *DataError
			if _, err := p.f.ReadSample(bytes.NewReader(bent), int64(len(bent)), 0, nil); !errors.As(err, &bad) || bad.Format != p.name ||
				bad.Offset < 0 || bad.Offset > int64(len(bent)) {
				t.Errorf("%s %s, %s: %v", p.sizing, p.name, name, err)
			}
		}
	}
}

// TestPillowDecodesPictures lets DLIO's decoder read ours and lists what it found, and reads what it wrote.
func TestPillowDecodesPictures(t *testing.T) {
	cmd := numpy(t, "-c", "import PIL")
	if err := cmd.Run(); err != nil {
		missing(t, "no PIL for python3 (Debian: python3-pil): %v", err)
	}
	dir := t.TempDir()
	s := stream.New("benchpin/test", 1, 16)
	var cases []map[string]any
	for _, p := range allPictures(t) {
		for i, dims := range [][]int{{338, 338}, {388, 388}, {322957}, {30, 25}, {600}, {64, 1000}, {1001, 63}, {1300, 1300}} {
			l := Layout{Dims: dims, Samples: 1, DType: dtype(t, "uint8")}
			c := l.DType.Seeded(s, uint64(i))
			name := fmt.Sprintf("%s-%d.%s", p.sizing, i, p.name)
			height, width, pixels := pixelsOf(l, c)
			data := madeOf(t, p.f, l, c)
			for path, b := range map[string][]byte{name: data, name + ".raw": pixels} {
				if err := os.WriteFile(filepath.Join(dir, path), b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cases = append(cases, map[string]any{"file": name, "height": height, "width": width, "exact": p.sizing == sizingExact})
		}
	}
	writeJSON(t, filepath.Join(dir, "cases.json"), cases)
	out, err := numpy(t, "testdata/pilpeer.py", dir).Output()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("%d cases, 0 bad", len(cases))) {
		t.Fatalf("Pillow disagrees: %v\n%s", err, out)
	}
	var theirs []struct {
		File  string
		Bytes int64
	}
	b, err := os.ReadFile(filepath.Join(dir, "theirs.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &theirs); err != nil || len(theirs) < 10 {
		t.Fatalf("%d files of Pillow's, %v", len(theirs), err)
	}
	for _, c := range theirs {
		f, err := New(Spec{Name: strings.TrimPrefix(filepath.Ext(c.File), "."), Sizing: sizingEncoded})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, c.File))
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), 0, nil)
		if want := (Sample{Logical: c.Bytes, Asked: int64(len(data))}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", c.File, got, err, want)
		}
	}
}

func FuzzReadJPEG(f *testing.F) { fuzzPictures(f, "jpeg") }
func FuzzReadPNG(f *testing.F)  { fuzzPictures(f, "png") }

func fuzzPictures(f *testing.F, name string) {
	var first Format
	for _, p := range allPictures(f) {
		if p.name == name {
			l := Layout{Dims: []int{25, 30}, Samples: 1, DType: dtype(f, "uint8")}
			f.Add(madeOf(f, p.f, l, zeros{}), 0)
			f.Add(madeOf(f, p.f, l, l.DType.Seeded(stream.New("benchpin/test", 1, 17), 1)), 0)
			first = p.f
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, k int) { fuzzRead(t, first, data, k) })
}

// oneSample is a layout of one sample a file.
func oneSample(l Layout) Layout {
	l.Samples = 1
	return l
}
