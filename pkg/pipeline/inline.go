package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ReadsName holds the digests of what a run read of each sample, where they do not follow from the manifest (benchpin.verify: inline).
const ReadsName = "reads.bin"

// addDigests reads the digests of the manifest's entries, 32 bytes of memory for each file.
func (d *pinnedFiles) addDigests(ctx context.Context, m *manifest.Manifest) error {
	digests := make([][32]byte, len(d.byEntry))
	index := 0
	err := m.Entries(ctx, func(e manifest.Entry) error {
		digests[d.byEntry[index]] = e.Digest
		index++
		return nil
	})
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	d.digests = digests // of both parts: they share their contents
	return nil
}

// Digest is that of a file by the manifest; bench.Digested. Digests are read where a workload needs them.
func (d pinnedPart) Digest(i, companion int) [32]byte {
	at := d.entry(i, companion)
	if at >= len(d.digests) {
		return [32]byte{}
	}
	return d.digests[at]
}

// ErrMemory is wrapped by the error of a run that holds what it reads until it is hashed, and for which this host has not the memory.
var ErrMemory = errors.New("not enough memory")

// roomForInline refuses a run that would hold more than there is memory for.
func (r *run) roomForInline(env record.Environment) error {
	if r.plan.Inline() == "" {
		return nil
	}
	have, what := env.Memory.Available, "available"
	if n, err := strconv.ParseInt(env.Limits.CgroupMemory, 10, 64); err == nil && (have == nil || record.Int(n) < *have) {
		limit := record.Int(n)
		have, what = &limit, "allowed by the control group"
	}
	need, err := r.memoryHere()
	if err != nil || have == nil || need <= *have {
		return err
	}
	return fmt.Errorf("run: %w: benchpin.verify is inline, and what was read is held until it is hashed: expected up to %s (plan.memory_bytes), found %s %s; "+
		"lower reader.prefetch_size, reader.read_threads, reader.batch_size or benchpin.accelerators, or verify before the run (--verify before)", ErrMemory,
		gigabytes(int64(need)), gigabytes(int64(*have)), what)
}

// inlineResult takes what a run hashed into the record, and writes the digests of what it read to the run folder.
func (r *run) inlineResult(result *bench.Result) error {
	in := result.Inline
	if in == nil {
		return nil
	}
	v := in.InlineVerification
	r.verified.Files, r.verified.Bytes, r.verified.Inline = record.Int(in.Files), record.Int(in.FileBytes), &v
	if c := v.Confirmed; c != nil {
		r.verified.Seconds = c.Seconds
	}
	if result.Reads == nil {
		return nil
	}
	var b bytes.Buffer
	if _, err := result.Reads.WriteTo(&b); err != nil {
		return err
	}
	return writeFile(filepath.Join(r.Out, ReadsName), b.Bytes())
}

// readsFile is the file of digests of what was read, if there is one.
func (r *run) readsFile() ([]record.File, error) {
	if _, err := os.Lstat(filepath.Join(r.Out, ReadsName)); errors.Is(err, os.ErrNotExist) || r.verified.Inline == nil {
		return nil, nil
	}
	f, err := fileOf(r.Out, ReadsName)
	if err != nil {
		return nil, err
	}
	return []record.File{f}, nil
}

// hashesBefore is true for modes that hash before the clock starts.
func hashesBefore(mode string) bool {
	return mode == workload.VerifyBefore || mode == workload.VerifySample
}
