package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/benchpin/benchpin/pkg/audit"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// ErrNotInline is wrapped by the error about a run whose transcript holds no digests of what was read.
var ErrNotInline = errors.New("the transcript holds no digests of what was read: benchpin.verify was not inline")

// recomputeContext is the BLAKE3 key derivation context of the draws of samples that are made again.
const recomputeContext = "benchpin 2026-11-30 transcript recompute v1"

// mostMade is the size of the largest file, companions included, that is made in memory to read samples of it.
const mostMade = 4 << 30

// Recompute says of how many samples the digests are made again.
type Recompute struct {
	// Samples is how many; below 1, or as many as there are: all.
	Samples int64
	// From is the public value that draws them, together with the root of the transcript. It makes no difference where all are made.
	From string
}

// Recomputed is what was made again.
type Recomputed struct {
	// Samples of the Of that the run read, in Files files.
	Samples int64  `json:"samples"`
	Of      int64  `json:"of"`
	Files   int    `json:"files"`
	From    string `json:"from,omitempty"`
	// Assurance is what this says of the digests of the others, with 95 % and 99 %; none when anything differs.
	Assurance []audit.Assurance `json:"assurance,omitempty"`
}

// recompute makes files of the data set again from its recipe, in memory, reads samples of them as the run did, and compares the digests of what
// was read with those that the transcript holds.
func (t *TranscriptReport) recompute(ctx context.Context, a *Account, o Recompute) error {
	switch form := a.Plan.Inline(); {
	case form == "":
		return ErrNotInline
	case a.pinned == nil:
		return fmt.Errorf("%w to make its files again; name it with --manifest, or check the archive", ErrNeedManifest)
	case a.pinned.recipe == nil:
		return unfit(errors.New("nobody generated the data set, so that its files cannot be made again; \"benchpin audit\" asks whoever has them"))
	}
	if err := a.pinned.available(); err != nil {
		return err
	}
	visits, err := a.Plan.Visits(ctx)
	if err != nil {
		return err
	}
	chosen, err := a.choose(ctx, visits, t.Root, o)
	if err != nil {
		return err
	}
	done := &Recomputed{Of: visits.Samples(), Files: len(chosen)}
	before := len(t.Differences)
	for _, f := range chosen {
		if err := t.recomputeFile(ctx, a, f); err != nil {
			return err
		}
		done.Samples += int64(len(f.positions))
	}
	if done.Samples < done.Of {
		done.From = o.From
	}
	if len(t.Differences) == before {
		done.Assurance = []audit.Assurance{audit.AssureAlike(done.Samples, done.Of, 0.95), audit.AssureAlike(done.Samples, done.Of, 0.99)}
	}
	t.Recomputed = done
	return nil
}

// chosenFile are samples of one data file, in order.
type chosenFile struct {
	bench.FileID
	positions []int
}

// choose picks different samples among those that were read, each as likely as any other.
func (a *Account) choose(ctx context.Context, visits *bench.Visits, root string, o Recompute) ([]chosenFile, error) {
	samples := int64(a.Plan.SamplesPerFile)
	parts := [2]int64{int64(a.Plan.Files)}
	if e := a.Plan.Evaluation; e != nil {
		parts[1] = int64(e.Files)
	}
	picked := map[bench.FileID][]int{}
	n, all := int64(0), visits.Samples()
	take := func(at int64) {
		id := bench.FileID{Index: int(at / samples)}
		if at >= parts[0]*samples {
			id = bench.FileID{Evaluation: true, Index: int(at/samples - parts[0])}
		}
		if k := int(at % samples); visits.Sample(id, k) {
			picked[id] = append(picked[id], k)
			n++
		}
	}
	total := (parts[0] + parts[1]) * samples
	if o.Samples < 1 || o.Samples >= all {
		for at := range total {
			take(at)
		}
	} else {
		sum, err := manifest.ParseDigest(root)
		if err != nil {
			return nil, err
		}
		draws, drawn := audit.NewDraws(recomputeContext, sum, o.From, total), map[int64]bool{}
		for n < o.Samples {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			if at := draws.Next(); !drawn[at] {
				drawn[at] = true
				take(at)
			}
		}
	}
	files := make([]chosenFile, 0, len(picked))
	for id, positions := range picked {
		slices.Sort(positions)
		files = append(files, chosenFile{id, positions})
	}
	slices.SortFunc(files, func(a, b chosenFile) int {
		switch {
		case a.Evaluation != b.Evaluation && b.Evaluation:
			return -1
		case a.Evaluation != b.Evaluation:
			return 1
		}
		return a.Index - b.Index
	})
	return files, nil
}

// recomputeFile makes one file and its companions again, and compares the digests of samples.
func (t *TranscriptReport) recomputeFile(ctx context.Context, a *Account, f chosenFile) error {
	part, ds, name := a.pinned.pinnedPart, a.files, "training"
	if f.Evaluation {
		part, ds, name = a.pinned.valid, a.files.(bench.Evaluated).Evaluation(), "evaluation"
	}
	path := part.Path(f.Index)
	again := made{}
	for c := range len(part.companions) + 1 {
		entry := part.entry(f.Index, c)
		spec := a.pinned.recipe.Entry(entry)
		if spec.Size > mostMade {
			return fmt.Errorf("%s has %d bytes: files of at most %d are made again in memory; \"benchpin audit\" asks for parts of files", spec.Path, spec.Size, int64(mostMade))
		}
		var b bytes.Buffer
		if err := a.pinned.recipe.Make(ctx, entry, &b); err != nil {
			return err
		}
		again[spec.Path] = b.Bytes()
	}
	return bench.SampleDigests(ctx, a.Plan, ds, again, f.Index, f.positions, func(k int, want [32]byte) error {
		found := part.Digest(f.Index, 0) // where whole files are read, the transcript holds the manifest's digests
		if a.reads != nil {
			found, _ = a.reads.Digest(f.FileID, k)
		}
		if found != want {
			t.Differences = append(t.Differences, TranscriptDifference{Part: name, Field: fmt.Sprintf("digest of sample %d of %s", k, path),
				Expected: manifest.FormatDigest(want).String(), Found: manifest.FormatDigest(found).String()})
		}
		return nil
	})
}
