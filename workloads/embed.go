// Package workloads holds the workload files that come with benchpin, embedded into the binary. Each is written anew from
// published numbers; pkg/workload finds and reads them.
package workloads

import "embed"

// FS holds the workload files, NAME.yaml each.
//
//go:embed *.yaml
var FS embed.FS
