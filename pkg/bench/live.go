package bench

import (
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/live"
)

// Live shows how far a run is, at any moment and from any goroutine. The zero value is ready; it is given to a run as Options.Live and
// shows that run, also when it has ended, until it is given to another.
//
// The engine pays a few stores into memory of each accelerator's own for it, and sums that are added while the accelerator sleeps.
type Live struct {
	counts atomic.Pointer[func() live.Counts]
	// What Dropping was told.
	dropped, toDrop atomic.Int64
}

// Dropping tells, while the data set is dropped from the page cache before an epoch (Options.Evict), of how many files that was done, and of
// how many it is to be done: 0 when it is over.
func (l *Live) Dropping(done, all int64) {
	l.dropped.Store(done)
	l.toDrop.Store(all)
}

// Counts is what the run has come to; false when none has begun.
func (l *Live) Counts() (live.Counts, bool) {
	if f := l.counts.Load(); f != nil {
		c := (*f)()
		c.Dropped, c.ToDrop = l.dropped.Load(), l.toDrop.Load()
		return c, true
	}
	return live.Counts{}, false
}

// show makes l show what f returns. l may be nil.
func (l *Live) show(f func() live.Counts) {
	if l != nil {
		l.counts.Store(&f)
	}
}

// lane is what one accelerator tells of itself. It alone writes, and whoever looks may see the parts of one moment a few nanoseconds
// apart. A nil lane is that of a run at which nobody looks.
type lane struct {
	// phase is the phase that goes on, and when it began: phase | offset << 3.
	phase atomic.Int64
	spent [live.Phases]atomic.Int64
	// Of the steps that ended: what AU is made of, and the readers' work.
	compute, prescribed, window atomic.Int64
	worked                      [live.Works]atomic.Int64
	_                           [64]byte // lanes share no cache line
}

const phaseBits = 3

// enter ends the phase that went on and begins another, at an offset from the start of the run.
func (l *lane) enter(p live.Phase, at int64) {
	if l == nil {
		return
	}
	old := l.phase.Load()
	add(&l.spent[old&(1<<phaseBits-1)], at-old>>phaseBits)
	l.phase.Store(at<<phaseBits | int64(p))
}

// add is not atomic: there is one writer.
func add(to *atomic.Int64, n int64) { to.Store(to.Load() + n) }

// step adds a step that ended.
func (l *lane) step(s *stats.Step, inWindow bool) {
	if l == nil {
		return
	}
	if inWindow {
		add(&l.compute, s.Compute)
		add(&l.prescribed, s.Prescribed)
		add(&l.window, s.Proc+s.Barrier)
	}
	for w, n := range [live.Works]int64{live.Open: s.Open, live.Read: s.Read, live.Decode: s.Decode, live.Preprocess: s.Preprocess} {
		if n > 0 {
			add(&l.worked[w], n)
		}
	}
}

// epochBegan is what had been read when an epoch began.
type epochBegan struct{ at, samples, bytes int64 }

// newLanes makes a lane for each accelerator of this process, where somebody looks at the run.
func (r *run) newLanes() {
	if r.o.Live != nil {
		r.lanes = make([]lane, r.count)
	}
}

// lane is that of a rank, nil where nobody looks.
func (r *run) lane(rank int) *lane {
	if r.lanes == nil {
		return nil
	}
	return &r.lanes[rank-r.first]
}

// counts adds up all lanes.
func (r *run) counts() live.Counts {
	at := r.at.Load()
	c := live.Counts{Elapsed: r.elapsed(r.now), Accelerators: r.count, Epoch: int(at >> 40), Epochs: r.p.Epochs, Step: at & (1<<40 - 1),
		Steps: int64(r.p.StepsPerEpoch), Evaluation: r.evaluatingNow.Load(), Samples: r.ofAll(r.samples.Load()), SamplesTotal: r.p.samplesTotal(),
		Bytes: r.ofAll(r.bytes.Load()), BytesTotal: r.p.bytesTotal(), Threshold: r.p.AUThreshold}
	if b := r.epochBegan.Load(); b != nil {
		c.EpochBegan, c.EpochSamples, c.EpochBytes = time.Duration(b.at), r.ofAll(b.samples), r.ofAll(b.bytes)
	}
	r.addLanes(&c)
	return c
}

// elapsed is the time since the timed part began, and stands still when it has ended.
func (r *run) elapsed(now func() time.Time) time.Duration {
	if at := r.ended.Load(); at > 0 {
		return time.Duration(at)
	}
	return now().Sub(r.base)
}

func (r *run) addLanes(c *live.Counts) {
	if n, err := r.o.DeviceBytes(); err == nil {
		c.Device = &n
	}
	now := int64(c.Elapsed)
	for i := range r.lanes {
		l := &r.lanes[i]
		for p := range l.spent {
			c.Spent[p] += time.Duration(l.spent[p].Load())
		}
		phase := l.phase.Load()
		c.Spent[phase&(1<<phaseBits-1)] += time.Duration(max(0, now-phase>>phaseBits))
		c.Compute += time.Duration(l.compute.Load())
		c.Prescribed += time.Duration(l.prescribed.Load())
		c.Window += time.Duration(l.window.Load())
		for w := range l.worked {
			c.Worked[w] += time.Duration(l.worked[w].Load())
		}
	}
}

// inWindow says whether a step counts for AU, by the rule of stats.Params.
func (r *run) inWindow(step int64) bool {
	x := &r.p.workload.Output.Metric
	return step > int64(x.ExcludeStartSteps) && step <= int64(r.p.StepsPerEpoch)-int64(x.ExcludeEndSteps)
}

// counts is that of a run that does nothing but write and read checkpoints.
func (r *only) counts() live.Counts {
	all := int64(r.p.Checkpoints + r.p.CheckpointReads)
	c := live.Counts{Elapsed: r.elapsed(time.Now), Accelerators: r.count, Epoch: 1, Epochs: 1, Step: r.steps.Load(), Steps: all,
		Bytes: r.moved(), BytesTotal: all * r.p.model.BytesPerCheckpoint()}
	r.addLanes(&c)
	return c
}

// moved are the bytes written and read back so far.
func (r *only) moved() (n int64) {
	if r.ckpt != nil {
		n += r.ckpt.Written()
	}
	if r.reader != nil {
		n += r.reader.Read()
	}
	return r.ofAll(n)
}
