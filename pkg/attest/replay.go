package attest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// ReplayType is the predicate type of the attestation that a result was replayed, by whoever replayed it. The archive does not determine
// it, so that it never counts as one of the archive's own.
const ReplayType = "https://github.com/benchpin/benchpin/replay/v1"

// ReplaySchemaFile is the name of the JSON schema of ReplayPredicate in package schemas.
const ReplaySchemaFile = "replay-v1.schema.json"

// ReplayLevel says how far a replay came to the same as the original. Each level has all those before it.
type ReplayLevel string

// The levels, from the lowest.
const (
	// LevelNone: the original did not verify.
	LevelNone ReplayLevel = "none"
	// LevelAttested: the original verified.
	LevelAttested ReplayLevel = "attested"
	// LevelData: every byte of the data set was made again, or is there.
	LevelData ReplayLevel = "data-reproduced"
	// LevelSchedule: the same samples were read in the same order.
	LevelSchedule ReplayLevel = "schedule-reproduced"
	// LevelResult: the same checkpoints were written, and the rate is within the tolerance.
	LevelResult ReplayLevel = "result-reproduced"
)

// ReplayLevels are all levels, from the lowest.
func ReplayLevels() []ReplayLevel {
	return []ReplayLevel{LevelNone, LevelAttested, LevelData, LevelSchedule, LevelResult}
}

// ReplayOutcome is what the comparison of one item came to.
type ReplayOutcome string

// The outcomes.
const (
	ReplayValid     ReplayOutcome = "valid"     // of the attestation
	ReplayNotValid  ReplayOutcome = "not-valid" // of the attestation
	ReplaySame      ReplayOutcome = "same"
	ReplayDiffers   ReplayOutcome = "differs"
	ReplayWithin    ReplayOutcome = "within"    // of the performance: within the tolerance
	ReplayOutside   ReplayOutcome = "outside"   // of the performance
	ReplayUndecided ReplayOutcome = "undecided" // of the performance: too few steps, or too much noise
	ReplayAbsent    ReplayOutcome = "absent"    // the run has nothing of the kind
	ReplayNotAsked  ReplayOutcome = "not-asked" // the replay was told to leave it out
)

// ReplayItem is one line of a replay's verdict.
type ReplayItem struct {
	// Name is "attestation", "data", "schedule", "checkpoints", "tool", "environment" or "performance".
	Name    string        `json:"name"`
	Outcome ReplayOutcome `json:"outcome"`
	// Detail is for people.
	Detail string `json:"detail"`
}

// ReplayPredicate is the predicate of type ReplayType. Its JSON schema is schemas/replay-v1.schema.json.
type ReplayPredicate struct {
	Original ReplayedRun `json:"original"`
	Replay   ReplayRun   `json:"replay"`
	Tool     ResultTool  `json:"tool"`
	// Unverified is true when the original did not verify where it was replayed.
	Unverified bool `json:"unverified"`
	// Tolerance is that of the performance: 0.05 is 5 %.
	Tolerance float64      `json:"tolerance"`
	Level     ReplayLevel  `json:"level"`
	Items     []ReplayItem `json:"items"`
}

// ReplayedRun names the run that was replayed.
type ReplayedRun struct {
	Run string `json:"run"`
	// Record is the BLAKE3 digest of its record.
	Record string `json:"record"`
}

// ReplayRun names the run that the replay was.
type ReplayRun struct {
	Run      string `json:"run"`
	Started  string `json:"started"`
	Finished string `json:"finished"`
	// Record is the BLAKE3 digest of its record, Archive the SHA-256 digest of the OCI manifest of its own archive.
	Record  string `json:"record"`
	Archive string `json:"archive"`
}

// NewReplayTool is what the predicate says of the program of a record.
func NewReplayTool(t record.Tool) ResultTool {
	return ResultTool{Name: t.Name, Version: t.Version, Commit: t.Commit, Modified: t.Modified, Platform: t.Platform, Binary: t.Binary}
}

// check returns what the predicate says and cannot be.
func (p *ReplayPredicate) check() *fault.Fault {
	wrong := func(field, expected, found string) *fault.Fault {
		return fault.New(fault.PredicateMismatch, "payload.predicate."+field, fmt.Sprintf("expected %s, found %q", expected, shorten(found)))
	}
	switch {
	case !slices.Contains(ReplayLevels(), p.Level):
		return wrong("level", "one of the levels of a replay", string(p.Level))
	case !record.IsDigest(p.Replay.Record):
		return wrong("replay.record", "blake3: and 64 hexadecimal digits", p.Replay.Record)
	case !isSHA256(p.Replay.Archive):
		return wrong("replay.archive", "sha256: and 64 hexadecimal digits", p.Replay.Archive)
	case p.Replay.Run == "":
		return wrong("replay.run", "the name of a run", "")
	case !record.IsDigest(p.Tool.Binary):
		return wrong("tool.binary", "blake3: and 64 hexadecimal digits", p.Tool.Binary)
	case p.Tool.Name == "" || p.Tool.Version == "" || p.Tool.Platform == "":
		return wrong("tool", "name, version and platform", "")
	case !(p.Tolerance > 0):
		return wrong("tolerance", "a number above 0", fmt.Sprint(p.Tolerance))
	case p.Original.Run == p.Replay.Run || p.Original.Record == p.Replay.Record:
		return wrong("replay.run", "another run than the one that was replayed", p.Replay.Run)
	}
	for i, item := range p.Items {
		field := fmt.Sprintf("items[%d]", i)
		if !slices.Contains(replayItems(), item.Name) {
			return wrong(field+".name", "an item of a replay", item.Name)
		}
		if !slices.Contains(replayOutcomes(), item.Outcome) {
			return wrong(field+".outcome", "the outcome of an item", string(item.Outcome))
		}
	}
	return nil
}

func replayItems() []string {
	return []string{"attestation", "data", "schedule", "checkpoints", "tool", "environment", "performance"}
}

func replayOutcomes() []ReplayOutcome {
	return []ReplayOutcome{ReplayValid, ReplayNotValid, ReplaySame, ReplayDiffers, ReplayWithin, ReplayOutside, ReplayUndecided, ReplayAbsent, ReplayNotAsked}
}

// isSHA256 reports whether s is a digest as registries write it.
func isSHA256(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// parseReplay reads the predicate of a statement about this archive. What is wrong with it is the fault.
func (v *verifier) parseReplay(raw json.RawMessage) (*ReplayPredicate, *fault.Fault) {
	var p ReplayPredicate
	if err := strictjson.Unmarshal(raw, limits.BundleBytes, &p); err != nil {
		return nil, asFault(inPayload(err))
	}
	if f := p.check(); f != nil {
		return nil, f
	}
	if r := v.v.Record; r != nil && p.Original.Run != r.ID {
		return nil, fault.New(fault.PredicateMismatch, "payload.predicate.original.run",
			fmt.Sprintf("expected the run of this archive, %s, found %q", r.ID, shorten(p.Original.Run)))
	}
	if is := oci.DigestsOf(v.v.RecordBytes).Blake3Digest().String(); v.v.Record != nil && p.Original.Record != is {
		return nil, fault.New(fault.PredicateMismatch, "payload.predicate.original.record", fmt.Sprintf("expected %s, found %q", is, shorten(p.Original.Record)))
	}
	for i := range p.Items {
		p.Items[i].Detail = fault.Printable(shorten(p.Items[i].Detail))
	}
	for _, text := range []*string{&p.Replay.Run, &p.Replay.Started, &p.Replay.Finished, &p.Tool.Name, &p.Tool.Version, &p.Tool.Commit, &p.Tool.Platform} {
		*text = fault.Printable(shorten(*text))
	}
	return &p, nil
}

// SignReplay signs that the archive was replayed, and returns the bundle, which is a referrer of it (oci.Attach). The archive must have a
// record and a manifest.
func SignReplay(ctx context.Context, by Signer, v *Verification, p ReplayPredicate) ([]byte, error) {
	rec, header := v.File(TitleRecord), v.File(TitleManifest)
	if rec == nil || header == nil {
		return nil, fmt.Errorf("attest the replay: the archive has no record or no manifest that could be read")
	}
	if f := p.check(); f != nil {
		return nil, fmt.Errorf("attest the replay: %w", f)
	}
	s, err := NewStatement(subjectsOf(v.Archive, rec.Digests, header.Digests), ReplayType, p)
	if err != nil {
		return nil, err
	}
	b, err := signStatement(ctx, by, s)
	if err != nil {
		return nil, fmt.Errorf("attest the replay: %w", err)
	}
	return b, nil
}
