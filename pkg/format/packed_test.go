package format

import (
	"bytes"
	"compress/bzip2"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz/lzma"

	xzlib "github.com/ulikunitz/xz"
)

const goldenPackedFile = "testdata/golden-packed-v1.txt"

// goldenPackedLines are the digests of tables packed by bzip2 and xz, and of longer texts by both encoders.
func goldenPackedLines(t testing.TB) []string {
	t.Helper()
	var lines []string
	for _, packing := range []string{"bz2", "xz"} {
		f, err := New(Spec{Name: "csv", Compression: packing})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dtypes() {
			for _, l := range []Layout{{Dims: []int{21, 13}, Samples: 1}, {Dims: []int{3, 5, 100}, Samples: 12}} {
				l.DType = d.DType
				if _, err := f.Size(l); err != nil && strings.HasPrefix(d.Name, "complex") {
					continue
				}
				lines = append(lines, fmt.Sprintf("csv-%s %s %v %d = sha256:%x", packing, d.Name, l.Dims, l.Samples, sha256.Sum256(made(t, f, l, 2026, MinBuffer).data)))
			}
		}
		texts := longTexts()
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			lines = append(lines, fmt.Sprintf("%s of %s = sha256:%x", packing, name, sha256.Sum256(packedIn(t, newPacker(packing), texts[name], 70_000))))
		}
	}
	return lines
}

func TestMakeGoldenPacked(t *testing.T) {
	if !*makeGolden {
		t.Skip("golden values are only written with -make-golden, and never over existing ones")
	}
	if _, err := os.Stat(goldenPackedFile); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s exists: released values never change", goldenPackedFile)
	}
	text := "# Tables packed by bzip2 and xz: stream 3 of domain benchpin/test, version 1, seed 2026. They never change.\n" +
		"# format, element type, dimensions of a sample, samples = digest of the file; then longer texts of the tests\n" +
		strings.Join(goldenPackedLines(t), "\n") + "\n"
	if err := os.WriteFile(goldenPackedFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGoldenPacked(t *testing.T) {
	b, err := os.ReadFile(goldenPackedFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(b)), "\n")[2:] // after the lines about the file
	if got := goldenPackedLines(t); !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("line %d of %d and %d:\n got %s\nwant %s", i, len(got), len(want), got[min(i, len(got)-1)], want[min(i, len(want)-1)])
			}
		}
	}
}

// xzOf packs text by the library, in many blocks and with the checksum asked for.
func xzOf(t testing.TB, text []byte, c xzlib.WriterConfig) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := c.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestXzOfOthers reads what else xz allows: several blocks, streams and zeros between them, every checksum; and refuses the rest by name.
func TestXzOfOthers(t *testing.T) {
	f, err := New(Spec{Name: "csv", Compression: "xz"})
	if err != nil {
		t.Fatal(err)
	}
	row := []byte(strings.Repeat("12,", 999) + "7\n")
	text := bytes.Repeat(row, 10)
	read := func(data []byte, k int) error {
		_, err := f.ReadSample(bytes.NewReader(data), int64(len(data)), k, make([]byte, MinBuffer))
		return err
	}
	files := map[string][]byte{}
	for _, check := range []byte{xzlib.CRC32, xzlib.CRC64, xzlib.SHA256} {
		files[fmt.Sprintf("checksum %d", check)] = xzOf(t, text, xzlib.WriterConfig{CheckSum: check, BlockSize: 7000, DictCap: 1 << 16})
	}
	files["no checksum"] = xzOf(t, text, xzlib.WriterConfig{NoCheckSum: true, BlockSize: 1 << 20})
	half := func(s []byte) []byte { return xzOf(t, s, xzlib.WriterConfig{DictCap: lzma.MinDictCap}) }
	files["streams"] = slices.Concat(half(text[:12_345]), half(text[12_345:]), make([]byte, 8))
	files["streams apart"] = slices.Concat(half(text[:12_345]), make([]byte, 16), half(text[12_345:]))
	for name, data := range files {
		for k := range 11 {
			if err := read(data, k); (err != nil) != (k == 10) {
				t.Errorf("%s: row %d: %v", name, k, err)
			}
		}
		for cut := 0; cut < len(data); cut++ {
			if name == "streams apart" && cut > len(half(text[:12_345])) || name == "streams" {
				break // may end in a whole stream
			}
			var damage *DataError
			if err := read(data[:cut], 0); !errors.As(err, &damage) || damage.Offset > int64(cut) {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, cut, len(data), err)
			}
		}
		// Whatever byte is damaged is noticed, where there is a checksum. Only how many bytes a chunk takes, two bytes of each, is nothing
		// that the library compares: it goes on where the code ends.
		if name == "no checksum" {
			continue
		}
		unseen := 0
		for at := range data {
			bent := slices.Clone(data)
			bent[at] ^= 0x10
			if err := read(bent, 0); err == nil {
				unseen++
			}
		}
		if chunks := (len(text)-1)/7000 + 1; unseen > 2*chunks {
			t.Errorf("%s: of %d bytes, %d were changed and nobody saw it", name, len(data), unseen)
		}
	}
	if err := read(append(half(text), 0, 0, 0), 0); err == nil {
		t.Error("three zeros behind the stream were read")
	}
	big := xzOf(t, text, xzlib.WriterConfig{DictCap: 128 << 20})
	if err := read(big, 0); err == nil || !strings.Contains(err.Error(), "dictionary of 134217728 bytes") {
		t.Errorf("a dictionary of 128 MiB: %v", err)
	}
}

// TestPackedTextIsBounded: a file may not unpack to more than any table would.
func TestPackedTextIsBounded(t *testing.T) {
	z := newBzipper()
	var out bytes.Buffer
	w := &writer{w: &out, buf: make([]byte, MinBuffer)}
	z.reset(w)
	piece := bytes.Repeat([]byte("7"), 1<<20)
	for range 20 {
		if err := z.write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := z.close(); err != nil {
		t.Fatal(err)
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	f, err := New(Spec{Name: "csv", Compression: "bz2"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.ReadSample(bytes.NewReader(out.Bytes()), int64(out.Len()), 0, nil)
	if err == nil || !strings.Contains(err.Error(), "for each byte of the file") {
		t.Errorf("20 MiB in %d bytes: %v", out.Len(), err)
	}
	var damage *DataError
	if !errors.As(err, &damage) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

// FuzzReadXZ reads chunks of LZMA2 in a sound container, which the checksums of a container would keep random bytes from; or the bytes as
// they are.
func FuzzReadXZ(f *testing.F) {
	xz, err := New(Spec{Name: "csv", Compression: "xz"})
	if err != nil {
		f.Fatal(err)
	}
	text := []byte(strings.Repeat("12,", 99) + "7\n" + strings.Repeat("3,", 99) + "45\n")
	for _, data := range [][]byte{xzOf(f, text, xzlib.WriterConfig{NoCheckSum: true}), packedIn(f, newXzer(), text, 1000)} {
		f.Add(data, byte(0), false)
		f.Add(data[2*xzHeader:], byte(0), true)
		f.Add(data[2*xzHeader:], byte(22), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, dictionary byte, wrap bool) {
		if wrap {
			flags := []byte{0, 0}                                                    // no checksum
			block := []byte{xzHeader/4 - 1, 0, xzLZMA2, 1, dictionary % 24, 0, 0, 0} // up to 24 MiB
			file := append([]byte("\xfd7zXZ\x00"), flags...)
			file = binary.LittleEndian.AppendUint32(file, crc32.ChecksumIEEE(flags))
			file = binary.LittleEndian.AppendUint32(append(file, block...), crc32.ChecksumIEEE(block))
			data = append(file, data...)
		}
		fuzzTable(t, xz, data)
	})
}

func FuzzReadBzip2(f *testing.F) {
	bz2, err := New(Spec{Name: "csv", Compression: "bz2"})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{strings.Repeat("12,", 99) + "7\n", "1\n", strings.Repeat("0,0,0,0,0,0\n", 500)} {
		f.Add(packedIn(f, newBzipper(), []byte(text), 1000))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzTable(t, bz2, data) })
}

// fuzzTable reads data twice, with a small and a large buffer: no panic, and the same answer.
func fuzzTable(t *testing.T, f Format, data []byte) {
	small, err1 := f.ReadSample(bytes.NewReader(data), int64(len(data)), 0, make([]byte, MinBuffer))
	large, err2 := f.ReadSample(bytes.NewReader(data), int64(len(data)), 0, make([]byte, 1<<16))
	if small != large || (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
		t.Fatalf("buffer 4 KiB: %+v, %v\nbuffer 64 KiB: %+v, %v", small, err1, large, err2)
	}
	var damage *DataError
	if err1 != nil && (!errors.As(err1, &damage) || damage.Offset > int64(len(data))) {
		t.Fatalf("%v", err1)
	}
}

// FuzzPack packs any bytes, and has them unpacked by the libraries.
func FuzzPack(f *testing.F) {
	for _, text := range []string{"", "1,2\n", strings.Repeat("7", 300), strings.Repeat("0,", 3000)} {
		f.Add([]byte(text), uint16(7), uint8(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, pieces uint16, again uint8) {
		text = bytes.Repeat(text, 1+int(again)%16)
		if len(text) == 0 || len(text) > 1<<16 {
			return
		}
		z := packedIn(t, newBzipper(), text, int(pieces)+1)
		if got, err := io.ReadAll(bzip2.NewReader(bytes.NewReader(z))); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("bzip2: %d bytes of %d, %v", len(got), len(text), err)
		}
		z = packedIn(t, newXzer(), text, int(pieces)+1)
		r, err := xzlib.NewReader(bytes.NewReader(z))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("xz: %d bytes of %d, %v", len(got), len(text), err)
		}
	})
}
