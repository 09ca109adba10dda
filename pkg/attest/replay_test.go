package attest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/schemas"
)

func replayOf(v *attest.Verification) attest.ReplayPredicate {
	digest := "blake3:" + strings.Repeat("ab", 32)
	return attest.ReplayPredicate{
		Original: attest.ReplayedRun{Run: v.Record.ID, Record: oci.DigestsOf(v.RecordBytes).Blake3Digest().String()},
		Replay: attest.ReplayRun{Run: "20261201T101500Z-0a1b2c", Started: "2026-12-01T10:15:00Z", Finished: "2026-12-01T10:16:00Z", Record: digest,
			Archive: "sha256:" + strings.Repeat("cd", 32)},
		Tool:      attest.NewReplayTool(v.Record.Tool),
		Tolerance: 0.05, Level: attest.LevelSchedule,
		Items: []attest.ReplayItem{{Name: "schedule", Outcome: attest.ReplaySame, Detail: "same\x1b[31m"}},
	}
}

// A replay is attached by whoever made it. It is listed with what it says, never counts, and spoils nothing, whatever it says.
func TestReplay(t *testing.T) {
	author, auditor := newKey(t, attest.Ed25519), newKey(t, attest.Ed25519)
	ctx := context.Background()
	for name, c := range map[string]struct {
		change func(*attest.ReplayPredicate)
		status attest.AttestationStatus
		detail string
	}{
		"good":           {func(*attest.ReplayPredicate) {}, attest.Other, "not judged here"},
		"another run":    {func(p *attest.ReplayPredicate) { p.Original.Run = "20260101T000000Z-ffffff" }, attest.NotCounted, "expected the run of this archive"},
		"another record": {func(p *attest.ReplayPredicate) { p.Original.Record = "blake3:" + strings.Repeat("01", 32) }, attest.NotCounted, "expected blake3:"},
		"unknown field":  {nil, attest.NotCounted, "not part of the format"},
		"unknown level":  {func(p *attest.ReplayPredicate) { p.Level = "perfect" }, attest.NotCounted, "one of the levels"},
		"its own replay": {func(p *attest.ReplayPredicate) { p.Replay.Run = p.Original.Run }, attest.NotCounted, "another run"},
		"another item":   {func(p *attest.ReplayPredicate) { p.Items[0].Name = "mood" }, attest.NotCounted, "an item of a replay"},
		"no outcome":     {func(p *attest.ReplayPredicate) { p.Items[0].Outcome = "fine" }, attest.NotCounted, "the outcome of an item"},
		"no archive":     {func(p *attest.ReplayPredicate) { p.Replay.Archive = "" }, attest.NotCounted, "sha256:"},
		"no tolerance":   {func(p *attest.ReplayPredicate) { p.Tolerance = 0 }, attest.NotCounted, "above 0"},
		"no program":     {func(p *attest.ReplayPredicate) { p.Tool.Version = "" }, attest.NotCounted, "name, version"},
		"no digest":      {func(p *attest.ReplayPredicate) { p.Replay.Record = "x" }, attest.NotCounted, "blake3:"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newArchive(t, newRun(t, nil), author)
			v := verify(t, dir, attest.Policy{}, author.Public())
			p := replayOf(v)
			if _, err := attest.SignReplay(t.Context(), auditor, v, p); err != nil {
				t.Fatal(err)
			}
			var predicate any = p
			if c.change != nil {
				c.change(&p)
				predicate = p
				if _, err := attest.SignReplay(t.Context(), auditor, v, p); (err != nil) != (name != "good" && name != "another run" && name != "another record") {
					t.Errorf("signing it: %v", err)
				}
			} else {
				var m map[string]any
				b, err := json.Marshal(p)
				must(t, err)
				must(t, json.Unmarshal(b, &m))
				m["extra"] = 1
				predicate = m
			}
			good, err := attest.NewStatement([]attest.Subject{attest.NewSubject(attest.SubjectArchive, v.Archive),
				attest.NewSubject(attest.SubjectRecord, v.File(attest.TitleRecord).Digests),
				attest.NewSubject(attest.SubjectManifest, v.File(attest.TitleManifest).Digests)}, attest.ReplayType, predicate)
			must(t, err)
			b, err := attest.SignStatement(auditor, good)
			must(t, err)
			must(t, oci.Attach(ctx, dir, attest.ReplayType, b))

			v = verify(t, dir, attest.Policy{}, author.Public(), auditor.Public())
			if !v.OK() {
				t.Fatalf("the archive fails: %v", v.Err())
			}
			found := 0
			for _, one := range v.Attestations {
				if one.PredicateType != attest.ReplayType {
					continue
				}
				found++
				if one.Status != c.status || !strings.Contains(one.Detail, c.detail) || (one.Replay != nil) != (c.status == attest.Other) {
					t.Errorf("expected %s with %q, found %+v", c.status, c.detail, one)
				}
				if one.Replay != nil && (one.Replay.Level != attest.LevelSchedule || strings.Contains(one.Replay.Items[0].Detail, "\x1b")) {
					t.Errorf("found %+v", one.Replay)
				}
			}
			if found != 1 {
				t.Errorf("expected one replay, found %d", found)
			}
			if v = verify(t, dir, attest.Policy{}, author.Public()); !v.OK() {
				t.Errorf("a replay by a key that nobody gave fails the archive: %v", v.Err())
			}
		})
	}
}

func TestReplaySchema(t *testing.T) {
	raw, err := schemas.FS.ReadFile(attest.ReplaySchemaFile)
	must(t, err)
	schema, err := jsonschema.CompileString(attest.ReplaySchemaFile, string(raw))
	must(t, err)
	author := newKey(t, attest.Ed25519)
	v := verify(t, newArchive(t, newRun(t, nil), author), attest.Policy{}, author.Public())
	for _, level := range attest.ReplayLevels() {
		p := replayOf(v)
		p.Level = level
		b, err := json.Marshal(p)
		must(t, err)
		var doc any
		must(t, json.Unmarshal(b, &doc))
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", level, err)
		}
	}
}
