package datagen

import (
	"context"
	"fmt"
	"io"
	"math"
)

// Sizes that follow from content are known when the content was made. Before that there is an estimate: the sizes of some files,
// measured, against the most that they could have.
const (
	// estimateFiles and estimateBytes bound the files that an estimate measures.
	estimateFiles = 8
	estimateBytes = 64 << 20
	// measureBuffer is the memory in which files are measured.
	measureBuffer = 256 << 10
)

// Exact reports whether FileSpec.Size is the size of every file. If not, it is the most that a data file can have.
func (r Recipe) Exact() bool { return r.measured == nil }

// Measure returns the exact size of entry i in bytes. Where FileSpec.AtMost is true, it takes as long as making the file.
func (r Recipe) Measure(i int) (int64, error) {
	f := r.Entry(i)
	if !f.AtMost {
		return f.Size, nil
	}
	n, err := r.measured.Measure(f.Layout, r.content(f), make([]byte, measureBuffer))
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", f.Path, err)
	}
	if n > f.Size {
		return 0, fmt.Errorf("measure %s: it has %d bytes and could have %d at most; this is a fault of the format %s", f.Path, n, f.Size, r.doc.Format)
	}
	return n, nil
}

// Estimate returns the size of a file in bytes: exact where it can be known without making it, else estimated from the first ones.
func (r Recipe) Estimate(f FileSpec) int64 {
	if !f.AtMost {
		return f.Size
	}
	return max(1, int64(math.Round(float64(f.Size)*r.ratio())))
}

// measuredRatio measures some files, spread over the data set, and returns their part of what they could have.
func (r *Recipe) measuredRatio() float64 {
	var size, most int64
	n := min(r.Files(), estimateFiles)
	for k := range n {
		i := k * (r.Files() / n)
		f := r.File(i)
		if most+f.Size > estimateBytes {
			break
		}
		got, err := r.Measure(i)
		if err != nil {
			break // generating will say so
		}
		size, most = size+got, most+f.Size
	}
	if most == 0 {
		return 1
	}
	return float64(size) / float64(most)
}

// TotalBytes returns the bytes of all files, companions included: exactly, or by Estimate. Where sizes differ it computes them all, at about
// 10 million files a second.
func (r Recipe) TotalBytes() int64 {
	total, _ := r.totalBytes(context.Background()) // its only error is the context's
	return total
}

// totalBytes is TotalBytes that ends with ctx.
func (r Recipe) totalBytes(ctx context.Context) (int64, error) {
	// A size that depends on the number of the file (synthetic) grows with it.
	if r.spread == 0 && r.File(0).Size == r.File(r.Files()-1).Size {
		total := saturated(r.Estimate(r.File(0)), int64(r.Files()))
		for c := range r.companions {
			total = sum(total, saturated(r.Companion(0, c).Size, int64(r.Files())))
		}
		return total, nil
	}
	total := int64(0)
	for i := range r.Files() {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		f := r.File(i)
		total = sum(total, r.Estimate(f))
		for c := range r.companions {
			n, _ := r.companions[c].Size(f.Layout)
			total = sum(total, n)
		}
		if total == math.MaxInt64 {
			return total, nil
		}
	}
	return total, nil
}

// sum adds numbers that are 0 or more, and stops at math.MaxInt64.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func saturated(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Digest computes the BLAKE3 digest and the size of entry i from the recipe alone, without any storage: what an auditor compares with
// the entry of a manifest. A build that cannot make such files refuses (Available). It takes the time to produce and hash the file on one core, and returns ctx's cause when it is cancelled.
func (r Recipe) Digest(ctx context.Context, i int) ([32]byte, int64, error) {
	if err := r.Available(); err != nil {
		return [32]byte{}, 0, err
	}
	w := (&generator{r: r}).newWorker()
	m, err := w.produce(ctx, r.Entry(i), io.Discard)
	return m.digest, m.size, err
}
