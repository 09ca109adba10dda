//go:build !mpi || !cgo

package mpi

import (
	"errors"
	"strings"
	"testing"
)

// Without MPI, one of several processes is refused with what to do; the environment is that of real launchers (see the tests with mpi).
func TestRefused(t *testing.T) {
	_, err := Join(t.Context(), lookup("PMI_SIZE=4", "PMI_RANK=1"))
	if !errors.Is(err, ErrNoMPI) || Library() != "" {
		t.Fatalf("joined: %v", err)
	}
	for _, want := range []string{"process 1 of 4", "-tags mpi", "CC=mpicc", "--accelerators"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
}
