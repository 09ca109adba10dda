package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/store"
)

// Opener opens a file of the data set by its path.
type Opener interface {
	Open(name string) (store.File, error)
}

// RankOpener is an Opener that has several ways to its files and deals them to ranks.
type RankOpener interface {
	OpenFor(rank int, name string) (store.File, error)
}

// Decoder reads sample k out of a file of size bytes, using buf and no other memory. One that is a format.CompanionReader reads by
// means of the companions where the Source has them.
type Decoder interface {
	ReadSample(f io.ReaderAt, size int64, k int, buf []byte) (format.Sample, error)
}

// Keep says how long a worker keeps a file that it opened.
type Keep int

const (
	// KeepSample closes a file after each sample (DLIO's index readers).
	KeepSample Keep = iota
	// KeepRun closes it when the worker's next sample is in another file (DLIO's iterating readers, and those that remember what they
	// read of a file: format.Remembering).
	KeepRun
	// KeepAll never closes it (reader.read_type memory).
	KeepAll
)

// Source is what the loaders of all accelerators of a run read from. It is shared by their workers; the functions given must
// be safe for concurrent use and pure.
type Source struct {
	Store   Opener
	Decoder Decoder
	Buffers *Buffers
	// Path and Size are the path and the size in bytes of the data set's file i; SampleBytes is the size of one of its samples, for
	// containers that do not say it. Nil: they all do.
	Path        func(i int64) string
	Size        func(i int64) int64
	SampleBytes func(i int64) int64
	// Companions are the paths of the companions of a data file, given its own.
	Companions []func(data string) string
	// Identity returns what was known of file i when its bytes were verified, and false where nothing is known: companion 0 is the
	// data file itself, 1 the first of Companions. Nil: nothing is known of any file.
	Identity func(i int64, companion int) (store.Info, bool)
	// Shared: SampleBytes is the size of every sample, whatever its container says of it.
	Shared bool
	// Preprocess returns how long a worker sleeps after it read the sample at position pos. Nil: not at all.
	Preprocess func(epoch, rank int, pos int64) time.Duration
	// Keep says how long files stay open. Whole: a file that was read once stays in memory while it is kept, as containers that read
	// whole files do, and nothing more is asked of it. (Nothing is really kept but that it was read.)
	Keep  Keep
	Whole bool
	// Idle: samples are handed out and no file is opened, as DLIO's synthetic reader does.
	Idle bool
	// Base is the moment that Begun and Ready of batches count from. It is set before the first epoch begins.
	Base time.Time
	// Capture keeps what is read until it is hashed. Nil: nothing is kept.
	Capture *Capturing

	rechecked atomic.Int64
	asked     sync.Map // of device numbers to *atomic.Int64
}

// AskedOf returns how many bytes were asked of the files of each device so far, companions counted with their data files.
func (s *Source) AskedOf() map[uint64]int64 {
	m := map[uint64]int64{}
	s.asked.Range(func(device, n any) bool {
		m[device.(uint64)] = n.(*atomic.Int64).Load()
		return true
	})
	return m
}

// askedOn is the counter of one device.
func (s *Source) askedOn(device uint64) *atomic.Int64 {
	if n, ok := s.asked.Load(device); ok {
		return n.(*atomic.Int64)
	}
	n, _ := s.asked.LoadOrStore(device, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// Rechecked is the number of times that a file's identity was compared again when a worker opened it.
func (s *Source) Rechecked() int64 { return s.rechecked.Load() }

// sampleBytes is the size of a sample of file i where the file itself does not say it.
func (s *Source) sampleBytes(i int64) int64 {
	if s.SampleBytes == nil {
		return 0
	}
	return s.SampleBytes(i)
}

// IdentityError says that a file is not the one that was verified.
type IdentityError struct {
	Path            string
	Expected, Found store.Info
}

func (e *IdentityError) Error() string {
	d := func(i store.Info) string {
		return fmt.Sprintf("size %d, modified %s, changed %s, inode %d on device %d", i.Size, stamp(i.ModTime), stamp(i.ChangeTime), i.Inode, i.Device)
	}
	return fmt.Sprintf("%s was changed or replaced after it was verified, or looked at: expected %s; found %s; "+
		"leave the data set alone during a run, and start again", e.Path, d(e.Expected), d(e.Found))
}

// ErrOther is wrapped by the errors about a file that is missing or has another size than the manifest says.
var ErrOther = errors.New("the data set is not the one of its manifest")

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z") }

// opened is what files of a store may have: their identity as it was found when they were opened, after the name was resolved.
type opened interface{ Opened() store.Info }

// check compares an open file with what is known of it: its size always, where the plan counted one, and its whole identity where it
// was verified. It returns the size.
func (s *Source) check(f store.File, name string, file int64, companion int) (int64, error) {
	var info store.Info
	if o, ok := f.(opened); ok {
		info = o.Opened()
	} else {
		var err error
		if info, err = f.Info(); err != nil {
			return 0, fmt.Errorf("look at open file %s: %w", name, err)
		}
	}
	if s.Identity != nil {
		if want, ok := s.Identity(file, companion); ok {
			s.rechecked.Add(1)
			if info.Size != want.Size || info.ModTime != want.ModTime || info.ChangeTime != want.ChangeTime ||
				info.Inode != want.Inode || info.Device != want.Device {
				return 0, &IdentityError{Path: name, Expected: want, Found: info}
			}
			return info.Size, nil
		}
	}
	if companion > 0 {
		return info.Size, nil
	}
	if want := s.Size(file); info.Size != want {
		return 0, fmt.Errorf("%s has another size than the manifest says: %w: expected %d bytes, found %d; "+
			"verify the data set (benchpin data verify)", name, ErrOther, want, info.Size)
	}
	return info.Size, nil
}

// since is the offset of t from Base, 0 where there is none. It is at least 1 where there is, so that 0 means nothing else.
func (s *Source) since(t time.Time) time.Duration {
	if s.Base.IsZero() {
		return 0
	}
	return max(1, t.Sub(s.Base))
}

// openFile opens file i of the data set, or one of its companions, and checks that it is the right one.
func (s *Source) openFile(rank int, i int64, companion int) (f store.File, name string, size int64, err error) {
	name = s.Path(i)
	if companion > 0 {
		name = s.Companions[companion-1](name)
	}
	if dealt, ok := s.Store.(RankOpener); ok {
		f, err = dealt.OpenFor(rank, name)
	} else {
		f, err = s.Store.Open(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, name, 0, fmt.Errorf("%w: a file of it is missing: %w; verify the data set (benchpin data verify)", ErrOther, err)
	} else if err != nil {
		return nil, name, 0, fmt.Errorf("open %s: %w", name, err)
	}
	if size, err = s.check(f, name, i, companion); err != nil {
		f.Close()
		return nil, name, 0, err
	}
	return f, name, size, nil
}

// longestNap bounds how long a worker takes to notice that the run has ended.
const longestNap = 100 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		time.Sleep(min(left, longestNap))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}
