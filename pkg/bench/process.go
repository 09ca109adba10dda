package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
)

// Part is which accelerators a process of several carries: count of them from rank first on. With benchpin.accelerators_per_process each
// process carries so many, and the last what is left; without it they are dealt out evenly. One process carries all either way. Ranks follow the numbers of the processes.
// The error wraps ErrImpossible where there is none for some process, or there are more than the processes carry.
func (p *Plan) Part(process, processes int) (first, count int, err error) {
	all, each := p.Accelerators, p.workload.Benchpin.AcceleratorsPerProcess
	if processes == 1 {
		return 0, all, nil
	}
	if each == 0 {
		if all < processes {
			return 0, 0, fmt.Errorf("%w: %s on %d processes: expected at least one for each; start fewer processes, or raise benchpin.accelerators",
				ErrImpossible, counted(all, "accelerator"), processes)
		}
		first = process * (all / processes)
		first += min(process, all%processes)
		count = all / processes
		if process < all%processes {
			count++
		}
		return first, count, nil
	}
	if need := (all + each - 1) / each; need != processes {
		return 0, 0, fmt.Errorf("%w: %s with benchpin.accelerators_per_process %d need %d processes, found %d; start so many, for example with mpirun -np %d, "+
			"or change one of the two", ErrImpossible, counted(all, "accelerator"), each, need, processes, need)
	}
	first = process * each
	return first, min(each, all-first), nil
}

// placeIn is where a process stands in a world; nil is that of one process.
func (p *Plan) placeIn(world *cluster.World) (w *cluster.World, first, count int, err error) {
	if world == nil {
		world = cluster.Alone()
	}
	first, count, err = p.Part(world.Rank(), world.Size())
	return world, first, count, err
}

// partOf is what so many accelerators need of something that all of the plan's together need n of, rounded up.
func (p *Plan) partOf(n int64, accelerators int) int64 {
	if accelerators == p.Accelerators {
		return n
	}
	each := n / int64(p.Accelerators)
	if n%int64(p.Accelerators) != 0 {
		each++
	}
	return each * int64(accelerators)
}

// end tells other processes that this one has failed, if there are any.
func end(world *cluster.World, err error) {
	if world != nil && world.Size() > 1 {
		world.Abort(err)
	}
}

// agree tells other processes how the run ended, when they have nothing more to do for it.
func (r *run) agree(ctx context.Context, err error) {
	if r.world.Size() > 1 && r.world.Err() == nil {
		// Who did not hear it learns it from the end of the world.
		_ = r.world.Agree(ctx, err)
	}
}

// followed is how the run ends in a process that is not the first: it waits for what process 0 makes of it.
func (r *run) followed(ctx context.Context, res *Result, err error) (*Result, error) {
	if err == nil {
		err = r.world.Agree(ctx, nil)
	}
	res.Finished, res.Clock = time.Now(), r.base
	if res.Complete = err == nil; err != nil {
		res.Reason = err.Error()
	}
	return res, err
}

// ofAll is what all accelerators have come to, where those of this process have come to n: they keep in step.
func (r *run) ofAll(n int64) int64 {
	if r.count == r.p.Accelerators {
		return n
	}
	return int64(float64(n) * float64(r.p.Accelerators) / float64(r.count))
}

// firstOnHost is true in the one process of each host that does what is done once there.
func (r *run) firstOnHost() bool {
	index, _ := r.world.OnNode()
	return index == 0
}

// groupOf is the group of the accelerators of all processes, of which this one has so many.
func groupOf(ctx context.Context, world *cluster.World, count int) (*cluster.Local, error) {
	if world.Size() == 1 {
		return cluster.NewLocal(count)
	}
	return cluster.NewGroup(ctx, world, count)
}

// meet returns when all processes have come here.
func (r *run) meet(ctx context.Context) error {
	if r.world.Size() == 1 {
		return nil
	}
	return r.world.Barrier(ctx)
}

// interrupted is true where somebody stopped the run here. A run that stops because another process has ended was not interrupted.
func interrupted(ctx context.Context) bool {
	var other *cluster.ProcessError
	return ctx.Err() != nil && !errors.As(context.Cause(ctx), &other)
}
