// Package workload reads the YAML file that says what to generate, read, compute and checkpoint: DLIO's workload files
// as they are, with the dialect, the interpolation and the overrides that go with them, and our own section
// "benchpin". It resolves a file into one Workload with every default filled in, and into one canonical byte form with
// a digest (docs/workload.md).
//
// It never looks at data, never decides whether a workload can run here (the plan does), and reads no environment
// variable: what a file resolves to depends on its bytes and on the overrides alone.
package workload
