package attest_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

func ptr[T any](v T) *T { return &v }

func hexDigest(c string) string { return "blake3:" + strings.Repeat(c, 64) }

// step is a row of the test's step times.
type step struct {
	Epoch, Step, Rank int32
	Load, Compute     int64
}

// run is a small finished run: everything that an archive is made of.
type run struct {
	input  attest.ArchiveInput
	record *record.Record
}

// newRun writes a manifest of three files, real step times and the record that fits them into a folder.
func newRun(t testing.TB, change func(*record.Record)) run {
	t.Helper()
	return newRunOver(t, manifest.Meta{
		Layout: &manifest.Layout{Format: "npz", SamplesPerFile: 1, DType: "uint8", Train: 2, Valid: 1},
		Recipe: json.RawMessage(`{"generator":"benchpin/datagen","version":1,"seed":"18446744073709551615"}`),
	}, change)
}

func newRunOver(t testing.TB, meta manifest.Meta, change func(*record.Record)) run {
	t.Helper()
	folder := t.TempDir()
	header, err := manifest.Create(filepath.Join(folder, "m.json"), meta)
	must(t, err)
	for i, name := range []string{"train/img_1_of_2.npz", "train/img_2_of_2.npz", "valid/img_1_of_1.npz"} {
		must(t, header.Add(manifest.Entry{Path: name, Size: 100, Digest: blake3.Sum256([]byte{byte(i)})}))
	}
	h, err := header.Commit()
	must(t, err)
	raw, err := os.ReadFile(filepath.Join(folder, "m.json"))
	must(t, err)
	r := newRecord(h, raw)
	var steps bytes.Buffer
	must(t, parquet.Write(&steps, []step{{1, 1, 0, 1000, 2000}, {1, 1, 1, 1100, 2000}}))
	for name, content := range map[string][]byte{"steps.parquet": steps.Bytes(), "dlio/summary.json": []byte(`{"metric":{}}`)} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o777))
		must(t, os.WriteFile(filepath.Join(folder, name), content, 0o666))
		r.Files = append(r.Files, record.File{Name: name, Size: record.Int(len(content)), Blake3: record.Digest(content)})
	}
	if r.Files[0].Name > r.Files[1].Name {
		r.Files[0], r.Files[1] = r.Files[1], r.Files[0]
	}
	if change != nil {
		change(r)
	}
	text, err := r.Canonical()
	must(t, err)
	return run{attest.ArchiveInput{Record: text, Manifest: filepath.Join(folder, "m.json"), Folder: folder}, r}
}

func newRecord(h manifest.Header, header []byte) *record.Record {
	canonical := []byte(`{"train":{"epochs":1}}`)
	figure := func(v float64, unit string, c record.Class) record.Figure {
		return record.Figure{Value: &v, Unit: unit, Class: c}
	}
	const H, C = record.HostOnly, record.Recomputable
	return &record.Record{
		Schema: record.SchemaName, ID: "20261130T141500Z-3f9c2a", Status: record.StatusComplete,
		Started: "2026-11-30T14:15:00.000000001Z", Finished: "2026-11-30T14:15:07.5Z",
		Tool: record.Tool{Name: "benchpin", Version: "v0.1.0", Commit: strings.Repeat("0", 40), Go: "go1.26.8", Platform: "linux/amd64",
			Binary: hexDigest("1"), Modules: []record.Module{
				{Path: "github.com/blang/semver", Version: "v3.5.1+incompatible", Sum: "h1:cQNTCjp13qL8KC3Nbxr/y2Bqb63oX6wdnnjpJbkM4JQ="},
				{Path: "github.com/zeebo/blake3", Version: "v0.2.4", Sum: "h1:KYQPkhpRtcqh0ssGYcKLG1JYvddkEA8QwCM/yBqhaZI="}}},
		Workload: record.Workload{Name: "tiny", Digest: record.Digest(canonical), Source: hexDigest("2"), Overrides: []string{}, Canonical: canonical},
		Dataset: record.Dataset{Class: C, Root: h.Root.String(), Manifest: record.Digest(header), Files: record.Int(h.Count),
			Bytes: record.Int(h.Bytes), Generated: true, Seed: "18446744073709551615",
			Verification: record.Verification{Class: H, Mode: "before", Files: 3, Bytes: 300, Seconds: 0.5, IdentityRechecked: 2}},
		Plan: record.Plan{Class: C, Accelerators: 2, Epochs: 1, Files: 2, SamplesPerFile: 1, Samples: 2, BatchSize: 1, StepsPerEpoch: 1,
			SamplesPerEpoch: 2, BytesPerEpoch: 200, BytesTotal: 200, ComputeSeconds: 0.001, ExpectedSeconds: 0.001, AUThreshold: 90,
			ReadThreads: 1, PrefetchFactor: 2, Order: "numpy", OrderSeed: 1},
		Transcript:  record.Transcript{Class: C, Root: hexDigest("5"), Ranks: []string{hexDigest("6"), hexDigest("7")}, Entries: 2, Expected: hexDigest("5")},
		Checkpoints: record.Checkpoints{Class: H},
		Environment: environment(),
		Metrics: record.Metrics{AU: figure(97.5, "%", H), Threshold: figure(90, "%", C), Met: ptr(true),
			SamplesPerSecond: figure(42.25, "samples/s", H), BytesPerSecond: figure(9007199254740993, "B/s", H),
			Epochs: []record.EpochMetrics{{Epoch: 1, Steps: 1, Seconds: figure(0.7, "s", H), AU: figure(97, "%", H),
				SamplesPerSecond: figure(40, "samples/s", H), BytesPerSecond: figure(6e3, "B/s", H),
				BytesAsked: figure(200, "B", H), BytesDevice: record.Figure{Unit: "B", Class: H, Absent: "no /proc/self/io"}}}},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB, kind attest.KeyKind) *attest.PrivateKey {
	t.Helper()
	k, err := attest.GenerateKey(kind)
	must(t, err)
	return k
}

// seededKey is an Ed25519 key that is the same in every run.
func seededKey(t testing.TB, seed string) *attest.PrivateKey {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	k, err := attest.ParsePrivate(pkcs8PEM(t, ed25519.NewKeyFromSeed(sum[:])), nil)
	must(t, err)
	return k
}

// newArchive writes an archive of a run and returns its folder.
func newArchive(t testing.TB, r run, k *attest.PrivateKey) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	if _, err := attest.WriteArchive(context.Background(), dir, r.input, k); err != nil {
		t.Fatal(err)
	}
	return dir
}

func verify(t testing.TB, dir string, p attest.Policy, keys ...attest.PublicKey) *attest.Verification {
	t.Helper()
	v, err := attest.VerifyArchive(context.Background(), dir, keys, p)
	must(t, err)
	t.Cleanup(func() { must(t, v.Close()) })
	return v
}

// wantFault requires a fault of a class in a check, and that check to have failed.
func wantFault(t testing.TB, v *attest.Verification, check string, class fault.Class, part string) {
	t.Helper()
	for _, c := range v.Checks {
		for _, f := range c.Faults {
			if c.Name == check && f.Class == class && strings.Contains(f.Part, part) {
				if c.OK || v.OK() || !errors.Is(v.Err(), class) || !errors.Is(v.Err(), attest.ErrVerification) {
					t.Errorf("check %s has fault %v and passes all the same", c.Name, f)
				}
				return
			}
		}
	}
	t.Errorf("expected fault %s in check %s, part %q; found:\n%v", class, check, part, describe(v))
}

func describe(v *attest.Verification) string {
	var b strings.Builder
	for _, c := range v.Checks {
		fmt.Fprintf(&b, "%-11s ok=%-5v %s\n", c.Name, c.OK, c.Problem)
	}
	return b.String()
}

// missingPeer skips, or fails where the peer must be there, and says why.
func missingPeer(t testing.TB, optional bool, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" && !optional {
		t.Fatal(why)
	}
	t.Skip(why)
}

// environment is one in which nothing is known, with the reason for all of it.
func environment() record.Environment {
	e := record.Environment{Class: record.HostOnly, Container: record.Container{Kind: "none"}}
	for _, part := range []string{"cpu", "host", "load", "memory", "results_apart"} {
		e.Unknown = append(e.Unknown, record.Unknown{Field: part, Reason: "a test has none"})
	}
	return e
}
