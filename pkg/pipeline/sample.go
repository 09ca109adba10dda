package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/stream"
	"github.com/benchpin/benchpin/pkg/workload"
)

// sampleDomain is the family of draws for benchpin.verify: sample.
const sampleDomain = "benchpin/verify-sample"

// drawSample draws n different numbers below of, by the seed: Floyd's algorithm, draw i of stream 0 being uniform below of-n+i+1.
// (J. Bentley, R. Floyd: Programming pearls, a sample of brilliance. Communications of the ACM 30 (9), 1987.)
func drawSample(seed uint64, of, n int64) map[int64]bool {
	chosen := make(map[int64]bool, n)
	draw := stream.New(sampleDomain, 1, seed)
	for i := range n {
		last := of - n + i
		if k := int64(draw.Uniform(0, uint64(i), uint64(last)+1)); !chosen[k] {
			chosen[k] = true
		} else {
			chosen[last] = true
		}
	}
	return chosen
}

// sampled is a sample of the files of a data set.
type sampled struct {
	paths        map[string]bool
	files, bytes int64
	verified     record.SampleVerification
}

// sampleOf draws the sample of a manifest's files that a workload asks for, by a seed in decimal digits.
func sampleOf(ctx context.Context, m *manifest.Manifest, w *workload.Workload, seed string) (*sampled, error) {
	number, err := strconv.ParseUint(seed, 10, 64)
	if err != nil || strconv.FormatUint(number, 10) != seed {
		return nil, fmt.Errorf("seed of the sample: expected a number of 64 bits in decimal digits, found %q", seed)
	}
	text := w.Benchpin.VerifySample
	share, err := workload.ParseShare(text)
	if err != nil {
		return nil, fmt.Errorf("benchpin.verify_sample: %w", err)
	}
	of := m.Header().Count
	s := &sampled{paths: map[string]bool{}, verified: record.NewSample(text, seed, record.Int(of), record.Int(share.Of(of)))}
	chosen := drawSample(number, of, share.Of(of))
	index := int64(0)
	err = m.Entries(ctx, func(e manifest.Entry) error {
		if chosen[index] {
			s.paths[e.Path] = true
			s.files++
			s.bytes += e.Size
		}
		index++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return s, nil
}

// newSeed draws a seed that nobody could know.
func newSeed() string {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return strconv.FormatUint(binary.BigEndian.Uint64(b[:]), 10)
}
