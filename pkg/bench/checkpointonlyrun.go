package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/checkpoint"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Saved is what a run needs of the store that holds its checkpoints to read them back.
type Saved interface {
	checkpoint.Opener
	// Evict drops a file from the page cache, and Resident tells how much of it is there.
	Evict(name string) error
	Resident(name string) (bytes int64, err error)
}

// uncacheable is a Saved whose files are in no page cache of this machine: dropping them has no meaning, and is not tried.
type uncacheable interface{ Uncacheable() bool }

// ErrCheckpoint is wrapped by the error of a run that read back a checkpoint which is not what was written.
var ErrCheckpoint = checkpoint.ErrDiffers

// load is one checkpoint read back: what each rank read, and how many have.
type load struct {
	ranks  []checkpoint.RankLoad
	device Count // of the process, and of all in process 0 when they are gathered
	done   atomic.Int64
}

// only is the state of a run that only writes and reads checkpoints.
type only struct {
	*run
	started  time.Time
	reader   *checkpoint.Reader
	loads    []load
	evicted  *record.Eviction
	verified bool         // every read was compared
	steps    atomic.Int64 // checkpoints written and read
}

// runCheckpointOnly is Run for a plan without training: all accelerators write every checkpoint together, then one process of each host
// drops them from the page cache, then all read them together. Before each, all pause and meet.
func runCheckpointOnly(ctx context.Context, o Options) (*Result, error) {
	r, err := newCheckpointOnly(ctx, o)
	if err != nil {
		end(o.World, err)
		return nil, err
	}
	res := &Result{Started: r.started, Clock: r.started, Transcript: emptyTranscript(r.p.Schedule())}
	err = r.all(ctx)
	if err == nil && r.p.CheckpointReads > 0 && r.p.workload.Benchpin.Verify == workload.VerifyAfter {
		err = r.verify(ctx)
	}
	if err == nil {
		err = r.gather(ctx)
	}
	if err != nil {
		end(r.world, err)
	}
	if r.world.Rank() != 0 {
		return r.followed(ctx, res, err)
	}
	complete := err == nil
	res.Checkpoints = record.Checkpoints{Class: record.HostOnly, Fsync: o.CheckpointsDurable, Saves: r.checkpoints(r.started), Loads: r.loaded(),
		Eviction: r.evicted}
	if r.p.workload.Checkpoint.RankSync {
		together(&res.Checkpoints)
	}
	res.Metrics = CheckpointMetrics(r.p, res.Checkpoints, complete)
	if err != nil && interrupted(ctx) {
		err = fmt.Errorf("interrupted after %d of %d checkpoints were written and %d of %d were read: %w", len(res.Checkpoints.Saves),
			r.p.Checkpoints, len(res.Checkpoints.Loads), r.p.CheckpointReads, context.Cause(ctx))
	}
	if err != nil {
		res.Reason = err.Error()
	}
	res.Complete, res.Finished = complete, time.Now()
	r.agree(ctx, err)
	return res, err
}

func newCheckpointOnly(ctx context.Context, o Options) (*only, error) {
	p := o.Plan
	if p.Checkpoints > 0 && o.Checkpoints == nil {
		return nil, fmt.Errorf("run: the plan writes %d checkpoints; expected a store for them", p.Checkpoints)
	}
	if p.CheckpointReads > 0 && o.Saved == nil {
		return nil, fmt.Errorf("run: the plan reads %d checkpoints; expected a store to read them from", p.CheckpointReads)
	}
	if o.DeviceBytes == nil {
		o.DeviceBytes = processDeviceBytes
	}
	world, first, count, err := p.placeIn(o.World)
	if err != nil {
		return nil, err
	}
	group, err := groupOf(ctx, world, count)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	r := &only{run: &run{o: o, p: p, world: world, first: first, count: count, group: group, base: now}, started: now}
	if p.Checkpoints > 0 {
		r.ckpt = checkpoint.NewWriter(p.model, o.Checkpoints)
	}
	r.saves, r.loads = make([]save, p.Checkpoints), make([]load, p.CheckpointReads)
	for i := range r.saves {
		r.saves[i].ranks = make([]checkpoint.RankSave, p.Accelerators)
	}
	for i := range r.loads {
		r.loads[i].ranks = make([]checkpoint.RankLoad, p.Accelerators)
	}
	if p.CheckpointReads > 0 {
		verify := p.workload.Benchpin.Verify
		compare := verify != workload.VerifyNone && verify != workload.VerifyAfter
		r.reader, r.verified = checkpoint.NewReader(p.model, o.Saved, compare), compare
	}
	return r, nil
}

// all runs all accelerators to their end, and tells how far they are.
func (r *only) all(ctx context.Context) error {
	// Offsets of times count from one moment: that at which all processes have met.
	if err := r.meet(ctx); err != nil {
		return err
	}
	r.base = time.Now()
	r.newLanes()
	r.o.Live.show(r.counts)
	defer func() { r.ended.Store(int64(time.Since(r.base))) }()
	if r.o.Progress == nil {
		return r.group.Run(ctx, r.rank)
	}
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		r.tell(done)
	}()
	err := r.group.Run(ctx, r.rank)
	close(done)
	<-told
	return err
}

// pause is the time before each write and each read.
func pause(w *workload.Workload) time.Duration {
	return time.Duration(max(0, w.Checkpoint.TimeBetweenCheckpoints) * float64(time.Second))
}

// rank runs one accelerator.
func (r *only) rank(ctx context.Context, m *cluster.Member) error {
	wait := time.NewTimer(time.Hour)
	defer wait.Stop()
	ready := func() error {
		wait.Reset(pause(r.p.workload))
		select {
		case <-wait.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return m.Barrier(ctx)
	}
	rank := m.Rank()
	leads := rank == r.first // of this process
	enter := func(p live.Phase) { r.lane(rank).enter(p, int64(time.Since(r.base))) }
	for pt := range onlyPoints(r.p.Checkpoints) {
		if err := ready(); err != nil {
			return err
		}
		enter(live.Checkpoint)
		if err := r.save(ctx, pt, rank); err != nil {
			return err
		}
		enter(live.Idle)
		if leads {
			r.steps.Store(int64(pt.Number))
		}
	}
	if err := m.Barrier(ctx); err != nil {
		return err
	}
	if leads && r.firstOnHost() && r.p.CheckpointReads > 0 && r.p.workload.Benchpin.ColdCache != workload.ColdNone {
		if err := r.evict(ctx); err != nil {
			return err
		}
	}
	for pt := range onlyPoints(r.p.CheckpointReads) {
		if err := ready(); err != nil {
			return err
		}
		if leads {
			r.openDevice()
		}
		enter(live.Checkpoint)
		if err := r.load(ctx, pt, rank); err != nil {
			return err
		}
		enter(live.Idle)
		// All have to be done before the counter is looked at; the next read begins with a barrier anyway.
		if err := m.Barrier(ctx); err != nil {
			return err
		}
		if leads {
			end, err := r.o.DeviceBytes()
			r.loads[pt.Number-1].device = CountOf(end-r.deviceStart, errors.Join(err, r.deviceErr))
			r.steps.Store(int64(r.p.Checkpoints + pt.Number))
		}
	}
	return nil
}

// load reads the files of one rank. It returns when they are read or the run has ended, even if the store hangs.
func (r *only) load(ctx context.Context, pt checkpoint.Point, rank int) error {
	l := &r.loads[pt.Number-1]
	from := (rank + r.p.shift()) % r.p.Accelerators
	type outcome struct {
		load checkpoint.RankLoad
		err  error
	}
	loaded := make(chan outcome, 1)
	go func() {
		rl, err := r.reader.Load(ctx, pt, from)
		loaded <- outcome{rl, err}
	}()
	select {
	case got := <-loaded:
		if errors.Is(got.err, fs.ErrNotExist) {
			return r.missing(got.err)
		}
		if got.err != nil {
			return got.err
		}
		l.ranks[rank] = got.load
		l.done.Add(1)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tell tells how far the run is, a few times a second, until done is closed, and then once more.
func (r *only) tell(done <-chan struct{}) {
	every := time.NewTicker(progressEvery)
	defer every.Stop()
	all := int64(r.p.Checkpoints + r.p.CheckpointReads)
	total := all * r.p.model.BytesPerCheckpoint()
	for ended := false; !ended; {
		select {
		case <-every.C:
		case <-done:
			ended = true
		}
		p := Progress{Epoch: 1, Epochs: 1, Step: r.steps.Load(), Steps: all, Bytes: r.moved(), BytesTotal: total, Elapsed: time.Since(r.base)}
		r.o.Progress(p)
	}
}

// names yields the files of all checkpoints that are to be read.
func (r *only) names(yield func(name string, size int64) error) error {
	for pt := range onlyPoints(r.p.CheckpointReads) {
		for rank := range r.p.Accelerators {
			for _, f := range r.p.model.Files(rank) {
				if err := yield(pt.Name()+"/"+f.Name, f.Size); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// evict drops the checkpoints from the page cache, outside of the clock: a model is loaded by a machine that did not just write it.
func (r *only) evict(ctx context.Context) error {
	if s, ok := r.o.Saved.(uncacheable); ok && s.Uncacheable() {
		return nil
	}
	e := &record.Eviction{}
	before, after := new(record.Int), new(record.Int)
	count := func(sum **record.Int, name string) {
		if *sum == nil {
			return
		}
		n, err := r.o.Saved.Resident(name)
		if err != nil {
			*sum = nil // the host does not tell
			return
		}
		**sum += record.Int(n)
	}
	err := r.names(func(name string, size int64) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		e.Files, e.Bytes = e.Files+1, e.Bytes+record.Int(size)
		count(&before, name)
		if err := r.o.Saved.Evict(name); err != nil {
			return fmt.Errorf("drop checkpoints from the page cache: %w", r.missing(err))
		}
		count(&after, name)
		return nil
	})
	if err != nil {
		return err
	}
	e.ResidentBefore, e.ResidentAfter = before, after
	r.evicted = e
	return nil
}

// missing says what to do about a checkpoint that is not there.
func (r *only) missing(err error) error {
	if r.p.Checkpoints > 0 {
		return err
	}
	return fmt.Errorf("%w; checkpoint.num_checkpoints_write is 0, so that the checkpoints of an earlier run of this workload and seed are read: "+
		"write them first", err)
}

// verify compares all checkpoints that were read, after the clock has stopped: each process what its ranks wrote.
func (r *only) verify(ctx context.Context) error {
	for pt := range onlyPoints(r.p.CheckpointReads) {
		for rank := r.first; rank < r.first+r.count; rank++ {
			if err := r.p.model.Verify(ctx, r.o.Saved, pt, rank); err != nil {
				return err
			}
		}
	}
	r.verified = true
	return nil
}

// loaded returns the record of the checkpoints that all ranks have read.
func (r *only) loaded() []record.CheckpointLoad {
	var list []record.CheckpointLoad
	i := 0
	for pt := range onlyPoints(r.p.CheckpointReads) {
		l := &r.loads[i]
		i++
		if l.done.Load() != int64(r.p.Accelerators) {
			continue
		}
		c := record.CheckpointLoad{Name: pt.Name(), Epoch: pt.Epoch, Step: record.Int(pt.Step), Verified: r.verified,
			Seconds: make([]float64, len(l.ranks)), WaitedSeconds: make([]float64, len(l.ranks))}
		if l.device.Absent == "" {
			n := record.Int(l.device.Bytes)
			c.DeviceBytes = &n
		}
		var first time.Time
		for rank := range l.ranks {
			rl := &l.ranks[rank]
			if !rl.Started.IsZero() && (first.IsZero() || rl.Started.Before(first)) {
				first = rl.Started
			}
			c.Seconds[rank] = rl.Duration.Seconds()
			var waited time.Duration
			for _, f := range rl.Files {
				waited += f.Waited
				c.Bytes += record.Int(f.Size)
			}
			c.WaitedSeconds[rank] = waited.Seconds()
		}
		c.Start = first.Sub(r.started).Seconds()
		list = append(list, c)
	}
	return list
}

// together makes every rank's time that of the slowest, as a barrier inside the timed part does. The barrier itself is not run there:
// what a rank does between its files, or after them, to account for what it wrote is no part of anybody's time.
func together(c *record.Checkpoints) {
	slowest := func(seconds []float64) {
		longest := slices.Max(seconds)
		for i := range seconds {
			seconds[i] = longest
		}
	}
	for i := range c.Saves {
		slowest(c.Saves[i].Seconds)
	}
	for i := range c.Loads {
		slowest(c.Loads[i].Seconds)
	}
}

// errNoTraining is why a run of checkpoints alone has no figures of training.
var errNoTraining = errors.New("the run writes and reads checkpoints only")
