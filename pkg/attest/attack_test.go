package attest_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// forgery is an archive in pieces, to be put together again with one of them changed. Every digest in it comes out right: what is
// wrong is what it says.
type forgery struct {
	layers  []oci.Source
	bundles []forgedBundle
	// sign makes the attestations again, by the same key, over the changed layers.
	sign bool
	// statement may change what is signed.
	statement func(*attest.Statement)
}

type forgedBundle struct {
	announced string
	raw       []byte
}

func takeApart(t testing.TB, dir string) forgery {
	t.Helper()
	l, err := oci.Read(context.Background(), dir)
	must(t, err)
	defer l.Close()
	var f forgery
	for _, layer := range l.Layers {
		raw, err := io.ReadAll(io.NewSectionReader(layer.Blob, 0, layer.Blob.Size))
		must(t, err)
		f.layers = append(f.layers, oci.FromBytes(layer.Title, layer.MediaType, raw))
	}
	for _, b := range l.Bundles {
		raw, err := b.Blob.Bytes(1 << 20)
		must(t, err)
		f.bundles = append(f.bundles, forgedBundle{b.PredicateType, raw})
	}
	return f
}

func (f *forgery) content(t testing.TB, title string) []byte {
	t.Helper()
	for _, l := range f.layers {
		if l.Title == title {
			r, err := l.Open()
			must(t, err)
			raw, err := io.ReadAll(r)
			must(t, err)
			return raw
		}
	}
	t.Fatalf("no layer %s", title)
	return nil
}

func (f *forgery) set(title string, content []byte) {
	for i, l := range f.layers {
		if l.Title == title {
			f.layers[i] = oci.FromBytes(title, l.MediaType, content)
		}
	}
}

func (f *forgery) putTogether(t testing.TB, k *attest.PrivateKey) string {
	t.Helper()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "archive")
	w, err := oci.Create(dir)
	must(t, err)
	subjects := map[string]oci.Digests{}
	for _, l := range f.layers {
		subjects[l.Title], err = w.Add(ctx, l)
		must(t, err)
	}
	subjects[attest.SubjectArchive], err = w.Seal(ctx)
	must(t, err)
	for _, b := range f.bundles {
		raw := b.raw
		if f.sign {
			old, err := attest.VerifyBundle(raw, []attest.PublicKey{k.Public()})
			must(t, err)
			s := old.Statement
			for i := range s.Subject {
				s.Subject[i] = attest.NewSubject(s.Subject[i].Name, subjects[s.Subject[i].Name])
			}
			if f.statement != nil {
				f.statement(s)
			}
			raw, err = attest.SignStatement(k, s)
			must(t, err)
		}
		must(t, w.Attach(ctx, b.announced, raw))
	}
	must(t, w.Commit())
	return dir
}

// An archive that was put together anew, by someone without the key or by the holder of the key, must say only what is so.
func TestForgedArchives(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	dir := newArchive(t, newRun(t, nil), k)
	other := newArchive(t, newRun(t, nil), k)
	again := takeApart(t, dir)
	if v := verify(t, again.putTogether(t, k), attest.Policy{}, k.Public()); !v.OK() {
		t.Fatalf("put together unchanged, it fails:\n%s", describe(v))
	}
	record := func(old, new string) func(t *testing.T, f *forgery) {
		return func(t *testing.T, f *forgery) {
			raw := f.content(t, attest.TitleRecord)
			if bytes.Count(raw, []byte(old)) == 0 {
				t.Fatalf("no %q in the record", old)
			}
			f.set(attest.TitleRecord, bytes.Replace(raw, []byte(old), []byte(new), 1))
		}
	}
	resign := func(change func(t *testing.T, f *forgery)) func(t *testing.T, f *forgery) {
		return func(t *testing.T, f *forgery) { f.sign = true; change(t, f) }
	}
	predicate := func(kind, old, new string) func(t *testing.T, f *forgery) {
		return func(t *testing.T, f *forgery) {
			f.sign = true
			f.statement = func(s *attest.Statement) {
				if s.PredicateType == kind {
					changed := strings.Replace(string(s.Predicate), old, new, 1)
					if changed == string(s.Predicate) {
						t.Fatalf("no %q in %s", old, s.Predicate)
					}
					s.Predicate = []byte(changed)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, f *forgery)
		check  string
		class  fault.Class
		part   string
	}{
		"figure in the record": {record(`"value": 97.5`, `"value": 98.5`), "subjects", fault.SubjectDigest, "bundle"},
		"step times":           {func(t *testing.T, f *forgery) { f.set("steps.parquet", []byte("PAR1")) }, "files", fault.RecordFile, "steps.parquet"},
		"step times, subject":  {func(t *testing.T, f *forgery) { f.set("steps.parquet", []byte("PAR1")) }, "subjects", fault.SubjectDigest, "bundle"},
		"a layer more": {func(t *testing.T, f *forgery) {
			f.layers = append(f.layers, oci.FromBytes("z.txt", "text/plain", []byte("z")))
		}, "files", fault.FileUnexpected, "z.txt"},
		"a layer less":       {func(t *testing.T, f *forgery) { f.layers = f.layers[:len(f.layers)-1] }, "files", fault.RecordFile, "steps.parquet"},
		"no record":          {func(t *testing.T, f *forgery) { f.layers = f.layers[1:] }, "record", fault.FileMissing, "record.json"},
		"no entries":         {func(t *testing.T, f *forgery) { f.layers = append(f.layers[:2:2], f.layers[3:]...) }, "manifest", fault.FileMissing, "manifest.entries"},
		"layers in disorder": {func(t *testing.T, f *forgery) { f.layers[0], f.layers[1] = f.layers[1], f.layers[0] }, "record", fault.FileMissing, "record.json"},
		"media type":         {func(t *testing.T, f *forgery) { f.layers[0].MediaType = "text/plain" }, "record", fault.MediaType, "record.json"},
		"media type of file": {func(t *testing.T, f *forgery) { f.layers[4].MediaType = "text/plain" }, "files", fault.MediaType, "steps.parquet"},
		"no bundles":         {func(t *testing.T, f *forgery) { f.bundles = nil }, "signatures", fault.PredicateMissing, "bundles"},
		"a bundle less": {func(t *testing.T, f *forgery) {
			f.bundles = slicesDelete(f.bundles, attest.TestResultType)
		}, "predicates", fault.PredicateMissing, attest.TestResultType},
		"a lying announcement": {func(t *testing.T, f *forgery) { f.bundles[0].announced = "https://example.com/x" }, "predicates", fault.PredicateType, "https://example.com/x"},
		"terminal codes":       {func(t *testing.T, f *forgery) { f.bundles[0].announced = "\x1b[2J" }, "predicates", fault.PredicateType, ""},
		"bundles of another archive": {func(t *testing.T, f *forgery) {
			f.bundles = takeApart(t, other).bundles
			record(`"value": 97.5`, `"value": 98.5`)(t, f)
		}, "subjects", fault.SubjectDigest, "bundle"},
		"not a bundle": {func(t *testing.T, f *forgery) { f.bundles[0].raw = []byte("{}") }, "signatures", fault.BundleVersion, "bundle"},

		// The holder of the key lies.
		"signed other figure":    {predicate(attest.ResultType, `"value":97.5`, `"value":98.5`), "predicates", fault.PredicateMismatch, attest.ResultType},
		"signed large integer":   {predicate(attest.ResultType, `"bytes":"300"`, `"bytes":"9007199254740993"`), "predicates", fault.PredicateMismatch, attest.ResultType},
		"signed number off by 1": {predicate(attest.ResultType, `9007199254740992`, `9007199254740993`), "predicates", fault.PredicateMismatch, attest.ResultType},
		"signed pass":            {predicate(attest.TestResultType, `PASSED`, `FAILED`), "predicates", fault.PredicateMismatch, attest.TestResultType},
		"signed other seed":      {predicate(attest.ProvenanceType, `18446744073709551615`, `1`), "predicates", fault.PredicateMismatch, attest.ProvenanceType},
		"signed other module":    {predicate(attest.ProvenanceType, `"dirHash":"`, `"dirHash":"00`), "predicates", fault.PredicateMismatch, attest.ProvenanceType},
		"signed a field more":    {predicate(attest.ResultType, `"run":`, `"x":1,"run":`), "predicates", fault.PredicateMismatch, attest.ResultType},
		"signed other type": {func(t *testing.T, f *forgery) {
			f.sign, f.statement = true, func(s *attest.Statement) { s.PredicateType += "x" }
		}, "predicates", fault.PredicateType, "bundle"},
		"signed contradiction":    {resign(record(`"au_met": true`, `"au_met": false`)), "record", fault.Record, "record.json"},
		"signed other workload":   {resign(record(`"epochs":1`, `"epochs":2`)), "record", fault.Workload, "record.json"},
		"signed other root":       {resign(record(`"root": "blake3:`, `"root": "blake3:0`)), "record", fault.Record, "record.json"},
		"signed incomplete":       {resign(record(`"status": "complete"`, "\"status\": \"incomplete\",\n  \"reason\": \"killed\"")), "record", fault.Incomplete, "record.json"},
		"signed other form":       {resign(record(`  "id"`, `   "id"`)), "record", fault.Record, "record.json"},
		"signed other seed again": {resign(record(`"seed": "18446744073709551615"`, `"seed": "1"`)), "manifest", fault.Manifest, "manifest.json"},
		"signed other counts":     {resign(record(`"files": "3"`, `"files": "4"`)), "manifest", fault.Manifest, "manifest.json"},
		"signed other entries": {resign(func(t *testing.T, f *forgery) {
			f.set(attest.TitleEntries, append(f.content(t, attest.TitleEntries), 0))
		}), "manifest", fault.Manifest, "manifest.entries"},
		"signed other header": {resign(func(t *testing.T, f *forgery) {
			f.set(attest.TitleManifest, bytes.Replace(f.content(t, attest.TitleManifest), []byte(`"train":2`), []byte(`"train":1`), 1))
		}), "manifest", fault.Manifest, "manifest.json"},
	} {
		t.Run(name, func(t *testing.T) {
			f := takeApart(t, dir)
			c.change(t, &f)
			v := verify(t, f.putTogether(t, k), attest.Policy{}, k.Public())
			wantFault(t, v, c.check, c.class, c.part)
			if strings.Contains(describe(v), "\x1b") {
				t.Error("what the archive says reaches the terminal as it is")
			}
		})
	}
}

func slicesDelete(all []forgedBundle, kind string) []forgedBundle {
	var kept []forgedBundle
	for _, b := range all {
		if b.announced != kind {
			kept = append(kept, b)
		}
	}
	return kept
}
