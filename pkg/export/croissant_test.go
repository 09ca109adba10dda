package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// recipe is one as data generation writes it.
const recipe = `{"generator":"benchpin/datagen","version":1,"seed":"18446744073709551615","format":"jpeg"}`

// validate checks a document against the schema of testdata.
func validate(t *testing.T, schema string, doc []byte) {
	t.Helper()
	s, err := jsonschema.Compile(filepath.Join("testdata", schema))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%#v\n%s", err, doc)
	}
}

// samples are sources of every kind: an archive, a generated set with evaluation and pictures, and one that was derived.
func samples(t *testing.T) map[string]*Source {
	t.Helper()
	files := func(names ...string) []manifest.Entry {
		var all []manifest.Entry
		for i, name := range names {
			all = append(all, manifest.Entry{Path: name, Size: int64(i), Digest: [32]byte{byte(i)}})
		}
		return all
	}
	lineage, err := manifest.NewLineage("resize v2", manifest.Parent{Name: "raw.json", Manifest: manifest.FormatDigest([32]byte{1}),
		Root: manifest.FormatDigest([32]byte{2}), Count: 3, Bytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Source{
		"archive": open(t, frozenArchive(t), ""),
		"pictures": open(t, saveManifest(t, manifest.Meta{Recipe: json.RawMessage(recipe),
			Layout: &manifest.Layout{Format: "jpeg", SamplesPerFile: 1, DType: "uint8", Train: 3, Valid: 1}},
			files("train/0/img_0.jpeg", "train/0/img_2.jpeg", "train/1/img_1.jpeg", "valid/0/img_0.jpeg")...), ""),
		"derived": open(t, saveManifest(t, manifest.Meta{Lineage: lineage, Exclude: []string{"*.tmp"}},
			files("README", "a b/[odd] näme*.tar.gz", "shard-0.bin")...), ""),
		"empty": open(t, saveManifest(t, manifest.Meta{}), ""),
	}
}

// TestCroissantForm checks every kind of document against the constraints of the specification, and that the same source gives the same bytes.
func TestCroissantForm(t *testing.T) {
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			for _, data := range []string{"data", ".", "../no", "a/../b"} {
				doc, err := Croissant(t.Context(), s, card(), data)
				if data == "../no" {
					if err == nil {
						t.Error("a path that leads out of the folder was accepted")
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				validate(t, "croissant-1.1.schema.json", doc)
				again, err := Croissant(t.Context(), s, card(), data)
				if err != nil || !bytes.Equal(doc, again) {
					t.Errorf("other bytes the second time (%v)", err)
				}
			}
		})
	}
}

// TestCroissantSays checks what a reader finds in the document against manifest and files.
func TestCroissantSays(t *testing.T) {
	s := samples(t)["pictures"]
	raw, err := Croissant(t.Context(), s, card(), "data")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Identifier struct {
			Value string `json:"sc:value"`
		}
		License, URL, DatePublished, CiteAs, Version string
		Creator                                      []struct{ Name string }
		Generated                                    struct {
			Label       string `json:"prov:label"`
			Description string
		} `json:"prov:wasGeneratedBy"`
		Distribution []struct {
			Name, SHA256, ContentURL, ContentSize, Description string
			Includes                                           []string
			EncodingFormat                                     []string
		}
		RecordSet []struct{ Field []struct{ DataType string } }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if root := s.Manifest.Header().Root.String(); doc.Identifier.Value != root {
		t.Errorf("identifier %s, the root is %s", doc.Identifier.Value, root)
	}
	if doc.Generated.Description != recipe || !strings.Contains(doc.Generated.Label, "seed 18446744073709551615") {
		t.Errorf("recipe: %+v", doc.Generated)
	}
	if doc.License != card().License || doc.URL != card().URL || doc.DatePublished != card().Published || doc.CiteAs != card().Citation ||
		doc.Version != card().Version || len(doc.Creator) != 2 {
		t.Errorf("card: %+v", doc)
	}
	if n := len(doc.Distribution); n != 4 {
		t.Fatalf("%d parts, expected the manifest's two files and two sets", n)
	}
	header, train, valid := doc.Distribution[0], doc.Distribution[2], doc.Distribution[3]
	if want := fmt.Sprintf("%d B", len(s.Manifest.HeaderBytes())); header.Name != "manifest.json" || header.ContentSize != want || len(header.SHA256) != 64 {
		t.Errorf("header: %+v", header)
	}
	if !slices.Equal(train.Includes, []string{"data/train/*/*.jpeg"}) || !slices.Equal(valid.Includes, []string{"data/valid/*/*.jpeg"}) ||
		!strings.HasPrefix(train.Description, "The 3 files for training, 3 bytes") || !slices.Equal(train.EncodingFormat, []string{"image/jpeg"}) {
		t.Errorf("sets: %+v %+v", train, valid)
	}
	if len(doc.RecordSet) != 2 || len(doc.RecordSet[0].Field) != 2 || doc.RecordSet[0].Field[1].DataType != "sc:ImageObject" {
		t.Errorf("records: %+v", doc.RecordSet)
	}
}

// TestCardIncomplete names everything that a format demands and nobody gave, and refuses what is no URL or day.
func TestCardIncomplete(t *testing.T) {
	s := samples(t)["archive"]
	_, err := Croissant(t.Context(), s, Card{}, "data")
	for _, word := range []string{"licence (--license URL)", "page (--url URL)", "creator (--creator or --organization NAME)", "day of publication (--published"} {
		if !errors.Is(err, ErrCard) || !strings.Contains(err.Error(), word) {
			t.Errorf("%s is not demanded: %v", word, err)
		}
	}
	if _, err := Crate(s, Card{License: card().License}); !errors.Is(err, ErrCard) || !strings.Contains(err.Error(), "day of publication") ||
		strings.Contains(err.Error(), "creator") {
		t.Errorf("crate: %v", err)
	}
	for name, change := range map[string]func(*Card){
		"license": func(c *Card) { c.License = "MIT" }, "URL": func(c *Card) { c.URL = "ftp://x/y" },
		"day of publication": func(c *Card) { c.Published = "2026-02-30" }, "creator": func(c *Card) { c.Persons = []string{" "} },
	} {
		wrong := card()
		change(&wrong)
		if _, err := Croissant(t.Context(), s, wrong, "data"); !errors.Is(err, ErrCard) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPatterns: whatever the files are called, the patterns of their sets match all of them, and are few.
func TestPatterns(t *testing.T) {
	element := rapid.StringMatching(`[a-z.\[*?\\ ä]{1,6}`).Filter(func(s string) bool { return s != "." && s != ".." && !strings.Contains(s, `\`) })
	rapid.Check(t, func(r *rapid.T) {
		paths := rapid.SliceOfNDistinct(rapid.Map(rapid.SliceOfN(element, 1, 4), func(e []string) string { return strings.Join(e, "/") }), 0, 300,
			rapid.ID[string]).Draw(r, "paths")
		slices.Sort(paths)
		meta := manifest.Meta{}
		if rapid.Bool().Draw(r, "generated") {
			meta.Recipe = json.RawMessage(recipe)
			for i, p := range paths {
				paths[i] = rapid.SampledFrom([]string{"train/", "valid/", ""}).Draw(r, "part") + p
			}
			slices.Sort(paths)
			paths = slices.Compact(paths)
		}
		var entries []manifest.Entry
		for _, p := range paths {
			entries = append(entries, manifest.Entry{Path: p})
		}
		m := inMemory(r, meta, entries...)
		sets, err := fileSets(context.Background(), m)
		if err != nil {
			r.Fatal(err)
		}
		for _, p := range paths {
			matched := false
			for _, set := range sets {
				if len(set.patterns) > 2*mostPatterns {
					r.Fatalf("%d patterns", len(set.patterns))
				}
				for pattern := range set.patterns {
					ok, err := path.Match(pattern, p)
					if err != nil {
						r.Fatalf("pattern %q: %v", pattern, err)
					}
					// path.Match has no **, which stands for any folders.
					matched = matched || ok || pattern == "**/*"
				}
			}
			if !matched {
				r.Fatalf("no pattern matches %q", p)
			}
		}
	})
}

// TestCroissantExpands lets a JSON-LD processor read the documents, in its mode that refuses terms without a meaning.
func TestCroissantExpands(t *testing.T) {
	var files, wants []string
	for name, s := range samples(t) {
		doc, err := Croissant(t.Context(), s, card(), "data")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name+".json")
		write(t, file, doc)
		files = append(files, file)
		wants = append(wants,
			"<"+datasetURN(s.Manifest.Header().Root.String())+"> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <https://schema.org/Dataset>",
			"<https://crate.example/manifest.json> <https://schema.org/sha256> \""+s.content("manifest.json").Digests.Hex())
	}
	quads := string(runNode(t, "expand.js", files...))
	for _, want := range append(wants, "<http://purl.org/dc/terms/conformsTo> \""+CroissantVersion+`"`) {
		if !strings.Contains(quads, want) {
			t.Errorf("no %s in\n%s", want, quads)
		}
	}
	unknown := filepath.Join(t.TempDir(), "unknown.json")
	write(t, unknown, []byte(`{"@context": {}, "@id": "x:y", "term without a meaning": 1}`))
	if out, err := nodeCommand(t, "expand.js", unknown).CombinedOutput(); err == nil {
		t.Errorf("the processor passes everything: %s", out)
	}
}

// TestCroissantLibrary lets MLCommons' own library read the documents. It is on PyPI alone, so that it is asked where somebody installed it.
func TestCroissantLibrary(t *testing.T) {
	python := os.Getenv("BENCHPIN_MLCROISSANT")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import mlcroissant").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %s has no mlcroissant, which no Debian package brings (pip install mlcroissant, or BENCHPIN_MLCROISSANT=PYTHON): %v\n%.300s", python, err, out)
	}
	for name, s := range samples(t) {
		doc, err := Croissant(t.Context(), s, card(), "data")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "croissant.json")
		write(t, file, doc)
		cmd := exec.Command(python, "testdata/read-croissant.py", file)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: mlcroissant refuses it: %v\n%s\n%s", name, err, stderr.String(), doc)
		}
		var found struct {
			Errors, Warnings, Distribution []string
			RecordSets                     []string `json:"record_sets"`
		}
		if err := json.Unmarshal(out, &found); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(found.Errors)+len(found.Warnings) > 0 || len(found.Distribution) < 2 {
			t.Errorf("%s: %s", name, out)
		}
	}
}
