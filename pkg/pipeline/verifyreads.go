package pipeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/stream"
	"github.com/benchpin/benchpin/pkg/workload"
)

// checkReads is the check of what a record says of the modes inline and sample.
const (
	checkReads       = "reads"
	limitReads       = "that the bytes that were hashed came from the storage: the host says so"
	limitReadsSample = "that the host hashed these files; the files outside of the sample, and that the seed was drawn at random"
)

// readsOf opens the digests of what a run read; nil where the plan's runs have none.
func readsOf(v *attest.Verification, plan *bench.Plan) (*bench.Reads, *fault.Fault) {
	f := v.File(ReadsName)
	if !plan.HasReads() {
		if f != nil {
			return nil, fault.New(fault.Record, "files", ReadsName+" is among the files, and no run of the plan makes one").In(attest.TitleRecord)
		}
		return nil, nil
	}
	if f == nil {
		return nil, fault.New(fault.Unchecked, "files", ReadsName+" is not among the files, or was refused").In(attest.TitleRecord)
	}
	reads, err := bench.OpenReads(plan, f, f.Size)
	if err != nil {
		return nil, fault.New(fault.RecordFile, "", err.Error()).In(ReadsName)
	}
	return reads, nil
}

// reads opens the digests of what the run of a result read; nil where a run of the plan has none. They must have the digest that the record says.
func (r *Result) reads(plan *bench.Plan) (*bench.Reads, error) {
	if !plan.HasReads() {
		return nil, nil
	}
	var b []byte
	var err error
	if r.Archive {
		blob := r.blob(ReadsName)
		if blob == nil {
			return nil, refused{fmt.Errorf("the archive holds no %s", ReadsName)}
		}
		b, err = blob.Bytes(blob.Size)
	} else {
		b, err = os.ReadFile(filepath.Join(r.folder, ReadsName))
	}
	if err != nil {
		return nil, fmt.Errorf("digests of what was read: %w", err)
	}
	for _, f := range r.Record.Files {
		if f.Name == ReadsName && f.Blake3 == record.Digest(b) {
			return bench.OpenReads(plan, bytes.NewReader(b), int64(len(b)))
		}
	}
	return nil, refused{fmt.Errorf("%s is not the file that the record lists", ReadsName)}
}

// transcriptFrom says from what the expected transcript of a plan is computed.
func transcriptFrom(plan *bench.Plan) string {
	switch {
	case plan.HasReads():
		return "without the data, with the digests of " + ReadsName
	case plan.Inline() == bench.ReadFile:
		return "without the data, with the digests of the manifest"
	}
	return "without the data"
}

// verificationAgain adds the check of what the record says of how the data set was compared, where that was inline or by a sample.
func verificationAgain(ctx context.Context, v *attest.Verification, plan *bench.Plan, files *pinnedFiles) {
	d := &v.Record.Dataset.Verification
	if plan.Epochs == 0 {
		if d.Inline != nil || d.Sample != nil {
			v.Add(attest.NewCheck(checkReads, record.HostOnly, "how the data set was compared", limitReads,
				differs("dataset.verification", "a run that reads no data has neither inline nor sample")))
		}
		return
	}
	switch mode := plan.Workload().Benchpin.Verify; {
	case mode == workload.VerifySample:
		evidence, f := sampleAgain(ctx, v, plan.Workload())
		v.Add(attest.NewCheck(checkReads, record.HostOnly, evidence, limitReadsSample, faults(f)...))
	case mode == workload.VerifyInline:
		evidence, f := inlineAgain(ctx, v, plan, files)
		v.Add(attest.NewCheck(checkReads, record.HostOnly, evidence, limitReads, faults(f)...))
	case d.Inline != nil || d.Sample != nil:
		v.Add(attest.NewCheck(checkReads, record.HostOnly, "how the data set was compared", limitReads,
			differs("dataset.verification", fmt.Sprintf("mode %s has neither inline nor sample", d.Mode))))
	}
}

// sampleAgain draws the sample again from its seed.
func sampleAgain(ctx context.Context, v *attest.Verification, w *workload.Workload) (evidence string, f *fault.Fault) {
	const at = "dataset.verification.sample"
	d := &v.Record.Dataset.Verification
	evidence = "the sample drawn again from its seed"
	if d.Sample == nil || d.Inline != nil {
		return evidence, differs(at, "expected the sample of mode sample, and nothing else")
	}
	s, err := sampleOf(ctx, v.Manifest, w, d.Sample.Seed)
	if err != nil {
		return evidence, differs(at, err.Error())
	}
	if !reflect.DeepEqual(s.verified, *d.Sample) {
		return evidence, differs(at, difference(s.verified, *d.Sample))
	}
	if d.Files != record.Int(s.files) || d.Bytes != record.Int(s.bytes) {
		return evidence, differs("dataset.verification.files", fmt.Sprintf("the seed draws %d files of %d bytes, found %d of %d", s.files, s.bytes, d.Files, d.Bytes))
	}
	return fmt.Sprintf("%s: %d of %d files; with 95 %% it hits one of %d damaged files (%.3g %%), with 99 %% one of %d (%.3g %%)", evidence, s.files, d.Sample.Of,
		d.Sample.Found95, d.Sample.Share95, d.Sample.Found99, d.Sample.Share99), nil
}

// inlineAgain compares what the record says of hashing in the run with what follows from the rest of the archive.
func inlineAgain(ctx context.Context, v *attest.Verification, plan *bench.Plan, files *pinnedFiles) (evidence string, f *fault.Fault) {
	const at = "dataset.verification."
	d := &v.Record.Dataset.Verification
	evidence = "what was hashed in the run computed again from the order"
	in := d.Inline
	if in == nil || d.Sample != nil {
		return evidence, differs(at+"inline", "expected what mode inline hashed, and nothing else")
	}
	if in.Reads != string(plan.Inline()) {
		return evidence, differs(at+"inline.reads", fmt.Sprintf("runs of the plan read %q, found %q", plan.Inline(), in.Reads))
	}
	entries := v.Record.Transcript.Entries
	if e := v.Record.Transcript.Evaluation; e != nil {
		entries += e.Entries
	}
	if in.Samples != entries {
		return evidence, differs(at+"inline.samples", fmt.Sprintf("the transcript has %d entries, found %d", entries, in.Samples))
	}
	visits, err := plan.Visits(ctx)
	if err != nil {
		return evidence, fault.New(fault.Unchecked, "transcript", err.Error()).In(attest.TitleRecord)
	}
	n, bytes, err := files.visited(ctx, v.Manifest, plan, visits)
	if err != nil {
		return evidence, fault.New(fault.Manifest, "", err.Error()).In(attest.TitleManifest)
	}
	if d.Files != record.Int(n) || d.Bytes != record.Int(bytes) {
		return evidence, differs(at+"files", fmt.Sprintf("the order reads %d files of %d bytes, found %d of %d", n, bytes, d.Files, d.Bytes))
	}
	if plan.Inline() == bench.ReadFile {
		asked := plan.BytesTotal
		if e := plan.Evaluation; e != nil {
			asked += e.BytesTotal
		}
		if in.Bytes != asked {
			return evidence, differs(at+"inline.bytes", fmt.Sprintf("the order reads %d bytes, found %d", asked, in.Bytes))
		}
	}
	if f := waitedAgain(v, plan, in); f != nil {
		return evidence, f
	}
	if in.Effect != nil {
		if f := effectAgain(v.Record, in.Effect); f != nil {
			return evidence, f
		}
	}
	evidence = fmt.Sprintf("%s: %d files of %d bytes; every entry of the transcript holds the digest of what was read", evidence, n, bytes)
	if !plan.HasReads() {
		if in.Confirmed != nil {
			return evidence, differs(at+"inline.confirmed", "nothing is compared after the run where whole files are read")
		}
		return evidence, nil
	}
	if in.Confirmed == nil || in.Confirmed.Samples != record.Int(visits.Samples()) {
		return evidence, differs(at+"inline.confirmed", fmt.Sprintf("expected %d samples", visits.Samples()))
	}
	again, all, f := readsAgain(ctx, v, plan, files, visits)
	return fmt.Sprintf("%s; those of %d of %d samples, chosen by the transcript's root, made again from the recipe", evidence, again, all), f
}

// visited counts the files that are read, companions included, and their bytes.
func (d *pinnedFiles) visited(ctx context.Context, m *manifest.Manifest, plan *bench.Plan, visits *bench.Visits) (files, bytes int64, err error) {
	form := plan.Inline()
	if form == bench.ReadNone {
		return 0, 0, nil
	}
	read := make([]bool, len(d.byEntry))
	for part, p := range []pinnedPart{d.pinnedPart, d.valid} {
		for i := range p.Files() {
			if !visits.File(bench.FileID{Evaluation: part == 1, Index: i}) {
				continue
			}
			read[p.entry(i, 0)] = true
			if form == bench.ReadStream {
				continue
			}
			for c := range p.companions {
				read[p.entry(i, c+1)] = true
			}
		}
	}
	index := 0
	err = m.Entries(ctx, func(e manifest.Entry) error {
		if read[d.byEntry[index]] {
			files++
			bytes += e.Size
		}
		index++
		return nil
	})
	return files, bytes, err
}

// waitedAgain adds up hash_ns, and compares the cores with the times of the epochs.
func waitedAgain(v *attest.Verification, plan *bench.Plan, in *record.InlineVerification) *fault.Fault {
	var waited int64
	for i, name := range []string{StepsName, EvalStepsName} {
		if i > 0 && plan.Evaluation == nil {
			continue
		}
		f := v.File(name)
		if f == nil {
			return fault.New(fault.Unchecked, "files", name+" is not among the files, or was refused").In(attest.TitleRecord)
		}
		r, err := stats.Open(f, f.Size)
		if err == nil {
			err = errors.Join(r.Each(func(s *stats.Step) error { waited += s.Hash; return nil }), r.Close())
		}
		if err != nil {
			return fault.New(fault.RecordFile, "", err.Error()).In(name)
		}
	}
	const at = "dataset.verification.inline."
	if want := time.Duration(waited).Seconds(); in.WaitedSeconds != want {
		return differs(at+"waited_seconds", fmt.Sprintf("the step times have %v, found %v", want, in.WaitedSeconds))
	}
	if want := v.Record.Metrics.HashCores(in.HashCPUSeconds); in.Cores != want {
		return differs(at+"cores", fmt.Sprintf("expected %v, found %v", want, in.Cores))
	}
	return nil
}

const (
	// readsFiles, readsBytes and readsSamples bound the files that are made again to read samples of them, and the samples of each.
	readsFiles   = 64
	readsBytes   = 256 << 20
	readsSamples = 64
)

// readsAgain makes files of the data set again from their recipe, in memory, reads samples of them as the run did, and compares their digests.
// Which ones follows from the root of the transcript, so that whoever wrote the digests could not choose it first. It returns of how
// many of how many samples.
func readsAgain(ctx context.Context, v *attest.Verification, plan *bench.Plan, files *pinnedFiles, visits *bench.Visits) (n, all int64, f *fault.Fault) {
	reads, f := readsOf(v, plan)
	if f != nil {
		return 0, 0, f
	}
	all = visits.Samples()
	// What no run reads has no digest: there is nothing else in the file than what is checked.
	for part, p := range []pinnedPart{files.pinnedPart, files.valid} {
		for i := range p.Files() {
			id := bench.FileID{Evaluation: part == 1, Index: i}
			for k := range int(plan.SamplesPerFile) {
				if _, have := reads.Digest(id, k); have && !visits.Sample(id, k) {
					return 0, all, fault.New(fault.RecordFile, "", fmt.Sprintf("it has a digest of sample %d of %s, which the order does not read", k, p.Path(i))).In(ReadsName)
				}
			}
		}
	}
	if files.recipe == nil || files.recipe.Available() != nil {
		return 0, all, nil
	}
	root := []byte(v.Record.Transcript.Root)
	draw := stream.New("benchpin/verify-reads", 1, binary.BigEndian.Uint64(root[len(root)-8:]))
	data := files.recipe.Files()
	made := map[int]bool{}
	var size int64
	for i := 0; i < 16*readsFiles && len(made) < min(readsFiles, data); i++ {
		file := int(draw.Uniform(0, uint64(i), uint64(data)))
		p, id := files.pinnedPart, bench.FileID{Index: file}
		if file >= files.recipe.TrainFiles() {
			p, id = files.valid, bench.FileID{Evaluation: true, Index: file - files.recipe.TrainFiles()}
		}
		if made[file] || id.Index >= p.Files() || !visits.File(id) {
			continue
		}
		if size += p.Size(id.Index); size > readsBytes {
			break
		}
		made[file] = true
		got, f := sampleReadsAgain(ctx, plan, files, p, id, reads, visits)
		if n += got; f != nil {
			return n, all, f
		}
	}
	return n, all, nil
}

// sampleReadsAgain makes one file and its companions again, and compares the digests of the first samples that are read of it.
func sampleReadsAgain(ctx context.Context, plan *bench.Plan, files *pinnedFiles, p pinnedPart, id bench.FileID, reads *bench.Reads,
	visits *bench.Visits) (n int64, f *fault.Fault) {
	bad := func(err error) *fault.Fault {
		return fault.New(fault.Unchecked, "recipe", err.Error()).In(attest.TitleManifest)
	}
	again := made{}
	for c := range len(p.companions) + 1 {
		var b bytes.Buffer
		entry := p.entry(id.Index, c)
		if err := files.recipe.Make(ctx, entry, &b); err != nil {
			return 0, bad(err)
		}
		again[files.recipe.Entry(entry).Path] = b.Bytes()
	}
	var positions []int
	for k := 0; k < int(plan.SamplesPerFile) && len(positions) < readsSamples; k++ {
		if visits.Sample(id, k) {
			positions = append(positions, k)
		}
	}
	var found *fault.Fault
	err := bench.SampleDigests(ctx, plan, p, again, id.Index, positions, func(k int, want [32]byte) error {
		n++
		if have, _ := reads.Digest(id, k); have != want && found == nil {
			found = fault.New(fault.RecordFile, "", fmt.Sprintf("sample %d of %s: expected %s by the recipe, found %s", k, p.Path(id.Index),
				manifest.FormatDigest(want), manifest.FormatDigest(have))).In(ReadsName)
		}
		return nil
	})
	if err != nil {
		return n, bad(err)
	}
	return n, found
}

// made are files in memory.
type made map[string][]byte

// Open opens one of them.
func (m made) Open(name string) (store.File, error) {
	b, ok := m[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return madeFile{bytes.NewReader(b), store.Info{Path: name, Size: int64(len(b))}}, nil
}

type madeFile struct {
	*bytes.Reader
	info store.Info
}

func (f madeFile) Info() (store.Info, error) { return f.info, nil }
func (f madeFile) Close() error              { return nil }

// effectAgain computes the effect of hashing on AU again from the epochs that the record lists.
func effectAgain(r *record.Record, e *record.ObserverEffect) *fault.Fault {
	const at = "dataset.verification.inline.observer_effect"
	if want := record.NewEffect(e.Epochs); !reflect.DeepEqual(want, *e) {
		return differs(at, difference(want, *e))
	}
	for _, p := range e.Epochs {
		if p.Turn != 1 {
			continue
		}
		if p.Epoch < 1 || p.Epoch > len(r.Metrics.Epochs) || r.Metrics.Epochs[p.Epoch-1].AU.Value == nil || *r.Metrics.Epochs[p.Epoch-1].AU.Value != p.With {
			return differs(at+".epochs", fmt.Sprintf("epoch %d of this run has another AU than %v", p.Epoch, p.With))
		}
	}
	return nil
}
