package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// lyingMeter is a storage meter whose counters are what the test says, look after look.
type lyingMeter struct {
	looks []StorageLook
	n     int
}

func (m *lyingMeter) Look(context.Context) (StorageLook, error) {
	l := m.looks[min(m.n, len(m.looks)-1)]
	m.n++
	return l, nil
}

func lookOf(disk, cached int64) StorageLook {
	return StorageLook{Files: 16, LookedAt: 16, FileSystems: []FileSystemLook{{MountPoint: "/", Type: "ext4", Disks: []string{"sda"}, Counted: true,
		Disk: Count{Bytes: disk}, Network: Count{Absent: "none"}, Cached: Count{Bytes: cached}}}}
}

// lyingStore says that it read n bytes whatever was asked.
type lyingStore struct {
	*sim
	n int
}

func (s lyingStore) Open(name string) (store.File, error) {
	f, err := s.sim.Open(name)
	return lyingFile{f, s.n}, err
}

type lyingFile struct {
	store.File
	n int
}

func (f lyingFile) ReadAt([]byte, int64) (int, error) { return f.n, nil }

// TestLies: a store, a clock or a counter that says what cannot be fails the run, with a reason, and no figure is printed.
func TestLies(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(o *Options)
		want   []string
		is     error
	}{
		{"a device counter that goes backwards", func(o *Options) {
			var n int64 = 1e9
			o.DeviceBytes = func() (int64, error) { n -= 1000; return n, nil }
		}, []string{"device bytes of epoch 1: -1000"}, stats.ErrImpossible},
		{"a disk counter that goes backwards", func(o *Options) {
			o.Storage = &lyingMeter{looks: []StorageLook{lookOf(5000, 0), lookOf(4000, 0)}}
		}, []string{"storage of epoch 1", "bytes_disk of / is -1000", "a counter went backwards"}, stats.ErrImpossible},
		{"a page cache of less than nothing", func(o *Options) {
			o.Storage = &lyingMeter{looks: []StorageLook{lookOf(0, -5)}}
		}, []string{"bytes_cached_before of / is -5"}, stats.ErrImpossible},
		{"a file system that vanishes", func(o *Options) {
			o.Storage = &lyingMeter{looks: []StorageLook{lookOf(0, 0), {}}}
		}, []string{"1 file systems before the epoch, and 0 after it"}, nil},
		{"files on a file system that nobody looked at", func(o *Options) {
			l := lookOf(0, 0)
			l.FileSystems[0].Device = 77
			o.Storage = &lyingMeter{looks: []StorageLook{l}}
		}, []string{"files of device 0 were read"}, nil},
		{"a clock that goes backwards", func(o *Options) {
			var n atomic.Int64
			base := time.Now()
			o.Now = func() time.Time { return base.Add(time.Hour - time.Duration(n.Add(1))*time.Minute) }
		}, nil, stats.ErrImpossible},
		{"a store that reads more than was asked", func(o *Options) { o.Data = lyingStore{o.Data.(*sim), 1 << 30} },
			[]string{"impossible number of bytes", "1073741824 bytes for", "img_0.npy"}, nil},
		{"a store that reads less and says nothing", func(o *Options) { o.Data = lyingStore{o.Data.(*sim), 1} },
			[]string{"impossible number of bytes", "img_0.npy"}, nil},
		{"a store that reads less than nothing", func(o *Options) { o.Data = lyingStore{o.Data.(*sim), -1} },
			[]string{"impossible number of bytes", "img_0.npy"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorkload(func(w *workload.Workload) { w.Train.ComputationTime, w.Reader.ReadThreads = constant(100*ms), 0 })
			simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, 5*ms, 0, 0) }, c.change,
				func(t *testing.T, _ *Plan, res *Result, err error) {
					contains(t, err, c.want...)
					if c.is != nil && !errors.Is(err, c.is) {
						t.Errorf("expected %v, found %v", c.is, err)
					}
					if res == nil || res.Complete || res.Reason == "" {
						t.Fatalf("the run counts as complete: %+v", res)
					}
					if res.Metrics.Met != nil {
						t.Errorf("the run is judged: AU %+v", res.Metrics.AU)
					}
				})
		})
	}
}

// TestClockWentBack: a clock that is set back fails a run, and one that is only slewed, or set forward, does not.
func TestClockWentBack(t *testing.T) {
	for _, c := range []struct {
		took, wall time.Duration
		bad        bool
	}{{time.Minute, time.Minute, false}, {time.Minute, time.Minute - clockSlack, false}, {time.Minute, time.Hour, false},
		{time.Minute, time.Minute - clockSlack - 1, true}, {time.Minute, -time.Hour, true}} {
		if err := clockWentBack(c.took, c.wall); (err != nil) != c.bad || c.bad && !errors.Is(err, ErrClock) {
			t.Errorf("took %v, the clock says %v: %v", c.took, c.wall, err)
		}
	}
}

// TestFewerBytes: step times that ask for less than the files have, or whose readers worked longer than there was time, are no run.
func TestFewerBytes(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) { w.Train.ComputationTime = constant(100 * ms) })
	var o Options
	simulate(t, w, func(t *testing.T) *sim { return newSim(t, 16, 1, 5*ms, 0, 0) }, func(changed *Options) { o = *changed },
		func(t *testing.T, p *Plan, _ *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			rows := rowsOf(t, o.Steps)
			for name, change := range map[string]func(s *stats.Step){
				"fewer bytes":            func(s *stats.Step) { s.Bytes-- },
				"more work than time":    func(s *stats.Step) { s.Read += int64(time.Hour) },
				"more opening than time": func(s *stats.Step) { s.Open += int64(time.Hour) },
				"nothing":                func(*stats.Step) {},
			} {
				changed := append([]stats.Step{}, rows...)
				change(&changed[7])
				var b bytes.Buffer
				f := stats.NewWriter(&b)
				if err := errors.Join(f.Write(changed), f.Close()); err != nil {
					t.Fatal(err)
				}
				_, err := Figures(t.Context(), p, StepsReader{io.NewSectionReader(bytes.NewReader(b.Bytes()), 0, int64(b.Len())), int64(b.Len())},
					StepsReader{}, false)
				if (name == "nothing") != (err == nil) || err != nil && !errors.Is(err, stats.ErrImpossible) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
}
