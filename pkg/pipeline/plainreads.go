package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Bounds of the plain reads that follow a run which missed its AU.
const (
	// plainTime is how long one measurement reads, plainDrop how long files are dropped from the page cache for it.
	plainTime = time.Second
	plainDrop = time.Second
	// plainMore is how many times as many readers the second measurement has; mostPlain bounds both.
	plainMore = 4
	mostPlain = 256
	// plainPiece is the size of a read.
	plainPiece = 1 << 20
)

// plainReads measures what plain reads of the data set come to, for what is said of a missed AU, and hands it to PlainReads. It changes
// nothing about the run, which has its record already. Of several processes none does: one alone says nothing about all.
func (r *run) plainReads(ctx context.Context, rec *record.Record) {
	if r.PlainReads == nil || several(r.World) || rec.Metrics.Met == nil || *rec.Metrics.Met || bench.CheckpointOnly(r.w) {
		return
	}
	data, err := r.reading(ctx)
	if err == nil {
		defer data.Close()
		p := plain{open: data.Open, files: r.files.dataset()}
		if r.w.Benchpin.ColdCache != workload.ColdNone && !IsBucket(r.Data) {
			p.evict = r.data.Evict
		}
		r.stage("reads    the data set plainly, because AU was missed: is it the store")
		var found *report.PlainReads
		if found, err = p.measure(ctx, r.plan.Accelerators*max(1, r.plan.ReadThreads)); err == nil {
			r.PlainReads(found)
		}
	}
	if err != nil {
		r.stage("reads    not measured: %v", err)
	}
}

// plain reads the training files of a data set from end to end.
type plain struct {
	open  func(name string) (store.File, error)
	evict func(name string) error // nil where the run did not drop them either
	files bench.Dataset
	next  int // the file that is read next; all are read in turn
}

// measure reads with as many readers as the run had, and with more.
func (p *plain) measure(ctx context.Context, readers int) (*report.PlainReads, error) {
	found := &report.PlainReads{Cold: p.evict != nil}
	readers = min(readers, mostPlain, p.files.Files())
	for _, n := range []int{readers, min(plainMore*readers, mostPlain, p.files.Files())} {
		if len(found.Rates) > 0 && found.Rates[0].Readers == n {
			break
		}
		rate, err := p.once(ctx, n)
		if err != nil {
			return nil, err
		}
		found.Rates = append(found.Rates, rate)
	}
	return found, nil
}

// once reads with n readers for plainTime, or until every file was read.
func (p *plain) once(ctx context.Context, n int) (report.PlainRate, error) {
	count := p.files.Files()
	if p.evict != nil {
		// Only what was dropped is read. Dropping takes its time where there are many files.
		dropped := 0
		for began := time.Now(); dropped < count && (dropped < n || time.Since(began) < plainDrop); dropped++ {
			if err := p.evict(p.files.Path((p.next + dropped) % count)); err != nil {
				return report.PlainRate{}, fmt.Errorf("drop files from the page cache: %w", err)
			}
		}
		count = dropped
	}
	var taken, bytes, done atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range n {
		g.Go(func() error {
			buf := store.AlignedBuffer(plainPiece)
			for time.Since(began) < plainTime && gctx.Err() == nil {
				i := taken.Add(1) - 1
				if i >= int64(count) {
					return nil
				}
				read, err := p.read(p.files.Path((p.next+int(i))%p.files.Files()), buf, began)
				bytes.Add(read)
				if err != nil {
					return err
				}
				done.Add(1)
			}
			return context.Cause(gctx)
		})
	}
	if err := g.Wait(); err != nil {
		return report.PlainRate{}, err
	}
	took := time.Since(began)
	p.next = (p.next + int(min(taken.Load(), int64(count)))) % p.files.Files()
	if bytes.Load() == 0 || took <= 0 {
		return report.PlainRate{}, errors.New("nothing could be read in a second")
	}
	return report.PlainRate{Readers: n, Files: done.Load(), BytesPerSecond: float64(bytes.Load()) / took.Seconds()}, nil
}

// read reads a file to its end, or until the time is over: what was read until then counts.
func (p *plain) read(name string, buf []byte, began time.Time) (n int64, err error) {
	f, err := p.open(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for time.Since(began) < plainTime {
		got, err := f.ReadAt(buf, n)
		n += int64(got)
		if errors.Is(err, io.EOF) || err == nil && got == 0 {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("%s at %d: %w", name, n, err)
		}
	}
	return n, nil
}
