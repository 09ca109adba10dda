package attest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// alteration is a good archive of which something will be changed.
type alteration struct {
	t    testing.TB
	key  *attest.PrivateKey
	good map[string][]byte
}

// differ is the vector of the files that are not as they were.
func (a *alteration) differ(content map[string][]byte) archiveVector {
	v := archiveVector{Files: map[string][]byte{}}
	for name, b := range content {
		if old, ok := a.good[name]; !ok || !bytes.Equal(old, b) {
			v.Files[name] = b
		}
	}
	for name := range a.good {
		if _, ok := content[name]; !ok {
			v.Files[name] = nil
		}
	}
	return v
}

// files changes files, whatever their digests.
func (a *alteration) files(change func(content map[string][]byte)) archiveVector {
	content := map[string][]byte{}
	for name, b := range a.good {
		content[name] = bytes.Clone(b)
	}
	change(content)
	return a.differ(content)
}

// forged puts the archive together again with something changed and every digest right; signed also makes the attestations again.
func (a *alteration) forged(change func(f *forgery)) archiveVector {
	f := takeApart(a.t, layOut(a.t, a.good))
	change(&f)
	return a.differ(contentOf(a.t, f.putTogether(a.t, a.key)))
}

func (a *alteration) signed(change func(f *forgery)) archiveVector {
	return a.forged(func(f *forgery) { f.sign = true; change(f) })
}

// in replaces text in a layer.
func (a *alteration) in(title, old, new string) func(f *forgery) {
	return func(f *forgery) {
		raw := f.content(a.t, title)
		if !bytes.Contains(raw, []byte(old)) {
			a.t.Fatalf("no %q in %s", old, title)
		}
		f.set(title, bytes.Replace(raw, []byte(old), []byte(new), 1))
	}
}

// says replaces text in a predicate and signs it.
func (a *alteration) says(kind, old, new string) archiveVector {
	return a.signed(func(f *forgery) {
		f.statement = func(s *attest.Statement) {
			if s.PredicateType != kind {
				return
			}
			if !bytes.Contains(s.Predicate, []byte(old)) {
				a.t.Fatalf("no %q in %s", old, s.Predicate)
			}
			s.Predicate = bytes.Replace(s.Predicate, []byte(old), []byte(new), 1)
		}
	})
}

// layout is the digest of the archive's manifest and those of its referrers, as index.json lists them.
func (a *alteration) layout() (archive string, referrers []string) {
	var x struct {
		Manifests []struct{ Digest string }
	}
	must(a.t, json.Unmarshal(a.good["index.json"], &x))
	for _, m := range x.Manifests {
		referrers = append(referrers, strings.TrimPrefix(m.Digest, "sha256:"))
	}
	return referrers[0], referrers[1:]
}

// manifest changes the text of a manifest; the index names it by its new digest and size.
func (a *alteration) manifest(hex, old, new string) archiveVector {
	return a.files(func(content map[string][]byte) {
		name := "blobs/sha256/" + hex
		raw := content[name]
		if !bytes.Contains(raw, []byte(old)) {
			a.t.Fatalf("no %q in %s", old, raw)
		}
		changed := bytes.Replace(raw, []byte(old), []byte(new), 1)
		g := oci.DigestsOf(changed)
		delete(content, name)
		content["blobs/sha256/"+g.Hex()] = changed
		content["index.json"] = bytes.Replace(content["index.json"], fmt.Appendf(nil, `"digest":"sha256:%s","size":%d`, hex, len(raw)),
			fmt.Appendf(nil, `"digest":"sha256:%s","size":%d`, g.Hex(), len(changed)), 1)
	})
}

func (a *alteration) index(old, new string) archiveVector {
	return a.files(func(content map[string][]byte) {
		if !bytes.Contains(content["index.json"], []byte(old)) {
			a.t.Fatalf("no %q in %s", old, content["index.json"])
		}
		content["index.json"] = bytes.Replace(content["index.json"], []byte(old), []byte(new), 1)
	})
}

// archiveVectors makes all of them from the good archive; it makes the same every time.
func archiveVectors(t testing.TB) map[string]archiveVector {
	t.Helper()
	a := &alteration{t: t, key: seededKey(t, archiveVectorsSeed), good: readArchiveVector(t, goodArchive).Files}
	all := map[string]archiveVector{}
	add := func(name, why, check string, class fault.Class, v archiveVector) {
		v.Why, v.Check, v.Class = why, check, class
		if _, ok := all[name]; ok {
			t.Fatalf("two vectors %s", name)
		}
		all[name] = v
	}
	a.addContents(add)
	a.addPolicies(add)
	a.addLayouts(add)
	return all
}

type addVector func(name, why, check string, class fault.Class, v archiveVector)

// addContents alters what the archive and its attestations say.
func (a *alteration) addContents(add addVector) {
	set := func(title, content string) func(f *forgery) {
		return func(f *forgery) { f.set(title, []byte(content)) }
	}
	const layer = "steps.parquet"
	other := seededKey(a.t, "another key").Public()
	add("key-other", "a good archive, and another key given", "signatures", fault.UnknownKey, archiveVector{Key: string(other.PEM()), Files: map[string][]byte{}})
	add("layer-replaced", "the step times replaced, every digest of the layout right, the attestations the old ones", "subjects", fault.SubjectDigest, a.forged(set(layer, "PAR1")))
	add("layer-replaced-record", "the step times replaced: not those that the record names", "files", fault.RecordFile, a.forged(set(layer, "PAR1")))
	add("layer-replaced-signed", "the step times replaced and everything signed again", "files", fault.RecordFile, a.signed(set(layer, "PAR1")))
	add("layer-more", "a layer that the record does not name", "files", fault.FileUnexpected, a.signed(func(f *forgery) {
		f.layers = append(f.layers, oci.FromBytes("z.txt", "text/plain", []byte("z")))
	}))
	add("layer-less", "the last layer left out", "files", fault.RecordFile, a.signed(func(f *forgery) { f.layers = f.layers[:len(f.layers)-1] }))
	add("layer-media-type", "the record under another media type", "record", fault.MediaType, a.signed(func(f *forgery) { f.layers[0].MediaType = "text/plain" }))
	add("figure-in-record", "one figure of the record altered", "subjects", fault.SubjectDigest, a.forged(a.in(attest.TitleRecord, `"value": 97.5`, `"value": 98.5`)))
	add("figure-signed", "one figure of the record altered and signed again, the predicate the old one", "predicates", fault.PredicateMismatch, a.signed(a.in(attest.TitleRecord, `"value": 97.5`, `"value": 98.5`)))
	add("record-not-canonical", "one space more in the record, signed again", "record", fault.Record, a.signed(a.in(attest.TitleRecord, `  "id"`, `   "id"`)))
	add("record-contradiction", "the threshold not met, with the same figures, signed again", "record", fault.Record, a.signed(a.in(attest.TitleRecord, `"au_met": true`, `"au_met": false`)))
	add("record-incomplete", "a run that was broken off, signed again", "record", fault.Incomplete, a.signed(a.in(attest.TitleRecord, `"status": "complete"`, "\"status\": \"incomplete\",\n  \"reason\": \"killed\"")))
	add("workload-other", "another workload under the same digest, signed again", "record", fault.Workload, a.signed(a.in(attest.TitleRecord, `"epochs":1`, `"epochs":2`)))
	add("manifest-other-counts", "the record counts a file more than the manifest", "manifest", fault.Manifest, a.signed(a.in(attest.TitleRecord, `"files": "3"`, `"files": "4"`)))
	add("manifest-other-seed", "the record names another seed than the manifest", "manifest", fault.Manifest, a.signed(a.in(attest.TitleRecord, `"seed": "18446744073709551615"`, `"seed": "1"`)))
	add("manifest-header", "the manifest's header altered, signed again", "manifest", fault.Manifest, a.signed(a.in(attest.TitleManifest, `"train":2`, `"train":1`)))
	add("manifest-entries", "a byte after the manifest's entries, signed again", "manifest", fault.Manifest, a.signed(func(f *forgery) {
		f.set(attest.TitleEntries, append(f.content(a.t, attest.TitleEntries), 0))
	}))
	add("predicate-figure", "the predicate says another figure than the record", "predicates", fault.PredicateMismatch, a.says(attest.ResultType, `"value":97.5`, `"value":98.5`))
	add("predicate-integer", "an integer above 2^53, off by one", "predicates", fault.PredicateMismatch, a.says(attest.ResultType, `9007199254740992`, `9007199254740993`))
	add("predicate-binary", "the predicate says another binary than the record", "predicates", fault.PredicateMismatch, a.says(attest.ResultType, strings.Repeat("1", 64), strings.Repeat("2", 64)))
	add("predicate-field-more", "a field more in the predicate", "predicates", fault.PredicateMismatch, a.says(attest.ResultType, `"run":`, `"x":1,"run":`))
	add("predicate-passed", "the test result says another verdict", "predicates", fault.PredicateMismatch, a.says(attest.TestResultType, `PASSED`, `FAILED`))
	add("predicate-seed", "the provenance says another seed", "predicates", fault.PredicateMismatch, a.says(attest.ProvenanceType, `18446744073709551615`, `1`))
	add("predicate-swapped", "the result is signed under the type of the test result", "predicates", fault.PredicateMissing, a.signed(func(f *forgery) {
		f.statement = func(s *attest.Statement) {
			if s.PredicateType == attest.ResultType {
				s.PredicateType = attest.TestResultType
			}
		}
	}))
	add("predicate-unknown", "signed under types that nobody knows", "predicates", fault.PredicateType, a.signed(func(f *forgery) {
		f.statement = func(s *attest.Statement) { s.PredicateType += "x" }
	}))
	add("predicate-announced", "the referrer announces another type than the statement has", "predicates", fault.PredicateType, a.forged(func(f *forgery) { f.bundles[0].announced = "https://example.com/x" }))
	add("bundles-none", "no attestation at all: a list of referrers that was stripped", "signatures", fault.PredicateMissing, a.forged(func(f *forgery) { f.bundles = nil }))
	add("bundles-less", "the attestation of the result left out", "predicates", fault.PredicateMissing, a.forged(func(f *forgery) { f.bundles = slicesDelete(f.bundles, attest.ResultType) }))
	add("bundle-of-other-archive", "the attestations replayed under a record of another run", "subjects", fault.SubjectDigest, a.forged(a.in(attest.TitleRecord, `20261130T141500Z-3f9c2a`, `20261130T141500Z-3f9c2b`)))
	add("bundle-none", "a referrer that holds no bundle", "signatures", fault.BundleVersion, a.forged(func(f *forgery) { f.bundles[0].raw = []byte("{}") }))
	add("bundle-other-subject", "the subjects of the statement name other digests, signed again", "subjects", fault.SubjectDigest, a.signed(func(f *forgery) {
		f.statement = func(s *attest.Statement) { s.Subject[1] = attest.NewSubject(s.Subject[1].Name, oci.DigestsOf(nil)) }
	}))
}

// addPolicies has archives of which everything is true, and that are not enough.
func (a *alteration) addPolicies(add addVector) {
	const head = "policy: benchpin.policy/v1\n"
	demand := func(name, why, text string) {
		check := "policy"
		if name == "policy-trusted-time" {
			check = "signing-time"
		}
		add(name, why, check, fault.Policy, archiveVector{Policy: head + text, Files: map[string][]byte{}})
	}
	demand("policy-signers", "two signers demanded, one there", "signers: 2\n")
	demand("policy-predicate", "a predicate demanded that nobody attested", "predicates: [https://example.com/x]\n")
	demand("policy-data-root", "another data set demanded", "data:\n  roots: [blake3:"+strings.Repeat("0", 64)+"]\n")
	demand("policy-figure", "a higher figure demanded", "figures:\n  au:\n    minimum: 99\n")
	demand("policy-preregistered", "a pre-registration demanded, none there", "preregistered: true\n")
	demand("policy-trusted-time", "a trusted time demanded, none there", "trusted_time: true\n")
	compared := func(mode, files, text string) archiveVector {
		v := a.signed(a.in(attest.TitleRecord, "\"mode\": \"before\",\n      \"files\": \"3\"", "\"mode\": \""+mode+"\",\n      \"files\": \""+files+"\""))
		v.Policy = text
		return v
	}
	all := head + "data:\n  verification: all\n"
	add("verification-none", "the record says that the data were not compared, signed again", "dataset", fault.Policy, compared("none", "0", ""))
	add("verification-fewer", "fewer files compared than the run reads, signed again", "dataset", fault.Policy, compared("before", "1", ""))
	add("verification-none-policy", "the data not compared, and all of them demanded", "policy", fault.Policy, compared("none", "0", all))
	add("verification-fewer-policy", "fewer files compared than the run reads, and all of them demanded", "policy", fault.Policy, compared("after", "1", all))
}

// addLayouts alters the layout: what a registry or a carrier could do without any key.
func (a *alteration) addLayouts(add addVector) {
	archive, referrers := a.layout()
	layers := func(old, new string) archiveVector { return a.manifest(archive, old, new) }
	title := func(name, why, text string) {
		quoted, err := json.Marshal(text)
		must(a.t, err)
		add("title-"+name, why, "layout", fault.Title, layers(`"record.json"`, string(quoted)))
	}
	title("parent", "a title that leads out of the folder", "../x")
	title("inner-parent", "a title that leads out of the folder on the way", "a/../../x")
	title("absolute", "an absolute title", "/etc/x")
	title("backslash", "a title with a backslash", `..\x`)
	title("nul", "a title with a NUL", "a\x00b")
	title("empty", "an empty title", "")
	title("twice", "one title twice", "steps.parquet")
	title("case", "titles that differ in case", "Steps.parquet")
	title("file-and-folder", "a file where another title has a folder", "dlio")
	title("too-long", "a title one byte too long", strings.Repeat("t", 256))

	add("layout-space", "white space after the index", "layout", fault.NotCanonical, a.index(`"schemaVersion":2`, `"schemaVersion": 2`))
	add("layout-key-twice", "one key of the index twice", "layout", fault.DuplicateKey, a.index(`"schemaVersion":2`, `"schemaVersion":2,"schemaVersion":2`))
	add("layout-key-case", "a key of the index in other case", "layout", fault.KeyCase, a.index(`"schemaVersion"`, `"SchemaVersion"`))
	add("layout-url", "a layer that is to be fetched elsewhere", "layout", fault.UnknownField, layers(`"size":`, `"urls":["https://example.com/x"],"size":`))
	add("layout-sha512", "a digest of another algorithm", "content", fault.DigestMismatch, a.index("sha256:"+archive, "sha512:"+archive+archive))
	add("layout-upper-case", "a digest in upper-case hex", "content", fault.DigestMismatch, a.index("sha256:"+archive, "sha256:"+strings.ToUpper(archive)))
	add("layout-null", "null for the list of manifests", "layout", fault.WrongType, a.index(`"manifests":[`, `"manifests":null,"x":[`))
	add("layout-annotation", "an annotation in the index that is not the manifest's", "layout", fault.NotCanonical, a.index(attest.ResultType+`"`, `https://example.com/x"`))
	add("layer-size", "a layer declared one byte larger", "layout", fault.SizeMismatch, layers(`"size":221`, `"size":222`))
	add("manifest-artifact-type", "another artifact type", "layout", fault.MediaType, layers(oci.ArtifactType, "application/x"))
	add("referrer-of-other", "a referrer of another artifact", "layout", fault.Subject, a.manifest(referrers[0], "sha256:"+archive, "sha256:"+strings.Repeat("0", 64)))
	add("referrer-without-subject", "a referrer that refers to nothing", "layout", fault.UnknownField, a.manifest(referrers[0], `"subject":`, `"object":`))
	add("referrer-lying-annotation", "a referrer that announces another predicate", "layout", fault.NotCanonical, a.manifest(referrers[0], `"dev.sigstore.bundle.content":"dsse-envelope"`, `"dev.sigstore.bundle.content":"x"`))
	add("tag-moved", "the index names another manifest, as after a tag was moved", "layout", fault.FileMissing, a.index("sha256:"+archive, "sha256:"+strings.Repeat("0", 64)))

	names := slices.Sorted(maps.Keys(a.good))
	largest := slices.MaxFunc(names, func(x, y string) int { return len(a.good[x]) - len(a.good[y]) })
	blob := func(name, why string, class fault.Class, change func(content map[string][]byte)) {
		check := "layout"
		if class == fault.DigestMismatch {
			check = "content"
		}
		add("blob-"+name, why, check, class, a.files(change))
	}
	blob("flipped", "one bit of a blob", fault.DigestMismatch, func(c map[string][]byte) { c[largest][9] ^= 1 })
	blob("truncated", "a blob without its last byte", fault.DigestMismatch, func(c map[string][]byte) { c[largest] = c[largest][:len(c[largest])-1] })
	blob("longer", "a byte after a blob", fault.DigestMismatch, func(c map[string][]byte) { c[largest] = append(c[largest], 0) })
	blob("missing", "a blob left out", fault.FileMissing, func(c map[string][]byte) { delete(c, largest) })
	blob("more", "a blob that nothing names", fault.FileUnexpected, func(c map[string][]byte) { c["blobs/sha256/"+oci.DigestsOf([]byte("x")).Hex()] = []byte("x") })
	blob("deep-json", "a manifest of lists in lists", fault.Limit, func(c map[string][]byte) {
		c["index.json"] = []byte(strings.Repeat("[", 64) + strings.Repeat("]", 64))
	})
	blob("marker", "another layout version", fault.NotCanonical, func(c map[string][]byte) { c["oci-layout"] = []byte(`{"imageLayoutVersion":"2.0.0"}`) })
}
