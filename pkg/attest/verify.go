package attest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// VerifyArchive checks the archive in folder dir with the given public keys, offline, and reports every check, not only the first
// that fails. Everything is read once, and what was checked is what is parsed.
//
// The error says that nothing could be verified: ErrNoKey without keys, or a folder that cannot be read. That the archive is not
// what it must be is in the checks (and in Verification.Err). The caller may append checks of its own, then ask OK, and must call
// Close.
func VerifyArchive(ctx context.Context, dir string, keys []PublicKey, p Policy) (*Verification, error) {
	v, err := newVerifier(ctx, dir, keys, p)
	if err != nil {
		return nil, fmt.Errorf("verify archive %s: %w", dir, err)
	}
	if err := v.run(v.layout, v.record, v.manifest, v.files, v.certificate, v.preregistration, v.attestations, v.bracket, v.judge); err != nil {
		return nil, errors.Join(fmt.Errorf("verify archive %s: %w", dir, err), v.v.Close())
	}
	return v.v, nil
}

func newVerifier(ctx context.Context, dir string, keys []PublicKey, p Policy) (*verifier, error) {
	if err := checkKeys(keys, p.Witness); err != nil {
		return nil, err
	}
	l, err := oci.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &verifier{ctx: ctx, v: &Verification{layout: l, Archive: l.Manifest}, keys: keys, policy: p}, nil
}

func (v *verifier) run(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// verifier holds what the steps of one verification hand on to each other.
type verifier struct {
	ctx    context.Context
	v      *Verification
	keys   []PublicKey
	policy Policy

	certificateLayer *oci.Layer // nil where there is no certificate
	certified        *certified // nil where there is none, or it was refused

	// seen is the first trusted time of the transcript's root, where there is one: that of its own timestamp, or of a statement of the result.
	seen   TrustedTime
	isSeen bool

	header *manifest.Header // of a manifest.json that was well-formed, whether or not its entries are
}

func (v *verifier) add(name string, class record.Class, evidence, limits string, faults []*fault.Fault) error {
	v.v.Add(NewCheck(name, class, evidence, limits, faults...))
	return nil
}

func unchecked(part, why string) *fault.Fault {
	return fault.New(fault.Unchecked, "", "not checked, because "+why).In(part)
}

func (v *verifier) layout() error {
	l := v.v.layout
	var content, form []*fault.Fault
	for _, f := range l.Faults {
		if f.Class == fault.DigestMismatch {
			content = append(content, f)
		} else {
			form = append(form, f)
		}
	}
	if l.Manifest == (oci.Digests{}) {
		content = append(content, unchecked("content", "there is no readable manifest that says what belongs to the archive"))
	}
	_ = v.add("content", record.Recomputable, fmt.Sprintf("sha256 of every file below blobs/ against its name; %d layers and %d bundles", len(l.Layers), len(l.Bundles)),
		"who made the files, and that they are true", content)
	return v.add("layout", record.Recomputable, "oci-layout, index.json and every manifest against what they lead to, byte for byte; no file is missing and none is there that does not belong",
		"that no bundle was taken out together with its entry: what must be there is checked below", form)
}

// layer returns the bytes of one of the layers that every archive has, or why not.
func (v *verifier) layer(at int, title, mediaType string) (*oci.Blob, string, *fault.Fault) {
	layers := v.v.layout.Layers
	if at >= len(layers) || layers[at].Title != title {
		return nil, title, fault.New(fault.FileMissing, "", fmt.Sprintf("expected this file as layer %d of the archive", at)).In(title)
	}
	l := layers[at]
	if l.MediaType != mediaType {
		return nil, l.Part, fault.New(fault.MediaType, "mediaType", fmt.Sprintf("expected %q, found %q", mediaType, shorten(l.MediaType))).In(l.Part)
	}
	if l.Blob == nil {
		return nil, l.Part, unchecked(l.Part, "its content is missing or damaged")
	}
	return l.Blob, l.Part, nil
}

func (v *verifier) record() error {
	const evidence = "bytes of record.json against the canonical form of what they say; its JSON schema; every rule of docs/record.md; status"
	const limit = "that the host measured what it says: figures of class H rest on its word"
	blob, part, bad := v.layer(0, TitleRecord, record.MediaType)
	if bad != nil {
		return v.add("record", record.Recomputable, evidence, limit, []*fault.Fault{bad})
	}
	raw, err := blob.Bytes(record.MaxBytes)
	if err != nil {
		return v.add("record", record.Recomputable, evidence, limit, []*fault.Fault{fault.New(fault.Limit, "", err.Error()).In(part)})
	}
	r, err := record.Parse(raw)
	if err != nil {
		return v.add("record", record.Recomputable, evidence, limit, []*fault.Fault{fault.New(fault.Record, "", err.Error()).In(part)})
	}
	v.v.Record, v.v.RecordBytes = r, raw
	var faults []*fault.Fault
	if err := record.ValidateSchema(raw); err != nil {
		faults = append(faults, fault.New(fault.Record, "", err.Error()).In(part))
	}
	for _, p := range r.Check() {
		class := fault.Record
		if strings.HasPrefix(p.Field, "workload") {
			class = fault.Workload
		}
		faults = append(faults, fault.New(class, p.Field, p.Message).In(part))
	}
	if r.Status != record.StatusComplete {
		faults = append(faults, fault.New(fault.Incomplete, "status", "the run did not finish: "+shorten(r.Reason)).In(part))
	}
	return v.add("record", record.Recomputable, evidence, limit, faults)
}

func (v *verifier) manifest() error {
	evidence := "manifest.json against its canonical form; every entry, the counts and the root recomputed; digest, root, counts and seed against the record"
	limit := "that the data set is still there: `benchpin data verify` compares files with this manifest"
	var faults []*fault.Fault
	add := func(class fault.Class, field, detail, part string) {
		faults = append(faults, fault.New(class, field, detail).In(part))
	}
	headerBlob, part, bad := v.layer(1, TitleManifest, manifest.MediaType)
	if bad != nil {
		faults = append(faults, bad)
	}
	entriesPart := TitleEntries
	if n := entriesParts(v.v.layout); n == 1 {
		entriesPart = v.v.layout.Layers[2].Part
	} else if n > 1 {
		evidence += fmt.Sprintf("; its entries are in %d layers", n)
	}
	entries, entriesSize, err := Entries(v.v.layout)
	if err != nil {
		faults = append(faults, asFault(err))
	}
	if headerBlob != nil {
		raw, err := headerBlob.Bytes(manifest.MaxHeaderBytes)
		if err == nil {
			v.header, err = manifest.ParseHeader(raw)
		}
		if err != nil {
			add(fault.Manifest, "", err.Error(), part)
		}
		if v.header != nil && entries != nil {
			m, err := manifest.OpenReaders(raw, entries, entriesSize)
			if err == nil {
				err = m.Entries(v.ctx, func(manifest.Entry) error { return nil })
			}
			switch {
			case v.ctx.Err() != nil:
				return v.ctx.Err()
			case err != nil:
				add(fault.Manifest, "", err.Error(), entriesPart)
			default:
				v.v.Manifest = m
			}
			if err == nil && v.hasGroups() {
				evidence += "; the digests of every file's groups combined to its digest"
				if bad := v.groups(m); bad != nil {
					faults = append(faults, bad)
				}
			}
		}
	}
	if v.header != nil {
		if v.header.Lineage != nil {
			limit += "; that it was derived from what its lineage names: the one who pinned it says so"
		}
		if len(v.header.Exclude) > 0 {
			limit += "; anything about files that it excludes"
		}
		faults = append(faults, v.compareDataset(headerBlob.Digests, part)...)
	}
	return v.add("manifest", record.Recomputable, evidence, limit, faults)
}

// compareDataset compares the manifest's header with what the record says of the data set.
func (v *verifier) compareDataset(g oci.Digests, part string) []*fault.Fault {
	if v.v.Record == nil {
		return []*fault.Fault{unchecked(part, "there is no readable record to compare it with")}
	}
	d := v.v.Record.Dataset
	var faults []*fault.Fault
	for _, c := range []struct{ field, says, is string }{
		{"dataset.manifest", d.Manifest, g.Blake3Digest().String()},
		{"dataset.root", d.Root, v.header.Root.String()},
		{"dataset.files", fmt.Sprint(int64(d.Files)), fmt.Sprint(v.header.Count)},
		{"dataset.bytes", fmt.Sprint(int64(d.Bytes)), fmt.Sprint(v.header.Bytes)},
		{"dataset.generated", fmt.Sprint(d.Generated), fmt.Sprint(v.header.Recipe != nil)},
	} {
		if c.says != c.is {
			faults = append(faults, fault.New(fault.Manifest, c.field,
				fmt.Sprintf("the record says %s, the manifest gives %s", shorten(c.says), c.is)).In(part))
		}
	}
	if seed, ok := recipeSeed(v.header.Recipe); ok && seed != d.Seed {
		faults = append(faults, fault.New(fault.Manifest, "dataset.seed",
			fmt.Sprintf("the record says %q, the recipe %q", shorten(d.Seed), shorten(seed))).In(part))
	}
	return faults
}

// alwaysThere is how many layers come before all that not every archive has: record, manifest, and the entries in one layer or more.
func (v *verifier) alwaysThere() int { return 2 + max(1, entriesParts(v.v.layout)) }

// hasGroups reports whether the layer after the entries claims to be group digests.
func (v *verifier) hasGroups() bool {
	l, at := v.v.layout.Layers, v.alwaysThere()
	return len(l) > at && l[at].Title == TitleGroups
}

// groups checks the group digests against a manifest that was read to its end.
func (v *verifier) groups(m *manifest.Manifest) *fault.Fault {
	blob, part, bad := v.layer(v.alwaysThere(), TitleGroups, manifest.GroupsMediaType)
	if bad != nil {
		return bad
	}
	g, err := manifest.OpenGroupsReader(blob, blob.Size, m)
	if err == nil {
		err = g.Check(v.ctx, m)
	}
	if err != nil {
		return fault.New(fault.Manifest, "", err.Error()).In(part)
	}
	v.v.Groups = g
	return nil
}

// files compares the layers beyond those of the manifest with the record's list of files.
func (v *verifier) files() error {
	const evidence = "size and BLAKE3 of every file that the record lists, against the file; no other file is in the archive"
	const limit = "that a file says what was measured; class H"
	if v.v.Record == nil {
		return v.add("files", record.Recomputable, evidence, limit, []*fault.Fault{unchecked("files", "there is no readable record that lists them")})
	}
	var faults []*fault.Fault
	layers := v.v.layout.Layers
	always := v.alwaysThere() // layers that are not files of the record
	if v.hasGroups() {
		always++
	}
	layers = v.splitCertificate(layers[min(always, len(layers)):])
	for i, f := range v.v.Record.Files {
		if i >= len(layers) || layers[i].Title != f.Name {
			faults = append(faults, fault.New(fault.RecordFile, "", fmt.Sprintf("the record lists it; expected it as layer %d of the archive", i+always)).In(f.Name))
			continue
		}
		l := layers[i]
		if l.MediaType != MediaTypeOf(f.Name) {
			faults = append(faults, fault.New(fault.MediaType, "mediaType", fmt.Sprintf("expected %q, found %q", MediaTypeOf(f.Name), shorten(l.MediaType))).In(l.Part))
		}
		if l.Blob == nil {
			faults = append(faults, unchecked(l.Part, "its content is missing or damaged"))
		} else if bad := compareFile(f, l.Blob.Digests); bad != nil {
			faults = append(faults, bad.In(l.Part))
		}
	}
	for _, l := range layers[min(len(v.v.Record.Files), len(layers)):] {
		faults = append(faults, fault.New(fault.FileUnexpected, "", "the record does not list this file").In(l.Part))
	}
	return v.add("files", record.Recomputable, evidence, limit, faults)
}
