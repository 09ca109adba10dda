package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// ErrNeedManifest is wrapped by the error about a transcript that does not follow from the workload alone.
var ErrNeedManifest = errors.New("the manifest of the data set is needed")

// ErrNeedReads is wrapped by the error about a transcript that holds digests of parts of files.
var ErrNeedReads = errors.New("the digests of what was read are needed")

// Account is what a run of a workload must read, known without any data.
type Account struct {
	Plan *bench.Plan
	// Workload is what the workload was resolved to for the data set; it is nil for one that came from a record.
	Workload *workload.Resolved
	// Root is the root of the data set; "" where it is not known, because no manifest was given.
	Root string

	files bench.Dataset
	// pinned are the files as the manifest m lists them; both are nil where no manifest was given.
	pinned *pinnedFiles
	m      *manifest.Manifest
	// reads are the digests of what a run read, where they do not follow from the manifest.
	reads *bench.Reads
}

// Close frees the manifest.
func (a *Account) Close() error {
	if a.m == nil {
		return nil
	}
	return a.m.Close()
}

// Transcript computes the transcript that a run must have.
//
// That of a run that hashes what it reads (benchpin.verify: inline) holds digests: of whole files, which the manifest has, or of what was read
// of them, which stand beside the run's record. Without them the error wraps ErrNeedManifest or ErrNeedReads.
func (a *Account) Transcript(ctx context.Context) (record.Transcript, error) {
	if _, ok := a.files.(bench.Digested); !ok && a.Plan.Inline() == bench.ReadFile {
		return record.Transcript{}, fmt.Errorf("%w: with benchpin.verify inline the transcript holds the digest of every file that is read; name it with --manifest, or "+
			"check the archive", ErrNeedManifest)
	}
	if a.Plan.HasReads() && a.reads == nil {
		return record.Transcript{}, fmt.Errorf("%w: with benchpin.verify inline the transcript holds the digest of what was read of each sample; it is known of a run "+
			"or of an archive (benchpin transcript check)", ErrNeedReads)
	}
	return bench.ExpectedTranscriptOf(ctx, a.Plan, a.files, a.reads)
}

// Each yields every read of the run in order: see bench.EachRead.
func (a *Account) Each(ctx context.Context, w bench.Which, yield func(*bench.Read) error) error {
	return bench.EachRead(ctx, a.Plan, a.files, w, yield)
}

// ExpectedAccount is the account of a workload: on the data set of a manifest, or, with "", on that which the workload would generate.
// What is read of a generated data set follows from its recipe, and so from the workload; of data that nobody generated it follows from
// the manifest, without which the error wraps ErrNeedManifest.
// value is the public value that the run draws its order with, "" for none.
func ExpectedAccount(ctx context.Context, r *workload.Resolved, manifestPath, value string) (*Account, error) {
	if manifestPath != "" && !bench.CheckpointOnly(r.Workload) {
		m, err := manifest.Open(manifestPath)
		if err != nil {
			return nil, err
		}
		resolved, err := ForData(ctx, r, m)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", manifestPath, err), m.Close())
		}
		a, err := accountOn(ctx, resolved.Workload, m, value)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", manifestPath, err), m.Close())
		}
		a.Workload = resolved
		return a, nil
	}
	a, err := accountOf(ctx, r.Workload, value)
	if err != nil {
		return nil, err
	}
	a.Workload = r
	return a, nil
}

// accountOn is the account on a pinned data set. The manifest is the account's to close when there is no error.
func accountOn(ctx context.Context, w *workload.Workload, m *manifest.Manifest, value string) (*Account, error) {
	files, err := openFiles(ctx, m, w)
	if err != nil {
		return nil, err
	}
	if err := files.suits(w); err != nil {
		return nil, err
	}
	plan, err := newPlan(ctx, w, files.dataset(), value)
	if err != nil {
		return nil, err
	}
	return &Account{Plan: plan, Root: m.Header().Root.String(), files: files.dataset(), pinned: files, m: m}, nil
}

// accountOf is the account on the data set that the workload would generate.
func accountOf(ctx context.Context, w *workload.Workload, value string) (*Account, error) {
	if bench.CheckpointOnly(w) {
		plan, err := newPlan(ctx, w, nil, value)
		return &Account{Plan: plan}, err
	}
	files, err := filesOf(w)
	if err != nil {
		return nil, fmt.Errorf("%w; what is read of data that nobody generated follows from their manifest (--manifest FILE)", err)
	}
	plan, err := newPlan(ctx, w, files, value)
	if err != nil {
		return nil, err
	}
	return &Account{Plan: plan, files: files}, nil
}

// TranscriptDifference is one chain, or root, that is not what it must be.
type TranscriptDifference struct {
	// Part is "training" or "evaluation".
	Part string `json:"part"`
	// Rank is the rank of the chain; nil where it is the root or the number of entries that differs.
	Rank     *int   `json:"rank,omitempty"`
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// String is one line for people.
func (d TranscriptDifference) String() string {
	where := d.Part
	if d.Rank != nil {
		where += fmt.Sprintf(", rank %d", *d.Rank)
	}
	return fmt.Sprintf("%s: %s: expected %s, found %s", where, d.Field, d.Expected, d.Found)
}

// TranscriptReport is what checking the transcript of a result came to.
type TranscriptReport struct {
	Run    string `json:"run"`
	Status string `json:"status"`
	// Expected is the root that follows from workload and data set, Root that of the record.
	Expected string     `json:"expected"`
	Root     string     `json:"root"`
	Entries  record.Int `json:"entries"`
	Ranks    int        `json:"ranks"`
	// Manifest is true where the manifest was at hand, false where what is read followed from the workload of the record.
	Manifest bool `json:"manifest"`
	// Recomputed is what was made again from the recipe; nil where that was not asked for.
	Recomputed *Recomputed `json:"recomputed,omitempty"`
	// Differences are all chains, roots and counts that differ; empty when nothing does.
	Differences []TranscriptDifference `json:"differences"`
}

// TranscriptCheck computes the transcript that the run of a result must have again, from the workload in its record and the manifest in
// its archive, or at manifestPath, and compares it rank by rank. For a run folder on a generated data set no manifest is needed, unless
// the data set has other files than the workload would make. With again the digests of a sample of what was read are made from the recipe. Its error is about what could not be read or computed.
func TranscriptCheck(ctx context.Context, r *Result, manifestPath string, again *Recompute) (*TranscriptReport, error) {
	a, err := r.account(ctx, manifestPath)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if a.reads, err = r.reads(a.Plan); err != nil {
		return nil, err
	}
	expected, err := a.Transcript(ctx)
	if err != nil {
		if r.Record.Status != record.StatusComplete && a.reads != nil {
			err = refused{fmt.Errorf("the run is incomplete, so that it did not write down all digests: %w", err)}
		}
		return nil, err
	}
	rec := r.Record
	report := &TranscriptReport{Run: rec.ID, Status: rec.Status, Expected: expected.Root, Root: rec.Transcript.Root, Entries: expected.Entries,
		Ranks: len(expected.Ranks), Manifest: a.m != nil, Differences: []TranscriptDifference{}}
	report.compare("training", part(expected), part(rec.Transcript))
	var want, found transcriptPart
	if e := expected.Evaluation; e != nil {
		want = transcriptPart(*e)
	}
	if e := rec.Transcript.Evaluation; e != nil {
		found = transcriptPart(*e)
	}
	report.compare("evaluation", want, found)
	if again != nil {
		if err := report.recompute(ctx, a, *again); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// transcriptPart is what training and evaluation have in common.
type transcriptPart record.EvaluationTranscript

func part(t record.Transcript) transcriptPart {
	return transcriptPart{Root: t.Root, Ranks: t.Ranks, Entries: t.Entries, Expected: t.Expected}
}

func (t *TranscriptReport) compare(name string, want, found transcriptPart) {
	differ := func(rank *int, field, want, found string) {
		if want != found {
			t.Differences = append(t.Differences, TranscriptDifference{Part: name, Rank: rank, Field: field, Expected: orNothing(want), Found: orNothing(found)})
		}
	}
	for i := range max(len(want.Ranks), len(found.Ranks)) {
		var w, f string
		if i < len(want.Ranks) {
			w = want.Ranks[i]
		}
		if i < len(found.Ranks) {
			f = found.Ranks[i]
		}
		differ(&i, "chain", w, f)
	}
	differ(nil, "entries", fmt.Sprint(want.Entries), fmt.Sprint(found.Entries))
	differ(nil, "root", want.Root, found.Root)
	differ(nil, "expected root", want.Expected, found.Expected)
}

// account is the account of the run of a result.
func (r *Result) account(ctx context.Context, manifestPath string) (*Account, error) {
	rec := r.Record
	if problems := rec.Check(); len(problems) > 0 {
		return nil, refused{fmt.Errorf("the record contradicts itself: %s", problems[0])}
	}
	w, err := workload.ParseCanonical(rec.Workload.Canonical)
	if err != nil {
		return nil, fmt.Errorf("workload of the record: %w", err)
	}
	if bench.CheckpointOnly(w) {
		return accountOf(ctx, w, valueOf(rec.NotBefore))
	}
	if r.Archive || manifestPath != "" {
		m, err := r.Manifest(manifestPath)
		if err != nil {
			return nil, err
		}
		a, err := accountOn(ctx, w, m, valueOf(rec.NotBefore))
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		return a, nil
	}
	if !rec.Dataset.Generated {
		return nil, fmt.Errorf("%w: nobody generated it, so that what was read follows from it alone; name it with --manifest, or check the archive", ErrNeedManifest)
	}
	files, err := filesOf(w)
	if err != nil {
		return nil, err
	}
	if files.recipe.Seed() != rec.Dataset.Seed || record.Int(files.recipe.Entries()) != rec.Dataset.Files {
		return nil, fmt.Errorf("%w: the run was on %s made with seed %s, and its workload would make %s with seed %s; name it with --manifest, or check the archive",
			ErrNeedManifest, counted(rec.Dataset.Files, "file"), rec.Dataset.Seed, counted(files.recipe.Entries(), "file"), files.recipe.Seed())
	}
	return accountOf(ctx, w, valueOf(rec.NotBefore))
}
