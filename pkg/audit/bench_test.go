package audit

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// BenchmarkChallenge draws 300 chunks of a manifest of 10^5 made-up entries: the cost is that of reading the manifest twice.
func BenchmarkChallenge(b *testing.B) {
	const entries = 100_000
	var out bytes.Buffer
	w := manifest.NewWriter(&out, manifest.Meta{})
	for i := range entries {
		e := manifest.Entry{Path: fmt.Sprintf("train/%07d.npz", i), Size: int64(i%4000) << 10, Digest: blake3.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)})}
		if err := w.Add(e); err != nil {
			b.Fatal(err)
		}
	}
	h, err := w.Close()
	if err != nil {
		b.Fatal(err)
	}
	head, err := h.Encode()
	if err != nil {
		b.Fatal(err)
	}
	m, err := manifest.OpenReaders(head, bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if _, err := NewChallenge(context.Background(), m, fmt.Sprint(i), 300); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
}
