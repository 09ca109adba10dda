package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report/html"
)

// ReportRun reads what a page shows of a run: the record of a run folder or archive, and a summary of its step times, which must be those
// that the record names. The digests of an archive are checked, and no signature is. Memory does not grow with the number of steps.
func ReportRun(ctx context.Context, path string) (html.Run, error) {
	r, err := OpenResult(ctx, path)
	if err != nil {
		return html.Run{}, err
	}
	return reportOf(ctx, path, r, false)
}

// ReportDamaged is ReportRun for an archive that is damaged: what can be read of it, which is its record at least. Step times that are not those
// of the record are left out. It is for a page that says that the archive does not verify.
func ReportDamaged(ctx context.Context, path string) (html.Run, error) {
	l, err := oci.Read(ctx, path)
	if err != nil {
		return html.Run{}, err
	}
	r := &Result{Archive: true, layout: l}
	if err := r.recordOfArchive(); err != nil {
		return html.Run{}, errors.Join(fmt.Errorf("archive %s: %w", path, err), l.Close())
	}
	return reportOf(ctx, path, r, true)
}

func reportOf(ctx context.Context, path string, r *Result, damaged bool) (run html.Run, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	run = html.Run{Name: path, Record: r.Record, Digest: oci.DigestsOf(r.RecordBytes).Blake3Digest().String()}
	if r.Archive {
		run.Archive = r.layout.Manifest.SHA256Digest().String()
	}
	for _, f := range r.Record.Files {
		to, ok := map[string]**html.Series{StepsName: &run.Steps, EvalStepsName: &run.Eval}[f.Name]
		if !ok {
			continue
		}
		if *to, err = r.series(ctx, f); err != nil {
			if damaged && ctx.Err() == nil {
				*to = nil
				continue
			}
			return run, fmt.Errorf("%s of %s: %w", f.Name, path, err)
		}
	}
	return run, nil
}

// series summarises the step times.
func (r *Result) series(ctx context.Context, listed record.File) (*html.Series, error) {
	var f io.ReaderAt
	var size int64
	if r.Archive {
		b := r.blob(listed.Name)
		if b == nil {
			return nil, refused{errors.New("the archive does not hold it")}
		}
		f, size = b, b.Size
	} else {
		file, err := os.Open(filepath.Join(r.folder, listed.Name))
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // read only
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, errors.New("expected a regular file")
		}
		f, size = file, info.Size()
	}
	h := blake3.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return nil, err
	}
	if sum := fmt.Sprintf("blake3:%x", h.Sum(nil)); sum != listed.Blake3 {
		return nil, refused{fmt.Errorf("it is not the file that the record names: expected %s, found %s", listed.Blake3, sum)}
	}
	rows, err := stats.Open(f, size)
	if err != nil {
		return nil, err
	}
	s := html.NewSeries(r.Record.Plan.Accelerators)
	n := 0
	err = rows.Each(func(st *stats.Step) error {
		if n++; n%65536 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return s.Add(&html.Step{Epoch: int(st.Epoch), Rank: int(st.Rank), Start: st.Start, Load: st.Load, Compute: st.Compute, Proc: st.Proc, Barrier: st.Barrier})
	})
	return s, errors.Join(err, rows.Close())
}
