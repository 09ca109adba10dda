//go:build !mpi || !cgo

package mpi

import (
	"context"
	"fmt"
)

// Library names the MPI library that this build speaks, empty for none.
func Library() string { return "" }

// join refuses: several copies of a program that do not know of each other would all do the same, and each count for the whole.
func join(_ context.Context, l Launcher) (*Process, error) {
	return nil, fmt.Errorf("%w, and it was %s: build it with the MPI of that launcher (CC=mpicc CGO_ENABLED=1 go build -tags mpi ./cmd/benchpin), "+
		"or start one process and give it --accelerators N", ErrNoMPI, l)
}
