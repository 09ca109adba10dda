package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// accelerator is the loop of one simulated accelerator. Its state lives as long as the run.
type accelerator struct {
	*run
	m     *cluster.Member
	rank  int
	rows  *stats.RankRecorder
	chain *Chain
	load  loader.Loader
	// halves is load, its Next in two halves.
	halves loader.Halved
	// evalLoad is nil without evaluation.
	evalLoad loader.Loader
	// ledger is nil where nothing is hashed in the run.
	ledger *ledger
	timer  *time.Timer
	// lane is nil where nobody looks at the run.
	lane *lane
	// last is the step that was done and is not yet recorded: recording it waits for the next sleep, where it costs nothing.
	last stats.Step
	held bool
}

// accelerator runs all epochs of one rank.
func (r *run) accelerator(ctx context.Context, m *cluster.Member) error {
	l, err := r.loaderOf(ctx, r.src, m.Rank(), r.p.BatchSize, int64(r.p.StepsPerEpoch))
	if err != nil {
		return err
	}
	r.loaders[2*m.Rank()] = l
	a := &accelerator{run: r, m: m, rank: m.Rank(), rows: r.rec.Rank(m.Rank()), chain: r.chains[m.Rank()], load: l, halves: loader.InHalves(l),
		timer: time.NewTimer(time.Hour), lane: r.lane(m.Rank())}
	if v := r.evaluating; v != nil {
		if a.evalLoad, err = r.loaderOf(ctx, v.src, a.rank, r.p.eval.batch, r.p.eval.steps); err != nil {
			return err
		}
		r.loaders[2*a.rank+1] = a.evalLoad
	}
	a.ledger = r.ledger(a.rank)
	defer a.timer.Stop()
	a.timer.Stop()
	for e := 1; e <= r.p.Epochs; e++ {
		if err := a.open(ctx, e); err != nil {
			return err
		}
		if err := a.epoch(ctx, e); err != nil {
			return err
		}
		if pt, due := r.saveAfterEpoch(e); due {
			a.phase(live.Checkpoint)
			if err := r.save(ctx, pt, a.rank); err != nil {
				return err
			}
		}
		a.phase(live.Idle)
		if err := a.evaluate(ctx, e); err != nil {
			return err
		}
	}
	return a.ledger.drain(ctx)
}

// leads is true for the first accelerator of the process: it does what is done once in a process.
func (a *accelerator) leads() bool { return a.rank == a.first }

// open prepares an epoch outside of the clock, while all wait: the first accelerator of each process empties the page cache, makes the
// order, and looks at the counters.
func (a *accelerator) open(ctx context.Context, epoch int) error {
	if err := a.m.Barrier(ctx); err != nil {
		return err
	}
	if a.leads() {
		cold := a.p.workload.Benchpin.ColdCache
		var dropped *record.Dropped
		if a.o.Evict != nil && (cold == workload.ColdEpoch || cold == workload.ColdAll || (cold == workload.ColdStart && epoch == 1)) {
			var err error
			if dropped, err = a.drop(ctx); err != nil {
				return fmt.Errorf("epoch %d: drop the data set from the page cache: %w", epoch, err)
			}
		}
		if err := a.lookBefore(ctx, dropped); err != nil {
			return fmt.Errorf("epoch %d: %w", epoch, err)
		}
		order, err := a.p.order.Epoch(epoch)
		if err != nil {
			return err
		}
		a.order = order
		a.openDevice()
		a.at.Store(int64(epoch) << 40)
		if a.lane != nil {
			a.epochBegan.Store(&epochBegan{a.since(a.now()), a.samples.Load(), a.bytes.Load()})
		}
	}
	return a.m.Barrier(ctx)
}

// phase enters a phase at this moment.
func (a *accelerator) phase(p live.Phase) {
	if a.lane != nil {
		a.lane.enter(p, a.since(a.now()))
	}
}

// since is the offset of t from the start of the run, in nanoseconds of the monotonic clock.
func (a *accelerator) since(t time.Time) int64 { return int64(t.Sub(a.base)) }

// epoch runs the steps of one epoch. Each moment is looked at once: a step begins where the one before ended.
//
//	load:    from the beginning of the step to the batch
//	compute: the sleep; accounts are kept meanwhile
//	hash:    the wait for what was not hashed in the sleep, where the run hashes
//	barrier: the wait for the others
func (a *accelerator) epoch(ctx context.Context, epoch int) error {
	steps := int64(a.p.StepsPerEpoch)
	start := a.now()
	if err := a.rows.StartBlock(epoch, a.since(start)); err != nil {
		return err
	}
	a.lane.enter(live.Load, a.since(start))
	a.load.Start(epoch, a.order)
	for s := int64(1); s <= steps; s++ {
		batch, err := a.halves.Take(ctx)
		if err != nil {
			return err
		}
		loaded := a.now()
		a.lane.enter(live.Compute, a.since(loaded))
		// What follows is done in the time of the sleep. With hundreds of accelerators on few cores all of them are let through to here
		// first: else the last ones would begin their step when all others have kept their accounts and woken their readers.
		runtime.Gosched()
		a.halves.Refill()
		prescribed := a.p.compute.at(epoch, a.rank, s-1)
		asked, err := a.account(epoch, s, batch)
		if err != nil {
			return err
		}
		if err := a.sleep(ctx, loaded.Add(prescribed)); err != nil {
			return err
		}
		computed := a.now()
		if a.ledger != nil {
			a.lane.enter(live.Hash, a.since(computed))
		}
		hashed, err := a.hashed(ctx, computed)
		if err != nil {
			return err
		}
		a.lane.enter(live.Barrier, a.since(hashed))
		if err := a.m.Barrier(ctx); err != nil {
			return err
		}
		end := a.now()
		a.lane.enter(live.Load, a.since(end))
		if a.leads() {
			a.at.Store(int64(epoch)<<40 | s)
		}
		a.last = stats.Step{
			Step: s, Start: a.since(start), Load: int64(loaded.Sub(start)), Compute: int64(computed.Sub(loaded)),
			Prescribed: int64(prescribed), Proc: int64(hashed.Sub(start)), Barrier: int64(end.Sub(hashed)), Hash: int64(hashed.Sub(computed)),
			Open: int64(batch.Open), Read: int64(batch.Read), Decode: int64(batch.Decode),
			Samples: int64(len(batch.Samples)), Bytes: asked, Preprocess: int64(batch.Preprocess),
		}
		a.waited(&a.last, batch)
		a.held = true
		start = end
		if pt, due := a.saveAfterStep(epoch, s); due || s == steps {
			if err := a.endBlock(end); err != nil {
				return err
			}
			if due {
				a.lane.enter(live.Checkpoint, a.since(end))
				if err := a.save(ctx, pt, a.rank); err != nil {
					return err
				}
			}
			if start = a.now(); s < steps {
				a.lane.enter(live.Load, a.since(start))
				if err := a.rows.StartBlock(epoch, a.since(start)); err != nil {
					return err
				}
			}
		}
	}
	a.phase(live.Barrier)
	if err := a.m.Barrier(ctx); err != nil {
		return err
	}
	a.phase(live.Idle)
	if a.leads() {
		a.progress(epoch, steps, true)
		if err := a.deviceSince(ctx, a.rec, &a.looks, epoch); err != nil {
			return fmt.Errorf("epoch %d: %w", epoch, err)
		}
	}
	if a.o.Storage == nil && a.world.Size() == 1 {
		return nil
	}
	return a.m.Barrier(ctx) // what follows the epoch, such as a checkpoint, begins when all was looked at
}

// waited fills in what the wait for a batch consisted of, as far as it is known: the part of it in which nobody had begun the batch, or
// how long the batch was ready before it.
func (a *accelerator) waited(s *stats.Step, b *loader.Batch) {
	if b.Begun > 0 {
		s.Queue = max(0, min(int64(b.Begun)-s.Start, s.Load))
		s.Ready = max(0, s.Start-int64(b.Ready))
	}
}

// account keeps the books of a batch: transcript, counters, the row of the step before, progress. It runs in the time of the
// compute sleep, which ends at a fixed moment whatever is done before.
func (a *accelerator) account(epoch int, step int64, b *loader.Batch) (asked int64, err error) {
	if asked, err = a.enter(a.chain, false, epoch, step, b); err != nil {
		return asked, err
	}
	if err := a.flush(); err != nil {
		return asked, err
	}
	if a.leads() {
		a.progress(epoch, step-1, false)
	}
	return asked, nil
}

// enter adds a batch to a transcript, or has it hashed first, and to the counters, and returns the bytes that were asked of the store for it.
func (a *accelerator) enter(c *Chain, evaluation bool, epoch int, step int64, b *loader.Batch) (asked int64, err error) {
	if a.ledger != nil {
		err = a.ledger.submit(evaluation, epoch, step, b)
	} else {
		for i := range b.Samples {
			c.Append(entryOf(epoch, step, &b.Samples[i]))
		}
	}
	asked = b.Asked()
	a.samples.Add(int64(len(b.Samples)))
	a.bytes.Add(asked)
	return asked, err
}

const progressEvery = 200 * time.Millisecond

// progress tells how far the run is: always at the end of an epoch, else now and then.
func (a *accelerator) progress(epoch int, step int64, always bool) {
	if a.o.Progress == nil {
		return
	}
	now := time.Since(a.base)
	if !always && now-a.lastProgress < progressEvery {
		return
	}
	a.lastProgress = now
	a.o.Progress(Progress{Epoch: epoch, Epochs: a.p.Epochs, Step: step, Steps: int64(a.p.StepsPerEpoch),
		Samples: a.ofAll(a.samples.Load()), SamplesTotal: a.p.samplesTotal(), Bytes: a.ofAll(a.bytes.Load()), BytesTotal: a.p.bytesTotal(), Elapsed: now})
}

// flush records the step that was done last.
func (a *accelerator) flush() error {
	if !a.held {
		return nil
	}
	a.held = false
	a.lane.step(&a.last, a.inWindow(a.last.Step))
	return a.rows.Add(a.last)
}

func (a *accelerator) endBlock(at time.Time) error {
	if err := a.flush(); err != nil {
		return err
	}
	return a.rows.EndBlock(a.since(at))
}

// shortSleep is how long an accelerator may sleep without noticing that the run has ended.
const shortSleep = 200 * time.Millisecond

// sleep returns at the deadline, or with the cause of ctx when it ends first. It never returns early otherwise.
func (a *accelerator) sleep(ctx context.Context, deadline time.Time) error {
	left := time.Until(deadline)
	if left <= shortSleep {
		time.Sleep(left) // cheaper than a timer's channel and, with many accelerators, than the one lock of ctx
		return nil
	}
	a.timer.Reset(left)
	select {
	case <-a.timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
