package attest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

func TestArchiveVerifies(t *testing.T) {
	for _, kind := range kinds {
		r, k := newRun(t, nil), newKey(t, kind)
		v := verify(t, newArchive(t, r, k), attest.Policy{RequireThresholds: true}, newKey(t, kind).Public(), k.Public())
		if !v.OK() || v.Err() != nil {
			t.Fatalf("a good archive fails:\n%s", describe(v))
		}
		names := []string{"content", "layout", "record", "manifest", "files", "signatures", "subjects", "predicates", "dataset", "thresholds"}
		var found []string
		for _, c := range v.Checks {
			found = append(found, c.Name)
			if c.Evidence == "" || c.Limits == "" || (c.Class != "C" && c.Class != "H") {
				t.Errorf("check %s does not say what it shows: %+v", c.Name, c)
			}
		}
		if !slices.Equal(found, names) {
			t.Errorf("checks are %v, expected %v", found, names)
		}
		if !slices.Equal(v.Keys, []string{k.Public().Hint()}) {
			t.Errorf("keys are %v", v.Keys)
		}
		if string(v.RecordBytes) != string(r.input.Record) || v.Record.ID != r.record.ID {
			t.Error("another record came out")
		}
		entries := 0
		must(t, v.Manifest.Entries(context.Background(), func(manifest.Entry) error { entries++; return nil }))
		steps := v.File("steps.parquet")
		want, err := os.ReadFile(filepath.Join(r.input.Folder, "steps.parquet"))
		must(t, err)
		got, err := io.ReadAll(io.NewSectionReader(steps, 0, steps.Size))
		must(t, err)
		if entries != 3 || string(got) != string(want) || v.File("nothing") != nil {
			t.Errorf("content is not what was packed: %d entries, %d bytes of step times", entries, len(got))
		}
		v.Add(attest.NewCheck("plan", record.Recomputable, "e", "l", fault.New(fault.Policy, "plan", "differs").In("record.json")))
		if v.OK() || !errors.Is(v.Err(), fault.Policy) {
			t.Error("a check that a caller adds does not count")
		}
	}
}

func TestArchiveIsDeterministic(t *testing.T) {
	r := newRun(t, nil)
	var digests []string
	for _, k := range []*attest.PrivateKey{newKey(t, attest.ECDSAP256), newKey(t, attest.Ed25519)} {
		info, err := attest.WriteArchive(context.Background(), filepath.Join(t.TempDir(), "a", "b"), r.input, k)
		must(t, err)
		digests = append(digests, info.Archive.SHA256Digest().String())
		if want := []string{attest.ResultType, attest.TestResultType, attest.ProvenanceType}; !slices.Equal(info.PredicateTypes, want) {
			t.Errorf("attested %v, expected %v", info.PredicateTypes, want)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("the same input gives two archives: %v", digests)
	}
}

func TestNoKeyIsAnErrorOfUsage(t *testing.T) {
	dir := newArchive(t, newRun(t, nil), newKey(t, attest.Ed25519))
	for _, keys := range [][]attest.PublicKey{nil, {}, {{}}} {
		v, err := attest.VerifyArchive(context.Background(), dir, keys, attest.Policy{})
		if v != nil || !errors.Is(err, attest.ErrNoKey) || errors.Is(err, attest.ErrVerification) {
			t.Errorf("%d keys: %v, %v", len(keys), v, err)
		}
	}
	if _, err := attest.VerifyArchive(context.Background(), filepath.Join(dir, "nowhere"), []attest.PublicKey{newKey(t, attest.Ed25519).Public()}, attest.Policy{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no archive: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := attest.VerifyArchive(ctx, dir, []attest.PublicKey{newKey(t, attest.Ed25519).Public()}, attest.Policy{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestOtherKeyIsRefused(t *testing.T) {
	v := verify(t, newArchive(t, newRun(t, nil), newKey(t, attest.ECDSAP256)), attest.Policy{}, newKey(t, attest.ECDSAP256).Public())
	wantFault(t, v, "signatures", fault.UnknownKey, attest.ResultType)
	wantFault(t, v, "signatures", fault.UnknownKey, attest.TestResultType)
	wantFault(t, v, "predicates", fault.PredicateMissing, attest.ProvenanceType)
	wantFault(t, v, "subjects", fault.Unchecked, "")
}

func TestPolicy(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	unverified := newArchive(t, newRun(t, func(r *record.Record) {
		r.Dataset.Verification = record.Verification{Class: record.HostOnly, Mode: "none"}
	}), k)
	wantFault(t, verify(t, unverified, attest.Policy{}, k.Public()), "dataset", fault.Policy, "record.json")
	if v := verify(t, unverified, attest.Policy{AllowUnverified: true}, k.Public()); !v.OK() {
		t.Errorf("allowed, and refused:\n%s", describe(v))
	}
	slow := newArchive(t, newRun(t, func(r *record.Record) { r.Metrics.AU.Value, r.Metrics.Met = ptr(50.0), ptr(false) }), k)
	if v := verify(t, slow, attest.Policy{}, k.Public()); !v.OK() {
		t.Errorf("a slow result is a result:\n%s", describe(v))
	}
	wantFault(t, verify(t, slow, attest.Policy{RequireThresholds: true}, k.Public()), "thresholds", fault.Policy, "record.json")
}

func TestWriteArchiveRefuses(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	good := newRun(t, nil)
	incomplete := newRun(t, func(r *record.Record) { r.Status, r.Reason = record.StatusIncomplete, "interrupted" })
	otherRoot := newRun(t, func(r *record.Record) { r.Dataset.Root = hexDigest("f") })
	otherFile := newRun(t, nil)
	must(t, os.WriteFile(filepath.Join(otherFile.input.Folder, "steps.parquet"), []byte("x"), 0o666))
	damaged := newRun(t, nil)
	entries := filepath.Join(damaged.input.Folder, "m.entries.jsonl.zst")
	raw, err := os.ReadFile(entries)
	must(t, err)
	raw[len(raw)/2] ^= 1
	must(t, os.WriteFile(entries, raw, 0o666))
	for name, c := range map[string]struct {
		in    attest.ArchiveInput
		class error
	}{
		"incomplete":         {incomplete.input, attest.ErrIncomplete},
		"another data set":   {otherRoot.input, fault.Manifest},
		"a changed file":     {otherFile.input, fault.RecordFile},
		"damaged entries":    {damaged.input, fault.Manifest},
		"no record":          {attest.ArchiveInput{Record: []byte("{}"), Manifest: good.input.Manifest, Folder: good.input.Folder}, record.ErrNotRecord},
		"no manifest":        {attest.ArchiveInput{Record: good.input.Record, Manifest: "nowhere.json", Folder: good.input.Folder}, os.ErrNotExist},
		"no file beside it":  {attest.ArchiveInput{Record: good.input.Record, Manifest: good.input.Manifest, Folder: t.TempDir()}, os.ErrNotExist},
		"colliding file":     {newRun(t, func(r *record.Record) { r.Files[1].Name = "manifest.json" }).input, fault.Title},
		"case-colliding":     {newRun(t, func(r *record.Record) { r.Files[1].Name = "Record.JSON"; slices.Reverse(r.Files) }).input, fault.Title},
		"files left out":     {newRun(t, func(r *record.Record) { r.Dataset.Verification.Files = 1 }).input, fault.Record},
		"self-contradictory": {newRun(t, func(r *record.Record) { r.Metrics.Met = ptr(false) }).input, fault.Record},
	} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "archive")
		_, err := attest.WriteArchive(context.Background(), dir, c.in, k)
		if !errors.Is(err, c.class) {
			t.Errorf("%s: expected %v, found %v", name, c.class, err)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Errorf("%s: %v was left behind", name, left)
		}
	}
	if _, err := attest.WriteArchive(context.Background(), t.TempDir(), good.input, nil); err == nil {
		t.Error("an archive was written without a key")
	}
	taken := t.TempDir()
	must(t, os.WriteFile(filepath.Join(taken, "x"), nil, 0o666))
	if _, err := attest.WriteArchive(context.Background(), taken, good.input, k); !errors.Is(err, oci.ErrExists) {
		t.Errorf("a folder that holds something: %v", err)
	}
	must(t, os.Remove(filepath.Join(taken, "x")))
	if _, err := attest.WriteArchive(context.Background(), taken, good.input, k); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
}
