package format

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
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
