// Package mpi is the world of processes that an MPI launcher started: mpirun, mpiexec, srun. It joins them over the MPI library that
// the program was built with (build tag mpi, any MPI with a C header), and without the tag it refuses at once to be one of several.
//
// What the library would let hang ends here within seconds: a process that fails tells the others why, whatever they are doing, and one
// that is killed, stopped or cut off is missed by its neighbour. All calls of the library come from one thread (MPI_THREAD_FUNNELED), and
// waiting leaves the cores to those who read. The package never starts processes and never sends data sets.
package mpi

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/cluster"
)

// ErrNoMPI is wrapped by the error of a program without MPI that was started as one of several processes.
var ErrNoMPI = errors.New("this build of benchpin does not speak MPI")

// ErrLauncher is wrapped by the error of a process whose MPI library knows nothing of the others that the launcher has started.
var ErrLauncher = errors.New("the launcher and the MPI library of this build do not belong together")

// Launcher is what started this process as one of several.
type Launcher struct {
	// Name is the launcher as people know it.
	Name string
	// Rank and Size are what it says in the environment, for messages and to check the library with; -1 and 0 where it does not.
	Rank, Size int
}

// Launched finds out from the environment whether a launcher has started this process as one of several; lookup is os.LookupEnv. A
// single process is none of several, whatever started it, and neither is a job's script that a batch system runs.
func Launched(lookup func(string) (string, bool)) (Launcher, bool) {
	number := func(name string, otherwise int) int {
		if value, there := lookup(name); there {
			if n, err := strconv.Atoi(value); err == nil && n >= 0 {
				return n
			}
		}
		return otherwise
	}
	// Most specific first: Open MPI's processes see PMIx's variables too, and all of them srun's where Slurm gave them their nodes.
	for _, l := range []struct{ name, size, rank string }{
		{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
		{"MVAPICH's mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
		{"MPICH's mpirun, or srun by way of PMI", "PMI_SIZE", "PMI_RANK"},
		{"Flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
		{"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
		{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
	} {
		if size := number(l.size, 0); size > 1 {
			return Launcher{Name: l.name, Rank: number(l.rank, -1), Size: size}, true
		} else if size == 1 {
			return Launcher{}, false
		}
	}
	for _, l := range []struct{ name, rank string }{{"PALS", "PALS_RANKID"}, {"a PMIx launcher", "PMIX_RANK"}} {
		if rank := number(l.rank, -1); rank >= 0 { // the size is known to the library only
			return Launcher{Name: l.name, Rank: rank}, true
		}
	}
	return Launcher{}, false
}

// Process is this process's part in the world of a job.
type Process struct {
	world *cluster.World
	link  link // nil for a process that is alone
}

// link is the connection to the other processes, as the build has it.
type link interface {
	// end meets the others for the last time. See Process.End.
	end(code int, reason error) int
}

// World is the world of this process: of one, where it was started alone.
func (p *Process) World() *cluster.World { return p.world }

// Join returns this process's place among those that a launcher started, or a world of one when it was started alone. It is collective.
// lookup is os.LookupEnv. Call it once in the life of a process, and End last.
func Join(ctx context.Context, lookup func(string) (string, bool)) (*Process, error) {
	l, several := Launched(lookup)
	if !several {
		return &Process{world: cluster.Alone()}, nil
	}
	return join(ctx, l)
}

// End is the last thing that a process does, when all that it has to say was printed and written: the processes meet once more, and
// return from End together, so that a launcher that ends a job at the first failure cuts nobody short. code is the exit code that this
// process would end with; what it returns is the one that all of them end with: that of process 0, or where that is 0 the largest, and
// where the failure of one process ended the others, that one's. A process that fails alone gives its reason: the others, who are in the
// middle of something, get it as the world's error. reason is nil where all went well, or where only the outcome is bad.
//
// Where a process does not come within 15 s of a failure, End ends all processes by force, and does not return.
func (p *Process) End(code int, reason error) int {
	if p.link == nil {
		p.world.Close()
		return code
	}
	return p.link.end(code, reason)
}

// String says how the launcher started this process.
func (l Launcher) String() string {
	if l.Size == 0 {
		return "started by " + l.Name
	}
	if l.Rank < 0 {
		return fmt.Sprintf("started by %s as one of %d processes", l.Name, l.Size)
	}
	return fmt.Sprintf("started by %s as process %d of %d", l.Name, l.Rank, l.Size)
}
