package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ReplayScope is how much of a result is replayed.
type ReplayScope string

// The scopes.
const (
	// ReplayAll makes the data set again, runs, and compares everything.
	ReplayAll ReplayScope = ""
	// ReplayData makes the data set again, or checks the one at hand, and compares the root. Nothing is run.
	ReplayData ReplayScope = "data"
	// ReplaySchedule computes plan and transcript again. No data is read or written.
	ReplaySchedule ReplayScope = "schedule"
)

// ReplayTolerance is the default of ReplayOptions.Tolerance.
const ReplayTolerance = 0.05

// ErrReplayDiffers is wrapped by the error of a replay in which something differs that must be bit-identical. It names the items.
var ErrReplayDiffers = errors.New("the replay differs")

// ErrNeedData is wrapped by the error about a data set that nobody can make again, and was not given.
var ErrNeedData = errors.New("the data set is needed")

// ReplayOptions says which result to repeat, and where.
type ReplayOptions struct {
	// Archive is the folder of the archive; Keys are those that it must verify with, by Policy.
	Archive string
	Keys    []attest.PublicKey
	Policy  attest.Policy
	// Unverified replays an archive that does not verify; without keys none does.
	Unverified bool
	Scope      ReplayScope
	// Dir is the folder of the replay, with the layout of a pipeline's. Archives of other data sets need other folders.
	Dir string
	// Data is the folder of the data set; "" is that in Dir. Where it holds files they are compared with the archived manifest, otherwise
	// the data set is generated there from its recipe.
	Data string
	// Tolerance is how far the rate may be off for the performance to be the same: 0.05 is from 1/1.05 to 1.05 times the original's.
	Tolerance float64
	// OverwriteCheckpoints, Workers, Redact and Tool are those of RunOptions; Journal is the file of the journal, "" keeps none.
	OverwriteCheckpoints bool
	Journal              string
	Workers              int
	Redact               bool
	Tool                 record.Tool
	// Key, if not nil, signs: the archive of the replay's own run, and the attestation that the original was replayed.
	Key attest.Signer
	Notify
}

// ReplayResult is what a replay came to. As JSON it is what "replay --json" prints.
type ReplayResult struct {
	// Archive is the digest of the OCI manifest of what was replayed.
	Archive string `json:"archive"`
	// Original names its run.
	Original attest.ReplayedRun `json:"original"`
	// Unverified is true when it did not verify and was replayed all the same.
	Unverified bool   `json:"unverified"`
	Scope      string `json:"scope"`
	// Tolerance is that of the performance.
	Tolerance float64             `json:"tolerance"`
	Items     []attest.ReplayItem `json:"items"`
	Level     attest.ReplayLevel  `json:"level"`
	Replay    *attest.ReplayRun   `json:"replay,omitempty"`
	Folder    string              `json:"folder,omitempty"` // of the replay's run
	Record    *record.Record      `json:"-"`
	Bundle    []byte              `json:"-"` // attests the replay; nil without a key
}

// Replay verifies an archive, makes its data set again or checks the one at hand, runs its workload on it, and compares. Data that differ
// are not run on. The result has every item that was reached, also beside an error.
//
// The error wraps ErrVerification where the archive does not verify, ErrReplayDiffers where data, schedule or checkpoints differ, and
// ErrNeedData where the data set has no recipe and none was given. That the rate is outside of the tolerance, or that tool and environment
// are others, is no error: only the level says so.
func Replay(ctx context.Context, o ReplayOptions) (*ReplayResult, error) {
	r := &replay{ReplayOptions: o, out: &ReplayResult{Items: []attest.ReplayItem{}, Level: attest.LevelNone, Scope: "all", Tolerance: o.Tolerance}}
	if o.Scope != ReplayAll {
		r.out.Scope = string(o.Scope)
	}
	if err := r.apart(); err != nil {
		return r.out, err
	}
	if err := r.open(ctx); err != nil {
		return r.out, err
	}
	defer r.v.Close()
	var err error
	switch o.Scope {
	case ReplaySchedule:
		r.scheduleAgain(ctx)
	default:
		err = r.again(ctx)
	}
	r.settle()
	if err == nil && len(r.differing) > 0 {
		err = fmt.Errorf("%w: %s", ErrReplayDiffers, joinAnd(r.differing))
	}
	if err == nil && o.Key != nil && r.out.Record != nil {
		err = r.sign(ctx)
	}
	return r.out, err
}

// replay is the state of one replay.
type replay struct {
	ReplayOptions
	out *ReplayResult
	v   *attest.Verification
	// differing are the items that differ and must not.
	differing []string
	// w is the archived workload, l the places of the replay, data the folder of the data set.
	w    *workload.Resolved
	l    Layout
	data string
	// plan is the original's, nil where it cannot be made.
	plan *bench.Plan
}

// The items, in their order.
const (
	itemAttestation = "attestation"
	itemData        = "data"
	itemSchedule    = "schedule"
	itemCheckpoints = "checkpoints"
	itemTool        = "tool"
	itemEnvironment = "environment"
	itemPerformance = "performance"
)

func (r *replay) item(name string, outcome attest.ReplayOutcome, format string, args ...any) {
	detail := fault.Printable(fmt.Sprintf(format, args...))
	r.out.Items = append(r.out.Items, attest.ReplayItem{Name: name, Outcome: outcome, Detail: detail})
	if outcome == attest.ReplayDiffers && (name == itemData || name == itemSchedule || name == itemCheckpoints) {
		r.differing = append(r.differing, name+": "+detail)
	}
}

func joinAnd(parts []string) string {
	s := parts[0]
	for _, p := range parts[1:] {
		s += "; and " + p
	}
	return s
}

// open verifies the archive and reads what is to be replayed.
func (r *replay) open(ctx context.Context) error {
	keys := r.Keys
	if len(keys) == 0 && r.Unverified {
		// Nobody has this key, so that no signature can hold.
		none, err := attest.GenerateKey(attest.Ed25519)
		if err != nil {
			return err
		}
		keys = []attest.PublicKey{none.Public()}
	}
	v, err := Verify(ctx, r.Archive, keys, r.Policy)
	if err != nil {
		return err
	}
	r.v = v
	if err := r.source(v); err != nil {
		return errors.Join(err, v.Close())
	}
	return nil
}

func (r *replay) source(v *attest.Verification) error {
	r.out.Archive = v.Archive.SHA256Digest().String()
	rec := v.Record
	if rec != nil {
		r.out.Original = attest.ReplayedRun{Run: fault.Printable(rec.ID), Record: record.Digest(v.RecordBytes)}
	}
	failed, waived := 0, ""
	for _, c := range v.Checks {
		switch {
		case c.Waived:
			waived = " or is waived by the policy"
		case !c.OK:
			failed++
		}
	}
	switch {
	case failed == 0:
		r.item(itemAttestation, attest.ReplayValid, "each of %s passed%s; signed by %s", counted(len(v.Checks), "check"), waived, strings.Join(v.Keys, ", "))
	case len(r.Keys) == 0:
		r.item(itemAttestation, attest.ReplayNotValid, "it was verified with no key")
	default:
		r.item(itemAttestation, attest.ReplayNotValid, "%d of %s failed", failed, counted(len(v.Checks), "check"))
	}
	r.out.Unverified = failed > 0
	switch {
	case failed > 0 && !r.Unverified:
		return fmt.Errorf("a source that does not verify is not replayed, unless --unverified: %w", v.Err())
	case rec == nil || v.Manifest == nil:
		return refused{errors.New("the record or the manifest of the archive cannot be read, so that there is nothing to replay")}
	case rec.Status != record.StatusComplete:
		return refused{fmt.Errorf("run %s is incomplete, and there is nothing that a replay could come to", r.out.Original.Run)}
	}
	var err error
	if r.w, err = workload.Archived(rec.Workload.Name, digest.Digest(rec.Workload.Source), rec.Workload.Overrides, rec.Workload.Canonical); err != nil {
		return refused{fmt.Errorf("workload of the record: %w", err)}
	}
	return nil
}

// scheduleAgain computes plan and transcript from the archive alone.
func (r *replay) scheduleAgain(ctx context.Context) {
	r.item(itemData, attest.ReplayNotAsked, "the data set was neither made nor read")
	plan, files, f := planAgain(ctx, r.v)
	if f == nil {
		f = transcriptAgain(ctx, r.v, plan, files)
	}
	r.scheduleItem(f, "computed again from workload and manifest, without the data")
}

func (r *replay) scheduleItem(f *fault.Fault, how string) {
	t := &r.v.Record.Transcript
	if f != nil {
		r.item(itemSchedule, attest.ReplayDiffers, "%s: %s", f.Field, f.Detail)
		return
	}
	r.item(itemSchedule, attest.ReplaySame, "transcript root %s over %d samples, %s", t.Root, t.Entries, how)
}

// again makes the data set again and, where that is asked for, runs on it.
func (r *replay) again(ctx context.Context) error {
	r.l = Layout{r.Dir}
	if r.data = r.Data; r.data == "" {
		r.data = r.l.Data()
	}
	if err := r.place(); err != nil {
		return err
	}
	if same, err := r.dataAgain(ctx); err != nil || !same || r.Scope == ReplayData {
		return err
	}
	// A plan that does not follow from the archive is no reason not to run: what is compared is what was read.
	if plan, _, f := planAgain(ctx, r.v); f == nil {
		r.plan = plan
	}
	id := NewID(time.Now())
	rec, err := Run(ctx, RunOptions{Workload: r.w, Data: r.data, Manifest: r.l.Manifest(), Checkpoints: r.l.Checkpoints(),
		OverwriteCheckpoints: r.OverwriteCheckpoints, Out: r.l.Run(id), ID: id, Journal: r.Journal, Workers: r.Workers, Redact: r.Redact, Tool: r.Tool,
		Notify: r.Notify, NotBefore: r.v.Record.NotBefore,
		ReplayOf: &record.ReplayOf{Class: record.HostOnly, Archive: r.out.Archive, Record: r.out.Original.Record, Run: r.v.Record.ID,
			Unverified: r.out.Unverified}})
	if rec == nil {
		if r.dataDiffers(err) {
			return nil
		}
		return err
	}
	r.out.Folder = r.l.Run(id)
	if err != nil && !errors.Is(err, ErrThreshold) {
		return err
	}
	r.out.Record = rec
	b, err := rec.Canonical()
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	r.out.Replay = &attest.ReplayRun{Run: rec.ID, Started: rec.Started, Finished: rec.Finished, Record: record.Digest(b)}
	return r.compare(ctx)
}

// settle finds the level.
func (r *replay) settle() {
	have := map[string]attest.ReplayOutcome{}
	for _, i := range r.out.Items {
		have[i.Name] = i.Outcome
	}
	same := func(name string) bool { return have[name] == attest.ReplaySame || have[name] == attest.ReplayAbsent }
	for _, step := range []struct {
		level attest.ReplayLevel
		held  bool
	}{
		{attest.LevelAttested, have[itemAttestation] == attest.ReplayValid},
		{attest.LevelData, same(itemData)},
		{attest.LevelSchedule, same(itemSchedule)},
		{attest.LevelResult, same(itemCheckpoints) && have[itemPerformance] == attest.ReplayWithin},
	} {
		if !step.held {
			return
		}
		r.out.Level = step.level
	}
}

// sign makes the archive of the replay's own run, and the bundle that attests the replay.
func (r *replay) sign(ctx context.Context) error {
	folder := r.l.ReplayArchive(r.out.Replay.Run)
	if err := os.MkdirAll(r.l.archives(), 0o777); err != nil {
		return fmt.Errorf("archive of the replay: %w", err)
	}
	manifest := r.l.Manifest()
	if bench.CheckpointOnly(r.w.Workload) {
		manifest = ""
	}
	info, err := Attest(ctx, AttestOptions{Run: r.out.Folder, Manifest: manifest, Archive: folder, Key: r.Key})
	if err != nil {
		return fmt.Errorf("archive of the replay: %w", err)
	}
	r.out.Replay.Archive = info.Archive.SHA256Digest().String()
	r.stage("archive  %s, of the replay's own run, %s", folder, r.out.Replay.Archive)
	r.out.Bundle, err = attest.SignReplay(ctx, r.Key, r.v, attest.ReplayPredicate{Original: r.out.Original, Replay: *r.out.Replay, Tool: attest.NewReplayTool(r.out.Record.Tool),
		Unverified: r.out.Unverified, Tolerance: r.Tolerance, Level: r.out.Level, Items: r.out.Items})
	return err
}
