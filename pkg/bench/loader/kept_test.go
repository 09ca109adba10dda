package loader

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

// indexed reads a sample by means of two companions.
type indexed struct{ records }

func (indexed) ReadSampleWith(f io.ReaderAt, size int64, open func(i int) (io.ReaderAt, int64, error), k int, buf []byte) (format.Sample, error) {
	for i := range 2 {
		c, n, err := open(i)
		if err != nil {
			return format.Sample{}, err
		}
		if n != 80 {
			return format.Sample{}, fmt.Errorf("companion of %d bytes", n)
		}
		if _, err := c.ReadAt(buf[:8], int64(k)*8); err != nil {
			return format.Sample{}, err
		}
	}
	_, err := f.ReadAt(buf[:100], int64(k)*100)
	return format.Sample{Logical: 100, Asked: 116}, err
}

// tracked is a store that counts what is open.
type tracked struct {
	*memory
	open atomic.Int64
}

type trackedFile struct {
	store.File
	t *tracked
}

func (t *tracked) Open(name string) (store.File, error) {
	f, err := t.memory.Open(name)
	if err == nil {
		t.open.Add(1)
	}
	return &trackedFile{f, t}, err
}

func (f *trackedFile) Close() error { f.t.open.Add(-1); return f.File.Close() }

// TestKeptFiles: how often files and companions are opened, for 10 samples of one file after the other, over two epochs.
func TestKeptFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		keep  Keep
		whole bool
		opens int
		asked int64
	}{
		{"each sample opens file and companions", KeepSample, false, 2 * 20 * 3, 2 * 20 * 116},
		{"each run of samples does", KeepRun, false, 2 * 2 * 3, 2 * 20 * 116},
		{"each file once", KeepAll, false, 2 * 3, 2 * 20 * 116},
		{"a whole file once a run", KeepRun, true, 2 * 2 * 3, 2 * 2 * 116},
		{"a whole file once", KeepAll, true, 2 * 3, 2 * 116},
		{"a whole file for each sample", KeepSample, true, 2 * 20 * 3, 2 * 20 * 116},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &tracked{memory: &memory{size: 1000, info: func(name string) store.Info {
				if strings.Contains(name, ".") {
					return store.Info{Size: 80}
				}
				return store.Info{Size: 1000}
			}}}
			src := source(t, m.memory, 4096, 4)
			src.Store, src.Decoder, src.Keep, src.Whole = m, indexed{records{10}}, c.keep, c.whole
			src.Companions = []func(string) string{func(p string) string { return p + ".off" }, func(p string) string { return p + ".sz" }}
			l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, BatchSize: 5, Steps: 4, Workers: 1, Prefetch: 1})
			if err != nil {
				t.Fatal(err)
			}
			var asked int64
			for epoch := range 2 {
				l.Start(epoch+1, perFile{10})
				for {
					b, err := l.Next(t.Context())
					if err == io.EOF {
						break
					} else if err != nil {
						t.Fatal(err)
					}
					asked += b.Asked()
					for _, s := range b.Samples {
						if s.Logical != 100 {
							t.Fatalf("found %+v", s)
						}
					}
				}
			}
			l.Close()
			l.Wait()
			if len(m.opened) != c.opens || asked != c.asked || m.open.Load() != 0 {
				t.Errorf("%d opens, %d bytes, %d files still open; expected %d, %d, 0", len(m.opened), asked, m.open.Load(), c.opens, c.asked)
			}
		})
	}
}

// perFile is the order of files of n samples.
type perFile struct{ n int64 }

func (o perFile) Sample(_ int, pos int64) (int64, int64, int64) { return pos, pos / o.n, pos % o.n }

// TestCompanionIdentity: a companion that is not the verified one stops the run and is named; each one opened is compared.
func TestCompanionIdentity(t *testing.T) {
	for bent := range 4 { // 0: none; 1: the file; 2 and 3: its companions
		m := &memory{size: 1000, info: func(name string) store.Info {
			i := store.Info{Size: 80, Inode: uint64(len(name))}
			if !strings.Contains(name, ".") {
				i.Size = 1000
			}
			if bent > 0 && name == []string{"f0", "f0.off", "f0.sz"}[bent-1] {
				i.ModTime = 9
			}
			return i
		}}
		src := source(t, m, 4096, 4)
		src.Decoder = indexed{records{10}}
		src.Companions = []func(string) string{func(p string) string { return p + ".off" }, func(p string) string { return p + ".sz" }}
		src.Identity = func(i int64, c int) (store.Info, bool) {
			name := []string{"f0", "f0.off", "f0.sz"}[c]
			return store.Info{Size: []int64{1000, 80, 80}[c], Inode: uint64(len(name))}, true
		}
		l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, BatchSize: 1, Steps: 1})
		if err != nil {
			t.Fatal(err)
		}
		l.Start(1, perFile{10})
		_, err = l.Next(t.Context())
		var bad *IdentityError
		if errors.As(err, &bad) != (bent > 0) || bad != nil && bad.Path != []string{"f0", "f0.off", "f0.sz"}[bent-1] {
			t.Errorf("bent %d: found %v", bent, err)
		}
		if want := []int64{3, 1, 2, 3}[bent]; src.Rechecked() != want {
			t.Errorf("bent %d: compared %d identities, expected %d", bent, src.Rechecked(), want)
		}
		l.Close()
	}
}

// remembering is a container whose readers remember the last file.
type remembering struct{ records }

func (r remembering) Remember() format.SampleReader { return &lastFile{r: r.records, file: -1} }

type lastFile struct {
	r    records
	file int64
}

func (l *lastFile) Forget() { l.file = -1 }

func (l *lastFile) ReadSampleOf(file int64, f io.ReaderAt, size int64, k int, buf []byte) (format.Sample, error) {
	if file == l.file {
		return format.Sample{Logical: 100}, nil
	}
	l.file = file
	return l.r.ReadSample(f, size, k, buf)
}

// TestReadersRemember: what a worker's reader remembers is asked for once, until the next epoch, or for the whole run where everything is kept.
func TestReadersRemember(t *testing.T) {
	for keep, want := range map[Keep]int64{KeepSample: 2 * 20 * 100, KeepRun: 2 * 2 * 100, KeepAll: (2 + 2) * 100} {
		m := &memory{size: 1000}
		src := source(t, m, 4096, 4)
		src.Decoder, src.Keep = remembering{records{10}}, keep
		l, err := NewPyTorch(t.Context(), PyTorchConfig{Source: src, BatchSize: 5, Steps: 4, Workers: 1, Prefetch: 1})
		if err != nil {
			t.Fatal(err)
		}
		var asked int64
		for epoch := range 2 {
			l.Start(epoch+1, perFile{10})
			for range 4 {
				b, err := l.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				asked += b.Asked()
			}
		}
		l.Close()
		if asked != want {
			t.Errorf("keep %d: asked for %d bytes, expected %d", keep, asked, want)
		}
	}
}
