package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/store/s3/s3test"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

func fetchingAhead(o *Options) { o.Ahead, o.AheadParts = 2, 3 }

// TestAhead reads objects of no, one and several parts in pieces of all kinds, in order, over gaps and backwards, by a good server and by one
// that refuses and cuts: what is read is what was written.
func TestAhead(t *testing.T) {
	server := inMemory(t)
	direct := bucket(t, server, "s3://data/p", nil)
	sizes := []int{0, 1, AheadPart - 1, AheadPart, AheadPart + 1, 3*AheadPart + 77}
	for i, n := range sizes {
		storetest.Write(t, direct, fmt.Sprintf("f%d", i), storetest.Pattern(i, n))
	}
	faults := map[string]*s3test.Proxy{
		"good": {},
		"bad": {
			Fault: func(n int64, w http.ResponseWriter, _ *http.Request) bool { return n%4 == 1 && s3test.SlowDown(w) },
			Answer: func(n int64, r *http.Response) error {
				if n%3 == 0 {
					s3test.Cut(r, 1_000_000)
				}
				return nil
			},
		},
	}
	for name, p := range faults {
		b := bucket(t, p.Start(t, server), "s3://data/p", fetchingAhead)
		for i, n := range sizes {
			data := storetest.Pattern(i, n)
			for _, piece := range []int{AheadPart/3 + 1, 2*AheadPart + 5} {
				for _, gap := range []int{0, AheadPart + 3} {
					f, err := b.Open(fmt.Sprintf("f%d", i))
					if err != nil {
						t.Fatal(err)
					}
					buf := make([]byte, piece)
					for off := 0; ; off += piece + gap {
						m, err := f.ReadAt(buf, int64(off))
						if want := data[min(off, n):min(off+piece, n)]; !bytes.Equal(buf[:m], want) || (err == io.EOF) != (off+piece > n) || err != nil && err != io.EOF {
							t.Fatalf("%s: object of %d bytes, %d at %d: %d bytes, %v", name, n, piece, off, m, err)
						}
						if err != nil {
							break
						}
					}
					if m, err := f.ReadAt(buf[:min(piece, n)], 0); m != min(piece, n) || err != nil && err != io.EOF || !bytes.Equal(buf[:m], data[:m]) {
						t.Fatalf("%s: backwards: %d bytes, %v", name, m, err)
					}
					f.Close()
				}
			}
		}
	}
}

// TestAheadEnds: closing in the middle leaves nothing running, and a part that never comes is an error of the read that wants it.
func TestAheadEnds(t *testing.T) {
	server := inMemory(t)
	storetest.Write(t, bucket(t, server, "s3://data", nil), "f", storetest.Pattern(1, 5*AheadPart))
	b := bucket(t, server, "s3://data", fetchingAhead)
	before := runtime.NumGoroutine()
	for range 5 {
		f, err := b.Open("f")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(make([]byte, 100), 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before+8; time.Sleep(20 * time.Millisecond) { // connections that idle
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	p := &s3test.Proxy{Answer: func(_ int64, r *http.Response) error {
		var off int64
		if n, _ := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-", &off); n == 1 && off >= 2*AheadPart && off < 3*AheadPart {
			s3test.Cut(r, 10)
		}
		return nil
	}}
	b = bucket(t, p.Start(t, server), "s3://data", func(o *Options) { fetchingAhead(o); o.Attempts = 2 })
	f, err := b.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := f.ReadAt(make([]byte, 5*AheadPart), 0)
	if n > 2*AheadPart+30 || n < 2*AheadPart || err == nil || err == io.EOF || !strings.Contains(err.Error(), "2 attempts") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestRangedInOrder: a part that is read in pieces costs few requests, and asks for little that nobody reads.
func TestRangedInOrder(t *testing.T) {
	server := inMemory(t)
	data := storetest.Pattern(1, 20<<20)
	storetest.Write(t, bucket(t, server, "s3://data", nil), "f", data)
	b := bucket(t, server, "s3://data", func(o *Options) { o.Ranged = true })
	f, err := b.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const from, to, piece = 1 << 20, 13<<20 + 5, 256 << 10
	buf := make([]byte, piece)
	for off := from; off < to; off += piece {
		if n, err := f.ReadAt(buf, int64(off)); n != piece || err != nil || !bytes.Equal(buf, data[off:off+piece]) {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
	}
	if got := b.Traffic(); got.Get > 8 || got.Received > 2*(to-from) {
		t.Errorf("%d requests and %d bytes for %d", got.Get, got.Received, to-from)
	}
	// Reads here and there ask for what they want and no more.
	before := b.Traffic()
	for i := range 10 {
		off := (i * 7 % 10) << 21
		if n, err := f.ReadAt(buf[:1000], int64(off)); n != 1000 || err != nil || !bytes.Equal(buf[:1000], data[off:off+1000]) {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
	}
	if got := b.Traffic(); got.Get-before.Get != 10 || got.Received-before.Received != 10_000 {
		t.Errorf("%d requests and %d bytes for 10 reads of 1000", got.Get-before.Get, got.Received-before.Received)
	}
}

// TestRangeLies wants a server that answers with another range than was asked for to be found out.
func TestRangeLies(t *testing.T) {
	server := inMemory(t)
	storetest.Write(t, bucket(t, server, "s3://data", nil), "f", storetest.Pattern(1, 100_000))
	for _, lie := range []string{"bytes 0-99/100000", "bytes 1000-1099/99999", "", "nonsense"} {
		p := &s3test.Proxy{Answer: func(_ int64, r *http.Response) error {
			if r.Header.Get("Content-Range") != "" {
				r.Header.Set("Content-Range", lie)
			}
			return nil
		}}
		b := bucket(t, p.Start(t, server), "s3://data", func(o *Options) { o.Ranged, o.Attempts = true, 2 })
		f, err := b.Open("f")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.ReadAt(make([]byte, 100), 1000); err == nil || n != 0 {
			t.Errorf("%q: %d bytes, %v", lie, n, err)
		}
		f.Close()
	}
}
