package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/benchpin/benchpin/pkg/store/storetest"
)

// quick is a server that answers GET and HEAD of any object of one size, as fast as Go's does, or where slow is set at 50 MB/s by each
// connection, as servers far away do.
func quick(b *testing.B, data []byte, slow bool) string {
	at := time.Unix(1700000000, 0)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"`+strconv.Itoa(len(data))+`"`)
		w.Header().Set("Content-Type", contentType)
		if slow {
			w = &slowly{ResponseWriter: w}
		}
		http.ServeContent(w, r, "", at, bytes.NewReader(data))
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// slowly sleeps 20 ms for each 10^6 bytes.
type slowly struct {
	http.ResponseWriter
	due time.Time
}

func (s *slowly) Write(p []byte) (int, error) {
	if s.due.IsZero() {
		s.due = time.Now()
	}
	s.due = s.due.Add(time.Duration(len(p)) * 20)
	n, err := s.ResponseWriter.Write(p)
	time.Sleep(time.Until(s.due))
	return n, err
}

// BenchmarkReads reads whole objects by some readers through the store and, in turns in the same loop, by nothing but minio-go's own GET of the
// same objects into the same buffers: the ratio of the two is what the store costs, and 1 is nothing.
func BenchmarkReads(b *testing.B) {
	for _, c := range []struct {
		name          string
		readers, size int
		ahead         int
		slow          bool
	}{
		{"100KB", 8, 100_000, 0, false}, {"4MiB", 8, 4 << 20, 0, false}, {"64MiB", 8, 64 << 20, 0, false}, {"64MiB/ahead", 8, 64 << 20, 4, false},
		{"64MiB/slow", 1, 64 << 20, 0, true}, {"64MiB/slow/ahead", 1, 64 << 20, 4, true},
	} {
		readers, size, workers := c.readers, c.size, c.ahead
		b.Run(c.name, func(b *testing.B) {
			endpoint := quick(b, storetest.Pattern(1, size), c.slow)
			st, err := Open(b.Context(), "s3://data", Options{Endpoint: endpoint, AccessKey: "key", SecretKey: "secret-secret", Ahead: workers})
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			plain, err := minio.NewCore(strings.TrimPrefix(endpoint, "http://"), &minio.Options{Creds: credentials.NewStaticV4("key", "secret-secret", ""),
				Region: "us-east-1", BucketLookup: minio.BucketLookupPath})
			if err != nil {
				b.Fatal(err)
			}
			objects := max(readers, (64<<20)/size)
			all := func(read func(name string, buf []byte) error) time.Duration {
				start := time.Now()
				names := make(chan string, objects)
				for i := range objects {
					names <- "o" + strconv.Itoa(i)
				}
				close(names)
				var wg sync.WaitGroup
				for range readers {
					wg.Go(func() {
						buf := make([]byte, 256<<10)
						for name := range names {
							if err := read(name, buf); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				return time.Since(start)
			}
			var ours, theirs time.Duration
			b.SetBytes(int64(objects * size))
			for b.Loop() {
				ours += all(func(name string, buf []byte) error {
					f, err := st.Open(name)
					if err != nil {
						return err
					}
					defer f.Close()
					for off := int64(0); ; {
						n, err := f.ReadAt(buf, off)
						if off += int64(n); err == io.EOF && off == int64(size) {
							return nil
						}
						if err != nil {
							return fmt.Errorf("at %d: %w", off, err)
						}
					}
				})
				theirs += all(func(name string, buf []byte) error {
					body, _, _, err := plain.GetObject(b.Context(), "data", name, minio.GetObjectOptions{})
					if err != nil {
						return err
					}
					defer body.Close()
					n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{body}, buf)
					if n != int64(size) && err == nil {
						err = io.ErrUnexpectedEOF
					}
					return err
				})
			}
			n := float64(b.N) * float64(objects*size) / 1e6
			b.ReportMetric(n/ours.Seconds(), "MB/s")
			b.ReportMetric(n/theirs.Seconds(), "plain-MB/s")
			b.ReportMetric(theirs.Seconds()/ours.Seconds(), "of-plain")
		})
	}
}
