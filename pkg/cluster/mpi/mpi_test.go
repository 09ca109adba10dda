package mpi

import (
	"os"
	"strings"
	"testing"
)

// lookup is an environment.
func lookup(variables ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range variables {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestLaunched(t *testing.T) {
	for _, c := range []struct {
		name        string
		environment []string
		several     bool
		want        string
	}{
		{"a shell", []string{"PATH=/bin"}, false, ""},
		{"MPICH", []string{"PMI_SIZE=4", "PMI_RANK=3", "MPI_LOCALNRANKS=4"}, true, "started by MPICH's mpirun, or srun by way of PMI as process 3 of 4"},
		{"one process of MPICH", []string{"PMI_SIZE=1", "PMI_RANK=0"}, false, ""},
		{"Open MPI", []string{"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=0"}, true, "started by Open MPI's mpirun as process 0 of 2"},
		{"one process of Open MPI", []string{"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=0"}, false, ""},
		{"Open MPI on Slurm's nodes", []string{"SLURM_STEP_NUM_TASKS=3", "SLURM_PROCID=1", "OMPI_COMM_WORLD_SIZE=8", "OMPI_COMM_WORLD_RANK=5"}, true,
			"started by Open MPI's mpirun as process 5 of 8"},
		{"a batch script", []string{"SLURM_JOB_ID=7", "SLURM_NTASKS=8", "SLURM_PROCID=0"}, false, ""},
		{"srun", []string{"SLURM_JOB_ID=7", "SLURM_STEP_NUM_TASKS=8", "SLURM_PROCID=2"}, true, "started by srun as process 2 of 8"},
		{"srun of one", []string{"SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0"}, false, ""},
		{"PMIx alone", []string{"PMIX_RANK=1"}, true, "started by a PMIx launcher"},
		{"PALS", []string{"PALS_RANKID=0", "PALS_LOCAL_SIZE=2"}, true, "started by PALS"},
		{"MVAPICH", []string{"MV2_COMM_WORLD_SIZE=2"}, true, "started by MVAPICH's mpirun as one of 2 processes"},
		{"Flux", []string{"FLUX_JOB_SIZE=2", "FLUX_TASK_RANK=1"}, true, "started by Flux as process 1 of 2"},
		{"nonsense", []string{"PMI_SIZE=many", "PMIX_RANK=-2"}, false, ""},
	} {
		l, several := Launched(lookup(c.environment...))
		if several != c.several || several && l.String() != c.want {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, several, l.String(), c.several, c.want)
		}
	}
}

// A process that was started by itself is a world of one, in every build.
func TestAlone(t *testing.T) {
	if _, several := Launched(os.LookupEnv); several {
		t.Skip("SKIPPED: the tests were started by an MPI launcher")
	}
	p, err := Join(t.Context(), lookup())
	if err != nil {
		t.Fatal(err)
	}
	if w := p.World(); w.Size() != 1 || w.Rank() != 0 || w.Barrier(t.Context()) != nil {
		t.Errorf("process %d of %d", w.Rank(), w.Size())
	}
	if code := p.End(3, nil); code != 3 {
		t.Errorf("ended with %d", code)
	}
}
