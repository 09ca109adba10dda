package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/certify"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// CertifyOptions says which data set to measure, and how much of it.
type CertifyOptions struct {
	// Data is where the data set is, Manifest the path of its manifest's header.
	Data, Manifest string
	// SampleBytes, where it is not 0, is how many bytes are enough.
	SampleBytes int64
	// Workers is how many files are read at once; below 1: the number of cores.
	Workers int
	// Out is the file that the certificate is written to; "" for none.
	Out string
	Notify
}

// Certify measures on a data set how much of it repeats and how far it compresses: pkg/certify. Every file that it reads is the one that the
// manifest lists, or the error wraps a *manifest.MismatchError. The page cache is left no warmer than it was.
func Certify(ctx context.Context, o CertifyOptions) (*certificate.Certificate, error) {
	if o.Out != "" {
		if err := apart(o.Data, place{o.Out, "--out"}); err != nil {
			return nil, err
		}
	}
	m, err := manifest.Open(o.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%w; \"benchpin data pin\" and \"benchpin data generate\" make manifests", err)
	}
	defer m.Close()
	st, err := OpenData(ctx, o.Data, store.FolderOptions{Uncached: true, Resident: true})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	h := m.Header()
	o.stage("certify  %s, %s, by %s", counted(h.Count, "file"), gigabytes(h.Bytes), h.Root)
	start := time.Now()
	c, err := certify.Measure(ctx, m, st, certify.Options{SampleBytes: o.SampleBytes, Workers: o.Workers, Progress: func(files, bytes int64) {
		o.progress("certify", files, h.Count, bytes, h.Bytes)
	}})
	if err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	o.stage("measured %s in %.1f s, %s/s", gigabytes(int64(c.Scope.Bytes)), took, gigabytes(int64(float64(c.Scope.Bytes)/max(took, 1e-9))))
	if o.Out == "" {
		return c, nil
	}
	b, err := c.Canonical()
	if err != nil {
		return nil, err
	}
	return c, writeFile(o.Out, b)
}
