package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/record"
)

// together returns the processes that carry a command out, and a context that ends with the command's and with them. Call free in the end.
func (a *app) together(cmd *cobra.Command) (w *cluster.World, ctx context.Context, free context.CancelFunc, err error) {
	if w, err = a.world(cmd.Context()); err != nil {
		return nil, nil, nil, err
	}
	ctx, free = w.Context(cmd.Context())
	return w, ctx, free, nil
}

// tool identifies this program to other processes; it is empty where there are none, since that takes reading the program.
func (a *app) tool(w *cluster.World) (record.Tool, error) {
	if w.Size() == 1 {
		return record.Tool{}, nil
	}
	return environment.Tool(a.toolVersion(), commit)
}
