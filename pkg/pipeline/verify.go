package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// Verify checks an archive with the given public keys, offline: all that attest.VerifyArchive checks, and then everything in the
// record that follows from the rest of the archive, by computing it again: plan, transcript, checkpoints, figures, and the digests of
// some of the data set's files from its recipe. Every check is in the result, whether it passed or not. The error is
// attest.VerifyArchive's; that a check failed is in Verification.Err. The caller closes the result.
func Verify(ctx context.Context, dir string, keys []attest.PublicKey, p attest.Policy) (*attest.Verification, error) {
	v, err := attest.VerifyArchive(ctx, dir, keys, p)
	if err != nil {
		return nil, err
	}
	if err := recompute(ctx, v); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	v.Waive(p)
	return v, nil
}

// The checks that recompute adds.
const (
	checkPlan        = "plan"
	checkTranscript  = "transcript"
	checkCheckpoints = "checkpoints"
	checkFigures     = "figures"
	checkRecipe      = "recipe"
)

// What the checks do not show, however well they pass.
const (
	limitPlan        = "that the storage could deliver it"
	limitTranscript  = "that the samples were really read: the host says so"
	limitCheckpoints = "that they reached the device, or are still there"
	limitFigures     = "that the step times are true: they are class H"
	limitRecipe      = "the files that were not generated again"
	limitNoRecipe    = "where the data come from, and that they are what their names say"
)

// recompute adds the checks that need the engine. Its error is ctx's; everything else is a check.
func recompute(ctx context.Context, v *attest.Verification) error {
	if v.Record == nil || v.Manifest == nil {
		for _, name := range []string{checkJournal, checkPlan, checkTranscript, checkCheckpoints, checkFigures, checkRecipe} {
			v.Add(attest.NewCheck(name, record.Recomputable, "computed again from the archive", "",
				fault.New(fault.Unchecked, "", "the record or the manifest was refused").In(attest.TitleRecord)))
		}
		return nil
	}
	v.Add(journalAgain(v))
	plan, files, f := planAgain(ctx, v)
	v.Add(attest.NewCheck(checkPlan, record.Recomputable,
		"files, steps, bytes and rates computed again from workload and manifest", limitPlan, faults(f)...))
	if f == nil {
		v.Add(attest.NewCheck(checkTranscript, record.Recomputable,
			fmt.Sprintf("every rank's chain over %d samples computed again %s: root %s", v.Record.Transcript.Entries, transcriptFrom(plan),
				v.Record.Transcript.Root), limitTranscript, faults(transcriptAgain(ctx, v, plan, files))...))
		verificationAgain(ctx, v, plan, files)
		evidence, bad := checkpointsAgain(ctx, v.Record, plan)
		v.Add(attest.NewCheck(checkCheckpoints, record.Recomputable, evidence, limitCheckpoints, faults(bad)...))
		from := StepsName
		if plan.Epochs == 0 {
			from = "the times of every rank in the record"
		}
		count, more := dlioAgain(ctx, v, plan)
		wrong := figuresAgain(ctx, v, plan)
		if wrong == nil {
			wrong = spanAgain(v, plan)
		}
		v.Add(attest.NewCheck(checkFigures, record.HostOnly,
			fmt.Sprintf("every figure computed again, to the bit, from %s; %d files of DLIO too", from, count), limitFigures,
			append(faults(wrong), more...)...))
		n, total, fs := recipeAgain(ctx, v, files)
		evidence, limit := fmt.Sprintf("%d of %d files, chosen by the root, generated again from the recipe in memory and hashed", n, total), limitRecipe
		if files.recipe == nil && total > 0 {
			evidence, limit = fmt.Sprintf("the manifest has no recipe: nobody generated the %d files, and nothing can be made again", total), limitNoRecipe
		}
		v.Add(attest.NewCheck(checkRecipe, record.Recomputable, evidence, limit, fs...))
		certificateAgain(ctx, v, files)
		repeatsAgain(ctx, v)
	} else {
		for _, name := range []string{checkTranscript, checkCheckpoints, checkFigures, checkRecipe} {
			v.Add(attest.NewCheck(name, record.Recomputable, "computed again from the plan", "",
				fault.New(fault.Unchecked, "", "the plan does not hold").In(attest.TitleRecord)))
		}
	}
	return ctx.Err()
}

func faults(f *fault.Fault) []*fault.Fault {
	if f == nil {
		return nil
	}
	return []*fault.Fault{f}
}

// differs says that a part of the record is not what follows from the archive.
func differs(field, detail string) *fault.Fault {
	return fault.New(fault.Record, field, detail).In(attest.TitleRecord)
}

func planAgain(ctx context.Context, v *attest.Verification) (*bench.Plan, *pinnedFiles, *fault.Fault) {
	w, err := workload.ParseCanonical(v.Record.Workload.Canonical)
	if err != nil {
		return nil, nil, fault.New(fault.Workload, "workload.canonical", err.Error()).In(attest.TitleRecord)
	}
	if bench.CheckpointOnly(w) {
		return planWithoutData(ctx, w, v)
	}
	files, err := openFiles(ctx, v.Manifest, w)
	if err != nil {
		return nil, nil, fault.New(fault.Manifest, "", err.Error()).In(attest.TitleManifest)
	}
	if err := files.suits(w); err != nil {
		return nil, nil, fault.New(fault.Manifest, "recipe", err.Error()).In(attest.TitleManifest)
	}
	if want, found := foreignFormat(files, w), v.Record.Dataset.Format; want != found {
		return nil, nil, differs("dataset.format", fmt.Sprintf("expected %q, found %q", want, found))
	}
	return samePlan(ctx, w, files, v)
}

// samePlan makes the plan again and compares it with the record's.
func samePlan(ctx context.Context, w *workload.Workload, files *pinnedFiles, v *attest.Verification) (*bench.Plan, *pinnedFiles, *fault.Fault) {
	plan, err := newPlan(ctx, w, files.dataset(), valueOf(v.Record.NotBefore))
	if err != nil {
		return nil, nil, differs("plan", err.Error())
	}
	if !v.Record.Plan.Direct {
		plan.Plan.Direct = false // records of earlier versions do not say it; the workload does
	}
	if plan, err = plan.WithCheckpointForm(v.Record.Plan.CheckpointForm); err != nil {
		return nil, nil, differs("plan.checkpoint_form", err.Error())
	}
	if !reflect.DeepEqual(plan.Plan, v.Record.Plan) {
		return nil, nil, differs("plan", difference(plan.Plan, v.Record.Plan))
	}
	if f := dealtAgain(v.Record.Cluster, plan); f != nil {
		return nil, nil, f
	}
	if mode := v.Record.Dataset.Verification.Mode; mode != w.Benchpin.Verify {
		return nil, nil, differs("dataset.verification.mode", fmt.Sprintf("the workload asks for %q, found %q", w.Benchpin.Verify, mode))
	}
	return plan, files, nil
}

// difference names the first JSON field in which two documents differ.
func difference(expected, found any) string {
	a, _ := json.Marshal(expected)
	b, _ := json.Marshal(found)
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil {
		for _, m := range []map[string]json.RawMessage{x, y} {
			for key := range m {
				if !bytes.Equal(x[key], y[key]) {
					return fmt.Sprintf("%s: expected %s, found %s", key, orAbsent(x[key]), orAbsent(y[key]))
				}
			}
		}
	}
	return "differs from what follows from workload and manifest"
}

func orAbsent(b json.RawMessage) string {
	const most = 200
	switch {
	case b == nil:
		return "nothing"
	case len(b) > most:
		return string(b[:most]) + "..."
	default:
		return string(b)
	}
}

func transcriptAgain(ctx context.Context, v *attest.Verification, plan *bench.Plan, files *pinnedFiles) *fault.Fault {
	reads, f := readsOf(v, plan)
	if f != nil {
		return f
	}
	r := v.Record
	expected, err := bench.ExpectedTranscriptOf(ctx, plan, files.dataset(), reads)
	if err != nil {
		return fault.New(fault.Unchecked, "transcript", err.Error()).In(attest.TitleRecord)
	}
	if !reflect.DeepEqual(expected, r.Transcript) {
		return differs("transcript", difference(expected, r.Transcript))
	}
	return nil
}

// againCheckpoints bounds the bytes of checkpoints that verification produces again: some seconds of work.
const againCheckpoints = 8 << 30

// checkpointsAgain compares the checkpoints of the record with those that follow from the workload. It returns what was done for it.
func checkpointsAgain(ctx context.Context, r *record.Record, plan *bench.Plan) (evidence string, f *fault.Fault) {
	saves, loads := r.Checkpoints.Saves, r.Checkpoints.Loads
	expected, err := bench.ExpectedCheckpointsWithin(ctx, plan, againCheckpoints)
	if err != nil {
		return "computed again from the seed", fault.New(fault.Unchecked, "checkpoints", err.Error()).In(attest.TitleRecord)
	}
	hashed := 0
	for i := range expected {
		if expected[i].Digest != "" {
			hashed++
		} else if i < len(saves) {
			expected[i].Digest = saves[i].Digest
		}
	}
	evidence = fmt.Sprintf("names, sizes and digests of %d checkpoints computed again from the seed", len(saves))
	if hashed < len(expected) {
		evidence = fmt.Sprintf("names and sizes of %d checkpoints, and the digests of the first %d, computed again from the seed: more would take long",
			len(saves), hashed)
	}
	if len(loads) > 0 {
		evidence += fmt.Sprintf("; names and sizes of %d read back", len(loads))
	}
	if len(expected) != len(saves) {
		return evidence, differs("checkpoints.saves", fmt.Sprintf("expected %d, found %d", len(expected), len(saves)))
	}
	for i, s := range saves {
		// How long it took does not follow from anything.
		found := record.Checkpoint{Name: s.Name, Epoch: s.Epoch, Step: s.Step, Bytes: s.Bytes, Digest: s.Digest}
		if !reflect.DeepEqual(expected[i], found) {
			return evidence, differs(fmt.Sprintf("checkpoints.saves[%d]", i), difference(expected[i], found))
		}
	}
	back := bench.ExpectedLoads(plan)
	if len(back) != len(loads) {
		return evidence, differs("checkpoints.loads", fmt.Sprintf("expected %d, found %d", len(back), len(loads)))
	}
	for i, l := range loads {
		found := record.CheckpointLoad{Name: l.Name, Epoch: l.Epoch, Step: l.Step, Bytes: l.Bytes, Verified: l.Verified}
		if !reflect.DeepEqual(back[i], found) {
			return evidence, differs(fmt.Sprintf("checkpoints.loads[%d]", i), difference(back[i], found))
		}
	}
	return evidence, nil
}

// metricsAgain computes the figures again.
func metricsAgain(ctx context.Context, v *attest.Verification, plan *bench.Plan) (record.Metrics, *fault.Fault) {
	if plan.Epochs == 0 {
		return bench.CheckpointMetrics(plan, v.Record.Checkpoints, true), nil
	}
	var files [2]bench.StepsReader
	for i, name := range []string{StepsName, EvalStepsName} {
		if i > 0 && plan.Evaluation == nil {
			continue
		}
		f := v.File(name)
		if f == nil {
			return record.Metrics{}, fault.New(fault.Unchecked, "files", name+" is not among the files, or was refused").In(attest.TitleRecord)
		}
		files[i] = bench.StepsReader{ReaderAt: f, Bytes: f.Size}
	}
	m, err := bench.Figures(ctx, plan, files[0], files[1], false)
	if err != nil {
		name := StepsName
		if errors.Is(err, bench.ErrEvaluation) {
			name = EvalStepsName
		}
		return record.Metrics{}, fault.New(fault.RecordFile, "", err.Error()).In(name)
	}
	bench.AddCheckpointFigures(&m, plan, v.Record.Checkpoints)
	return m, nil
}

func figuresAgain(ctx context.Context, v *attest.Verification, plan *bench.Plan) *fault.Fault {
	expected, f := metricsAgain(ctx, v, plan)
	if f != nil {
		return f
	}
	// Compared as they are written, since a figure in DLIO's map has another Go type once it was read.
	a, err := json.Marshal(expected)
	if err != nil {
		return differs("metrics", err.Error())
	}
	b, err := json.Marshal(v.Record.Metrics)
	if err != nil {
		return differs("metrics", err.Error())
	}
	if !bytes.Equal(a, b) {
		return differs("metrics", difference(expected, v.Record.Metrics))
	}
	return nil
}
