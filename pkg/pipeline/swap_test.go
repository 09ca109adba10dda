package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

const swapYAML = `
model: {name: swap}
framework: pytorch
workflow: {train: true}
dataset: {format: npy, num_files_train: 6, record_length_bytes: 2500}
reader: {data_loader: pytorch, batch_size: 1, read_threads: 2, file_shuffle: seed}
train: {epochs: 2, computation_time: 0}
metric: {au: 0}
benchpin: {accelerators: 2, cold_cache: none}
`

// swapWays are what somebody does with a file so that other bytes are read than were verified. Each gets the file, another sound file of
// the same size, and what the file was.
func swapWays() map[string]func(path, other string, was os.FileInfo) error {
	write := func(path, other string) error {
		b, err := os.ReadFile(other)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(b, 0)
		return errors.Join(err, f.Close())
	}
	restore := func(path string, was os.FileInfo) error { return os.Chtimes(path, was.ModTime(), was.ModTime()) }
	aside := func(path string) string {
		return filepath.Join(filepath.Dir(filepath.Dir(path)), "..", filepath.Base(path)+".new")
	}
	copyTo := func(to, other string) error {
		b, err := os.ReadFile(other)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o666)
	}
	return map[string]func(path, other string, was os.FileInfo) error{
		"renamed over": func(path, other string, _ os.FileInfo) error {
			return errors.Join(copyTo(aside(path), other), os.Rename(aside(path), path))
		},
		"renamed over, with the old times": func(path, other string, was os.FileInfo) error {
			return errors.Join(copyTo(aside(path), other), restore(aside(path), was), os.Rename(aside(path), path))
		},
		"written in place": func(path, other string, _ os.FileInfo) error { return write(path, other) },
		"written in place, with the old times": func(path, other string, was os.FileInfo) error {
			return errors.Join(write(path, other), restore(path, was))
		},
		"one byte, with the old times": func(path, _ string, was os.FileInfo) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			b := make([]byte, 1)
			_, err = f.ReadAt(b, was.Size()-1)
			if err == nil {
				b[0] ^= 1
				_, err = f.WriteAt(b, was.Size()-1)
			}
			return errors.Join(err, f.Close(), restore(path, was))
		},
		"mapped and written, with the old times": func(path, other string, was os.FileInfo) error {
			b, err := os.ReadFile(other)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			m, err := unix.Mmap(int(f.Fd()), 0, int(was.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			copy(m, b)
			return errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m), restore(path, was))
		},
		"linked to another": func(path, other string, _ os.FileInfo) error {
			return errors.Join(os.Remove(path), os.Link(other, path))
		},
		"linked symbolically": func(path, other string, _ os.FileInfo) error {
			return errors.Join(os.Remove(path), os.Symlink(other, path))
		},
		"cut and grown again": func(path, _ string, was os.FileInfo) error {
			return errors.Join(os.Truncate(path, was.Size()/2), os.Truncate(path, was.Size()), restore(path, was))
		},
		"removed": func(path, _ string, _ os.FileInfo) error { return os.Remove(path) },
		"folder replaced": func(path, other string, _ os.FileInfo) error {
			dir := filepath.Dir(path)
			files, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			gone := aside(path) + ".dir"
			errs := []error{os.Rename(dir, gone), os.Mkdir(dir, 0o777)}
			for _, f := range files {
				errs = append(errs, copyTo(filepath.Join(dir, f.Name()), filepath.Join(gone, f.Name())))
			}
			return errors.Join(append(errs, copyTo(path, other), os.RemoveAll(gone))...)
		},
	}
}

// TestSwapIsCaught: whoever swaps a file after it was verified, or looked at, and before it is read, or while the run reads, is caught, every time:
// in every mode, whatever the way. 1,000 times in the long suite.
func TestSwapIsCaught(t *testing.T) {
	tries := 66
	if os.Getenv("BENCHPIN_LONG") != "" {
		tries = 1000
	} else {
		t.Log("66 tries; BENCHPIN_LONG=1 makes 1,000")
	}
	ways := swapWays()
	var names []string
	for name := range ways {
		names = append(names, name)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	modes := []string{workload.VerifyBefore, workload.VerifyInline, workload.VerifyAfter, workload.VerifySample}
	s := newSwap(t)
	for i := range tries {
		way, mode := names[i%len(names)], modes[i/len(names)%len(modes)]
		// Before the first file is read, between two epochs, or when all was read and the run is not over.
		moment := rng.IntN(3)
		err := s.run(t, mode, moment, func(path, other string, was os.FileInfo) error { return ways[way](path, other, was) })
		var replaced *bench.IdentityError
		var mismatch *manifest.MismatchError
		caught := errors.As(err, &replaced) || errors.As(err, &mismatch) || errors.Is(err, bench.ErrRead) ||
			err != nil && (way == "removed" || way == "linked symbolically") && strings.Contains(err.Error(), s.last)
		if !caught || !strings.Contains(err.Error(), "train/") {
			t.Errorf("try %d, mode %s, moment %d, %s: found %v", i, mode, moment, way, err)
		}
	}
}

// TestCleanRunsAreQuiet: data that nobody touches raises no alarm, however often: 1,000 times in the long suite.
func TestCleanRunsAreQuiet(t *testing.T) {
	tries := 40
	if os.Getenv("BENCHPIN_LONG") != "" {
		tries = 1000
	} else {
		t.Log("40 runs; BENCHPIN_LONG=1 makes 1,000")
	}
	s := newSwap(t)
	for i := range tries {
		mode := []string{workload.VerifyBefore, workload.VerifyInline, workload.VerifyAfter, workload.VerifySample}[i%4]
		if err := s.run(t, mode, -1, nil); err != nil {
			t.Fatalf("run %d, mode %s: %v", i, mode, err)
		}
	}
}

// swap is a data set whose files are put back after each try.
type swap struct {
	l     Layout
	tool  record.Tool
	files map[string][]byte
	names []string
	last  string // the file that was swapped
	tries int
	loads map[string]*workload.Resolved
	ready func() // if not nil, is called when the data set is what it was, before the run
}

func newSwap(t *testing.T) *swap {
	t.Helper()
	s := &swap{files: map[string][]byte{}, loads: map[string]*workload.Resolved{}}
	for _, mode := range []string{workload.VerifyBefore, workload.VerifyInline, workload.VerifyAfter, workload.VerifySample} {
		w, err := workload.Load(workload.Source{Name: "swap.yaml", Data: []byte(swapYAML)}, workload.Options{Set: []string{"benchpin.verify=" + mode,
			"benchpin.verify_sample=2"}})
		if err != nil {
			t.Fatal(err)
		}
		s.loads[mode] = w
	}
	s.l, _ = generated(t, s.loads[workload.VerifyBefore].Workload)
	var err error
	if s.tool, err = environment.Tool("test", ""); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		name := fmt.Sprintf("train/img_%d_of_6.npy", i)
		s.names = append(s.names, name)
		if s.files[name], err = os.ReadFile(filepath.Join(s.l.Data(), name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run makes one run, in which the file is swapped at the given moment.
func (s *swap) run(t *testing.T, mode string, moment int, do func(path, other string, was os.FileInfo) error) error {
	t.Helper()
	s.putBack(t)
	if s.ready != nil {
		s.ready()
	}
	s.tries++
	s.last = s.names[s.tries%len(s.names)]
	path, other := filepath.Join(s.l.Data(), s.last), filepath.Join(s.l.Data(), s.names[(s.tries+1)%len(s.names)])
	var once sync.Once
	swapped := false
	at := func() {
		once.Do(func() {
			was, err := os.Stat(path)
			if err == nil {
				err = do(path, other, was)
			}
			if swapped = true; err != nil {
				t.Errorf("swap %s: %v", s.last, err)
			}
		})
	}
	notify := Notify{Stage: func(format string, _ ...any) {
		if moment == 0 && strings.HasPrefix(format, "run ") {
			at()
		}
	}, Progress: func(part string, done, all, _, _ int64) {
		if strings.HasPrefix(part, "epoch") && (moment == 1 && done == all/2 || moment == 2 && done == all) {
			at()
		}
	}}
	out := filepath.Join(t.TempDir(), "run")
	_, err := Run(t.Context(), RunOptions{Workload: s.loads[mode], Data: s.l.Data(), Manifest: s.l.Manifest(), Out: out, Tool: s.tool, Notify: notify})
	if moment >= 0 && !swapped {
		t.Errorf("moment %d did not come", moment)
	}
	return err
}

// putBack makes the data set what it was.
func (s *swap) putBack(t *testing.T) {
	t.Helper()
	for name, b := range s.files {
		path := filepath.Join(s.l.Data(), name)
		if i, err := os.Lstat(path); err == nil && i.Mode().IsRegular() {
			if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, b) {
				continue
			}
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
