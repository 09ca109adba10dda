package workload

import (
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Source is a workload file as it was read.
type Source struct {
	// Name is the file's name, for messages; its last element without the extension is the workload's name.
	Name string
	Data []byte
}

// Options are what comes beside the file.
type Options struct {
	// Overrides are in Hydra's grammar: "workload.a.b=v", "+workload.a.b=v", "++workload.a.b=v", "~workload.a.b".
	Overrides []string
	// Set are "a.b=v", short for "++workload.a.b=v"; they are applied after Overrides.
	Set []string
	// Strict turns every warning into an error.
	Strict bool
}

// Resolved is a workload with everything that identifies it.
type Resolved struct {
	Workload *Workload
	// Name is the name of the file without folder and extension.
	Name string
	// Warnings say what in the file has no effect, in the order of the file.
	Warnings []Warning
	// Source is the BLAKE3 digest of the file's bytes.
	Source digest.Digest
	// Overrides are the overrides in the order in which they were applied, in Hydra's grammar, credentials blanked.
	Overrides []string
	// Canonical is the canonical form, and Digest the BLAKE3 digest of its bytes.
	Canonical []byte
	Digest    digest.Digest
	// Composed is the file with its overrides applied, as YAML, the way Hydra saves it: without defaults, unknown keys included,
	// credentials blanked.
	Composed []byte
	// given says where each key got its value; keys that are not here have their default.
	given map[string]Position
	// loaded and options are what it was resolved from.
	loaded  Source
	options Options
}

// Load resolves a workload file: it reads the YAML, applies the overrides, follows the interpolation, checks every
// value and fills in the defaults. What is wrong is told all at once: the error holds an *Error (errors.As) for each
// problem, with its place.
func Load(src Source, o Options) (*Resolved, error) {
	dialect := newDialect()
	root, err := parseYAML(src, dialect)
	if err != nil {
		return nil, err
	}
	d := &decoder{given: map[string]Position{}}
	root = d.normalise(root)
	texts := append([]string(nil), o.Overrides...)
	for _, set := range o.Set {
		texts = append(texts, opForce+"workload."+set)
	}
	shown := make([]string, 0, len(texts))
	for _, text := range texts {
		parsed, err := parseOverride(text, dialect)
		if err != nil {
			return nil, err
		}
		d.apply(root, parsed)
		shown = append(shown, parsed.shown())
	}
	if len(d.errs) > 0 {
		return nil, d.err()
	}
	if err := resolve(root); err != nil {
		return nil, err
	}
	composed := compose(root)
	if ksm := root.find("checkpoint.ksm"); ksm != nil && ksm.kind == mapKind && ksm.get("enabled") == nil {
		ksm.put("enabled", ksm.pos, &node{kind: boolKind, raw: "true", truth: true, pos: ksm.pos})
	}
	w := new(Workload)
	d.decode(root, w)
	finish(w)
	d.unknown(root, "", keys(w))
	d.check(w)
	if o.Strict {
		d.refuseWarnings()
	}
	d.sort(texts)
	if err := d.err(); err != nil {
		return nil, err
	}
	r := &Resolved{Workload: w, Warnings: d.warns, Source: blake3Digest(src.Data), Overrides: shown, Canonical: canonical(w), Composed: composed,
		given: d.given, loaded: src, options: o}
	r.Digest = blake3Digest(r.Canonical)
	r.Name = strings.TrimSuffix(path.Base(strings.ReplaceAll(src.Name, `\`, "/")), path.Ext(src.Name))
	return r, nil
}

// normalise gives a file its usual form: without the wrapper `workload:` that Hydra's saved configurations have, with
// the model as a section, and with one reader section, `reader`.
func (d *decoder) normalise(root *node) *node {
	if inner := root.get("workload"); inner != nil && inner.kind == mapKind && len(root.fields) == 1 {
		root = inner
	}
	if list := root.get("defaults"); list != nil {
		d.errs = append(d.errs, &Error{Position: list.pos, Path: "defaults", Msg: "Hydra's list of files to compose is not followed",
			Hint: "write one file, or give the difference as overrides"})
	}
	if model := root.get("model"); model != nil && model.kind == textKind {
		name := field{name: "name", pos: model.pos, value: model}
		root.put("model", model.pos, &node{kind: mapKind, pos: model.pos, fields: []field{name}})
	}
	for i := range root.fields {
		f := root.fields[i]
		if f.name != "data_reader" {
			continue
		}
		if other := root.get("reader"); other != nil {
			d.warn(other.pos, "reader", "ignored, because the file also has data_reader", "keep one of the two")
			root.remove("reader")
			root.remove("data_reader")
			root.put("reader", f.pos, f.value)
		} else {
			root.fields[i].name = "reader"
		}
		break
	}
	return root
}

// sort brings problems into the order of the file; those of overrides come last, in their order.
func (d *decoder) sort(overrides []string) {
	order := make(map[string]int, len(overrides))
	for i, o := range overrides {
		order[o] = i + 1
	}
	before := func(a, b Position) bool {
		if a.Override != b.Override {
			return order[a.Override] < order[b.Override]
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	}
	sort.SliceStable(d.errs, func(i, j int) bool { return before(d.errs[i].Position, d.errs[j].Position) })
	sort.SliceStable(d.warns, func(i, j int) bool { return before(d.warns[i].Position, d.warns[j].Position) })
}

// refuseWarnings makes every warning an error.
func (d *decoder) refuseWarnings() {
	for _, w := range d.warns {
		d.errs = append(d.errs, &Error{Position: w.Position, Path: w.Path, Msg: w.Msg + " (refused by --strict)", Hint: w.Hint})
	}
}

// err joins what is wrong, or is nil.
func (d *decoder) err() error {
	const most = 20
	all := make([]error, 0, len(d.errs))
	for i, e := range d.errs {
		if i == most {
			all = append(all, fmt.Errorf("and %d more", len(d.errs)-most))
			break
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}
