package pipeline

import (
	"fmt"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/record"
)

// record assembles the record of a run.
func (r *run) record(result *bench.Result, env record.Environment) *record.Record {
	h := r.manifest.Header()
	r.verified.IdentityRechecked = record.Int(result.IdentityRechecked)
	rec := &record.Record{
		Schema: record.SchemaName, ID: r.ID, Status: record.StatusIncomplete, Reason: result.Reason,
		Started: stamp(result.Started), Finished: stamp(result.Finished),
		Tool: r.Tool,
		Workload: record.Workload{
			Name: r.Workload.Name, Digest: r.Workload.Digest.String(), Source: r.Workload.Source.String(),
			Overrides: r.Workload.Overrides, Canonical: r.Workload.Canonical,
		},
		Dataset: record.Dataset{
			Class: record.Recomputable, Root: h.Root.String(), Manifest: r.manifest.Digest().String(),
			Files: record.Int(h.Count), Bytes: record.Int(h.Bytes), Generated: h.Recipe != nil, Seed: r.files.seed(), Format: foreignFormat(r.files, r.w),
			Verification: r.verified,
		},
		Plan: r.plan.Plan, Transcript: result.Transcript, Checkpoints: result.Checkpoints, Environment: env, Metrics: result.Metrics,
		ReplayOf: r.ReplayOf, NotBefore: r.NotBefore,
	}
	if result.Complete {
		rec.Status, rec.Reason = record.StatusComplete, ""
	}
	return rec
}

// write checks the record, adds the files beside it, and writes it to the run folder.
func (r *run) write(rec *record.Record, result *bench.Result) error {
	files, err := r.dlioFiles(rec, result)
	if err != nil {
		return err
	}
	for _, name := range r.timesNames() {
		f, err := fileOf(r.Out, name)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	carried, err := r.carry(rec)
	if err != nil {
		return err
	}
	files = append(files, carried...)
	if carried, err = r.carryRegistered(rec); err != nil {
		return err
	}
	files = append(files, carried...)
	if carried, err = r.timestampFile(); err != nil {
		return err
	}
	files = append(files, carried...)
	reads, err := r.readsFile()
	if err != nil {
		return err
	}
	files = append(files, reads...)
	rec.Files = sortFiles(files)
	if problems := rec.Check(); len(problems) > 0 {
		return fmt.Errorf("the record contradicts itself, so that it is not kept: %s (and %d more); this is a fault of benchpin", problems[0],
			len(problems)-1)
	}
	b, err := rec.Canonical()
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return writeFile(filepath.Join(r.Out, RecordName), b)
}
