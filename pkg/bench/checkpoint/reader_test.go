package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/store"
)

// divided is a transformer in files of every kind, some of them of several pieces, on 4 ranks.
func divided() Config {
	c := small(4)
	c.ModelType, c.Tensor, c.Pipeline, c.ZeroStage = "other", 2, 2, 1
	c.Transformer.Vocabulary, c.ModelSizeBytes = 40000, 3*pieceSize+5
	return c
}

// saveAll writes one checkpoint of all ranks into a new folder.
func saveAll(t testing.TB, p *Plan, pt Point) *store.Folder {
	t.Helper()
	st := folder(t)
	w := NewWriter(p, st)
	for rank := range p.cfg.Ranks {
		if _, err := w.Save(context.Background(), pt, rank); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func TestLoadReadsWhatWasSaved(t *testing.T) {
	ctx, pt := context.Background(), Point{Number: 3, Epoch: 1, Step: 3}
	p := plan(t, divided())
	st := saveAll(t, p, pt)
	for _, compare := range []bool{true, false} {
		r := NewReader(p, st, compare)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for rank := range 4 {
			wg.Go(func() {
				load, err := r.Load(ctx, pt, rank)
				if err != nil {
					errs[rank] = err
					return
				}
				files := p.Files(rank)
				if len(load.Files) != len(files) || load.Rank != rank || load.Point != pt || load.Started.IsZero() {
					errs[rank] = fmt.Errorf("found %+v", load)
					return
				}
				var sum time.Duration
				for i, f := range load.Files {
					if f.Path != pt.Name()+"/"+files[i].Name || f.Size != files[i].Size || f.Read <= 0 || f.Waited < 0 || f.Waited > f.Read {
						errs[rank] = fmt.Errorf("found %+v", f)
					}
					sum += f.Read
				}
				if sum != load.Duration {
					errs[rank] = fmt.Errorf("took %v, its files %v", load.Duration, sum)
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if _, err := r.Load(ctx, pt, 4); err == nil {
			t.Error("rank 4 of 4: no error")
		}
		if _, err := r.Load(ctx, Point{}, 0); err == nil {
			t.Error("checkpoint 0: no error")
		}
	}
	if load, err := NewReader(plan(t, config()), st, true).Load(ctx, pt, 1); err != nil || len(load.Files) != 0 || !load.Started.IsZero() {
		t.Errorf("a rank that saved nothing: %+v, %v", load, err)
	}
}

// TestLoadFindsEveryAlteration: any flipped bit is found where bytes are compared, and named; nothing is said where they are not.
func TestLoadFindsEveryAlteration(t *testing.T) {
	ctx, pt := context.Background(), Point{Number: 2, Epoch: 1, Step: 2}
	p := plan(t, divided())
	st := saveAll(t, p, pt)
	compared, plain := NewReader(p, st, true), NewReader(p, st, false)
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 3).Draw(t, "rank")
		f := rapid.SampledFrom(p.Files(rank)).Draw(t, "file")
		off := rapid.Int64Range(0, f.Size-1).Draw(t, "offset")
		path := filepath.Join(st.Root(), pt.Name(), f.Name)
		flip := func() {
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			var b [1]byte
			if _, err := file.ReadAt(b[:], off); err != nil {
				t.Fatal(err)
			}
			b[0] ^= 1 << (off % 8)
			if _, err := file.WriteAt(b[:], off); err != nil {
				t.Fatal(err)
			}
		}
		flip()
		defer flip()
		var d *DifferError
		if _, err := compared.Load(ctx, pt, rank); !errors.As(err, &d) || d.Offset != off || d.Path != pt.Name()+"/"+f.Name || d.WrongSize {
			t.Fatalf("byte %d of %s flipped: found %v", off, f.Name, err)
		}
		if err := p.Verify(ctx, st, pt, rank); !errors.Is(err, ErrDiffers) {
			t.Fatalf("byte %d of %s flipped: Verify found %v", off, f.Name, err)
		}
		if _, err := plain.Load(ctx, pt, rank); err != nil {
			t.Fatalf("not compared, and yet: %v", err)
		}
	})
	f := p.Files(0)[0]
	path := filepath.Join(st.Root(), pt.Name(), f.Name)
	if err := os.Truncate(path, f.Size-1); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Load(ctx, pt, 0); !differs("bytes, found")(err) {
		t.Errorf("truncated: found %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Load(ctx, pt, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: found %v", err)
	}
}

// produced is a store whose files are as the plan has them, made while they are read.
type produced struct {
	p       *Plan
	pt      Point
	rank    int
	short   int64 // where a file ends before its size; 0: nowhere
	onRead  func(off int64)
	openErr error
	open    int
	largest int
}

func (s *produced) Open(name string) (store.File, error) {
	if s.openErr != nil {
		return nil, s.openErr
	}
	for _, f := range s.p.Files(s.rank) {
		if s.pt.Name()+"/"+f.Name == name {
			s.open++
			return &producedFile{s: s, f: f, src: newSource(f.arc, s.p.content(s.pt.Number, s.rank, &f))}, nil
		}
	}
	return nil, fs.ErrNotExist
}

type producedFile struct {
	s   *produced
	f   File
	src *source
}

func (f *producedFile) ReadAt(b []byte, off int64) (int, error) {
	if f.s.onRead != nil {
		f.s.onRead(off)
	}
	f.s.largest = max(f.s.largest, len(b))
	n := f.src.read(b)
	if f.s.short > 0 && off+int64(n) > f.s.short {
		return int(f.s.short - off), io.EOF
	}
	return n, nil
}

func (f *producedFile) Info() (store.Info, error) { return store.Info{Size: f.f.Size}, nil }
func (f *producedFile) Close() error              { f.s.open--; return nil }

// TestLoadNeedsFewBuffers: 256 MiB go through what the plan announces.
func TestLoadNeedsFewBuffers(t *testing.T) {
	c := config()
	c.ModelSizeBytes = 256 << 20
	p := plan(t, c)
	st := &produced{p: p, pt: Point{1, 1, 1}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	load, err := NewReader(p, st, true).Load(context.Background(), st.pt, 0)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got, limit := int64(after.TotalAlloc-before.TotalAlloc), p.LoadMemoryBytes()+1<<20; got > limit {
		t.Errorf("%d bytes allocated for %d, expected at most %d", got, c.ModelSizeBytes, limit)
	}
	if st.largest != pieceSize || load.Files[0].Size != p.BytesPerCheckpoint() {
		t.Errorf("read %d bytes in pieces of %d, expected %d in pieces of %d", load.Files[0].Size, st.largest, p.BytesPerCheckpoint(), pieceSize)
	}
}

func TestLoadStopsAtTheFirstError(t *testing.T) {
	before := runtime.NumGoroutine()
	broken, pt := errors.New("broken"), Point{1, 3, 5}
	for _, compare := range []bool{true, false} {
		for _, c := range []struct {
			what string
			st   *produced
			want error
		}{
			{"open", &produced{openErr: broken}, broken},
			{"early end", &produced{short: 2*pieceSize + 9}, io.ErrUnexpectedEOF},
		} {
			c.st.p, c.st.pt = plan(t, full()), pt
			_, err := NewReader(c.st.p, c.st, compare).Load(context.Background(), pt, 0)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "global_epoch3_step5") || c.st.open != 0 {
				t.Errorf("%s: found %v, %d files open", c.what, err, c.st.open)
			}
			if c.st.short > 0 && !strings.Contains(err.Error(), fmt.Sprint("byte ", c.st.short)) {
				t.Errorf("%s: no offset in %v", c.what, err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		st := &produced{p: plan(t, full()), pt: pt, onRead: func(off int64) {
			if off > 0 {
				cancel()
			}
		}}
		if _, err := NewReader(st.p, st, compare).Load(ctx, pt, 0); !errors.Is(err, context.Canceled) || st.open != 0 {
			t.Errorf("cancelled: found %v, %d files open", err, st.open)
		}
		cancel()
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLoadAccountsForComparing: where reading takes no time, it waits for the comparison, and that shows.
func TestLoadAccountsForComparing(t *testing.T) {
	c := config()
	c.ModelSizeBytes = 64 << 20
	p := plan(t, c)
	st := saveAll(t, p, Point{1, 1, 1})
	load, err := NewReader(p, mapped{st}, true).Load(context.Background(), Point{1, 1, 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if load.Files[0].Waited == 0 {
		t.Errorf("no waiting for the comparison of %d bytes in memory: %+v", c.ModelSizeBytes, load.Files[0])
	}
}

// mapped reads files from memory.
type mapped struct{ *store.Folder }

type mappedFile struct {
	*bytes.Reader
	store.File
}

func (f mappedFile) ReadAt(p []byte, off int64) (int, error) { return f.Reader.ReadAt(p, off) }

func (m mapped) Open(name string) (store.File, error) {
	f, err := m.Folder.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(m.Root(), name))
	return mappedFile{bytes.NewReader(b), f}, err
}
