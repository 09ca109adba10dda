package format

import (
	"bytes"
	"compress/bzip2"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
	"pgregory.net/rapid"
)

// packedIn compresses p in pieces, twice with the same packer, and counted: all must agree.
func packedIn(t interface{ Fatalf(string, ...any) }, z packer, p []byte, pieces int) []byte {
	var first []byte
	for pass := range 3 {
		var out bytes.Buffer
		w := &writer{w: &out, buf: make([]byte, MinBuffer)}
		if pass == 2 {
			z.reset(nil)
		} else {
			z.reset(w)
		}
		for at := 0; at < len(p); at += pieces {
			if err := z.write(p[at:min(len(p), at+pieces)]); err != nil {
				t.Fatalf("write: %v", err)
			}
		}
		n, err := z.close()
		if err != nil {
			t.Fatalf("close: %v", err)
		}
		if err := w.flush(); err != nil {
			t.Fatalf("flush: %v", err)
		}
		switch {
		case pass == 0:
			first = out.Bytes()
		case pass == 1 && !bytes.Equal(first, out.Bytes()):
			t.Fatalf("a packer that was used before makes other bytes")
		}
		if n != int64(len(first)) {
			t.Fatalf("pass %d: %d bytes were counted, %d written", pass, n, len(first))
		}
	}
	return first
}

// packTexts draws what packers are shown: random bytes of alphabets of all sizes, runs, periods.
func packTexts() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		letters := rapid.SliceOfNDistinct(rapid.Byte(), 1, 256, rapid.ID).Draw(t, "letters")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 5000).Draw(t, "length")
		if rapid.IntRange(0, 19).Draw(t, "long") == 0 {
			n *= 60
		}
		p := make([]byte, n)
		for i := range p {
			p[i] = letters[r.IntN(len(letters))]
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 1: // a period
			k := rapid.IntRange(1, n).Draw(t, "period")
			for i := k; i < n; i++ {
				p[i] = p[i-k]
			}
		case 2: // runs
			for i := 0; i < n; {
				run := min(n-i, 1+r.IntN(700))
				for j := range run {
					p[i+j] = p[i]
				}
				i += run
			}
		}
		return p
	})
}

func TestBzip2RoundTrips(t *testing.T) {
	z := newBzipper()
	rapid.Check(t, func(rt *rapid.T) {
		p := packTexts().Draw(rt, "text")
		packed := packedIn(rt, z, p, rapid.IntRange(1, 3000).Draw(rt, "pieces"))
		if got, err := io.ReadAll(bzip2.NewReader(bytes.NewReader(packed))); err != nil || !bytes.Equal(got, p) {
			rt.Fatalf("%d bytes became %d, of which bzip2 makes %d, %v", len(p), len(packed), len(got), err)
		}
	})
}

func TestXzRoundTrips(t *testing.T) {
	z := newXzer()
	rapid.Check(t, func(rt *rapid.T) {
		p := packTexts().Draw(rt, "text")
		packed := packedIn(rt, z, p, rapid.IntRange(1, 3000).Draw(rt, "pieces"))
		if int64(len(packed)) > xzBound(int64(len(p))) {
			rt.Fatalf("%d bytes became %d; the bound is %d", len(p), len(packed), xzBound(int64(len(p))))
		}
		r, err := xz.NewReader(bytes.NewReader(packed))
		if err != nil {
			rt.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, p) {
			rt.Fatalf("%d bytes became %d, of which xz makes %d, %v", len(p), len(packed), len(got), err)
		}
	})
}

// longTexts are texts of several blocks and chunks, with the turns of both formats at their ends.
func longTexts() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	digits := make([]byte, 1_000_000)
	for i := range digits {
		digits[i] = "0123456789,"[r.IntN(11)]
	}
	return map[string][]byte{
		"zeros":  bytes.Repeat([]byte("0,"), 500_000),
		"run":    bytes.Repeat([]byte("7"), 1_000_000),
		"noise":  noise,
		"digits": digits,
		"turns":  slices.Concat(digits[:100_000], noise, digits[100_000:300_000], noise[:1000], digits[:200]),
		"period": bytes.Repeat(digits[:10_007], 100),
		"full":   bytes.Repeat([]byte("1234"), (bzipBlock+4)/4),
	}
}

// TestPackersAndTheirPrograms: the programs of both formats take what we write of long texts, and so do the readers linked here.
func TestPackersAndTheirPrograms(t *testing.T) {
	for name, p := range longTexts() {
		for _, packing := range []string{"bz2", "xz"} {
			packed := packedIn(t, newPacker(packing), p, 33_333)
			t.Logf("%s: %d bytes, %s %d", name, len(p), packing, len(packed))
			var r io.Reader = bzip2.NewReader(bytes.NewReader(packed))
			if packing == "xz" {
				var err error
				if r, err = xz.NewReader(bytes.NewReader(packed)); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, p) {
				t.Errorf("%s: %s: %d bytes of %d, %v", name, packing, len(got), len(p), err)
			}
			program := map[string]string{"bz2": "bzip2", "xz": "xz"}[packing]
			if _, err := exec.LookPath(program); err != nil {
				if os.Getenv("CI") == "true" {
					t.Errorf("no %s here (Debian: bzip2, xz-utils; make deps brings them)", program)
				}
				continue
			}
			cmd := exec.Command(program, "-dc")
			cmd.Stdin = bytes.NewReader(packed)
			var problems strings.Builder
			cmd.Stderr = &problems
			if got, err := cmd.Output(); err != nil || !bytes.Equal(got, p) {
				t.Errorf("%s: %s made %d bytes of %d, %v: %s", name, program, len(got), len(p), err, &problems)
			}
		}
	}
}

// TestPackersKeepTheirMemory: a packer that was used once makes no more memory, however long the text is.
func TestPackersKeepTheirMemory(t *testing.T) {
	text := longTexts()["digits"]
	for _, packing := range []string{"bz2", "xz"} {
		z, out := newPacker(packing), &writer{w: io.Discard, buf: make([]byte, MinBuffer)}
		pass := func(times int) {
			z.reset(out)
			for range times {
				if err := z.write(text); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := z.close(); err != nil {
				t.Fatal(err)
			}
		}
		pass(1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		pass(3)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: a second text of %d bytes took %d bytes of memory", packing, 3*len(text), n)
		}
	}
}
