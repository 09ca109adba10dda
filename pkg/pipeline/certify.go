package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/certify"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// CertifyOptions says which data set to measure, and how much of it.
type CertifyOptions struct {
	// Data is where the data set is, Manifest the path of its manifest's header.
	Data, Manifest string
	// Workload says how a bucket is reached, beside the environment; nil: the environment alone.
	Workload *workload.Workload
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
		if _, err := os.Lstat(o.Out); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--out %s is there already: a certificate is not written over; choose another file", o.Out)
		}
	}
	m, err := manifest.Open(o.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%w; \"benchpin data pin\" and \"benchpin data generate\" make manifests", err)
	}
	defer m.Close()
	st, err := openPlace(ctx, o.Workload, o.Data, false, store.FolderOptions{Uncached: true, Resident: true})
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

// certifyAgainBytes bounds the data set that verification generates again to measure it: some seconds of work.
const certifyAgainBytes = 128 << 20

// checkCertified is the check of the figures of a certificate.
const checkCertified = "certified"

// checkRepeats is the check of the repeated files of a certificate.
const checkRepeats = "repeats"

// repeatsAgain counts the different files of the manifest again, of every data set: its entries have their digests.
func repeatsAgain(ctx context.Context, v *attest.Verification) {
	c := v.Certificate
	if c == nil {
		return
	}
	var bad []*fault.Fault
	again, err := certify.Files(ctx, v.Manifest)
	switch {
	case err != nil:
		bad = append(bad, fault.New(fault.Unchecked, "repeats.files", err.Error()).In(attest.TitleCertificate))
	case again != c.Repeats.Files:
		bad = append(bad, fault.New(fault.Certificate, "repeats.files", difference(again, c.Repeats.Files)).In(attest.TitleCertificate))
	}
	v.Add(attest.NewCheck(checkRepeats, record.Recomputable, fmt.Sprintf("%d different ones of %d files counted again by the digests of the manifest",
		again.Distinct, again.Count), "how alike files are that differ", bad...))
}

// certificateAgain measures a small generated data set again, in memory, and compares the outcome with the certificate of the archive. Of
// other data sets, whose figures are the word of whoever measured them, there is no such check.
func certificateAgain(ctx context.Context, v *attest.Verification, files *pinnedFiles) {
	c := v.Certificate
	if c == nil || files.recipe == nil || int64(c.Dataset.Bytes) > certifyAgainBytes || files.recipe.Available() != nil {
		return
	}
	evidence := "the data set generated again in memory, and measured again: the same shares and sizes"
	var sample int64
	if c.Scope.Mode == certificate.Sample {
		sample = int64(c.Scope.Bytes)
	}
	again, err := certify.Measure(ctx, v.Manifest, newRemade(ctx, *files.recipe), certify.Options{SampleBytes: sample})
	if err == nil && again.Library != c.Library {
		// Another version may compress otherwise; everything else must be the same.
		evidence += fmt.Sprintf(", but for what zstd makes of it: %s measured, this program has %s", c.Library, again.Library)
		again.Library, again.Compression = c.Library, c.Compression
	}
	var bad []*fault.Fault
	switch {
	case err != nil:
		bad = append(bad, fault.New(fault.Unchecked, "", err.Error()).In(attest.TitleCertificate))
	case !reflect.DeepEqual(again, c):
		bad = append(bad, fault.New(fault.Certificate, "", difference(again, c)).In(attest.TitleCertificate))
	}
	v.Add(attest.NewCheck(checkCertified, record.Recomputable, evidence, "that other data would be as fair", bad...))
}

// remade opens the files of a recipe by making them in memory.
type remade struct {
	ctx     context.Context
	recipe  datagen.Recipe
	numbers map[string]int
}

func newRemade(ctx context.Context, r datagen.Recipe) remade {
	g := remade{ctx, r, make(map[string]int, r.Entries())}
	for i, f := range r.Sorted() {
		g.numbers[f.Path] = i
	}
	return g
}

// Open makes a file.
func (g remade) Open(name string) (store.File, error) {
	i, ok := g.numbers[name]
	if !ok {
		return nil, fmt.Errorf("open %s: the recipe does not make it", name)
	}
	var b bytes.Buffer
	if err := g.recipe.Make(g.ctx, i, &b); err != nil {
		return nil, err
	}
	return made{name: b.Bytes()}.Open(name)
}
