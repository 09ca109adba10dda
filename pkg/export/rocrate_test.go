package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// graph is a crate's description, by identifier.
type graph map[string]map[string]any

func readCrate(t *testing.T, raw []byte) graph {
	t.Helper()
	var doc struct {
		Graph []map[string]any `json:"@graph"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	g := graph{}
	for _, e := range doc.Graph {
		id := e["@id"].(string)
		if g[id] != nil {
			t.Errorf("entity %s stands twice", id)
		}
		g[id] = e
	}
	return g
}

// refs are the identifiers that a property refers to.
func refs(v any) []string {
	switch v := v.(type) {
	case map[string]any:
		return []string{v["@id"].(string)}
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, refs(one)...)
		}
		return all
	}
	return nil
}

// checkCrate holds a description to what RO-Crate 1.1 and Process Run Crate 0.5 demand: each line names the clause.
func checkCrate(t *testing.T, g graph) {
	t.Helper()
	for id, e := range g {
		for name, v := range e {
			for _, to := range refs(v) {
				// Flattened: everything that is referred to is described, but for the specification's own address.
				if g[to] == nil && to != CrateVersion {
					t.Errorf("%s of %s refers to %s, which is not described", name, id, to)
				}
			}
			if m, nested := v.(map[string]any); nested && len(m) != 1 {
				t.Errorf("%s of %s is not flattened", name, id)
			}
		}
	}
	descriptor := g[CrateMetadata]
	if descriptor["@type"] != "CreativeWork" || !slices.Equal(refs(descriptor["about"]), []string{"./"}) || !slices.Equal(refs(descriptor["conformsTo"]), []string{CrateVersion}) {
		t.Errorf("metadata descriptor: %v", descriptor)
	}
	root := g["./"]
	for _, name := range []string{"name", "description", "datePublished", "license"} {
		if root[name] == nil {
			t.Errorf("the root has no %s", name)
		}
	}
	if root["@type"] != "Dataset" || !slices.Contains(refs(root["conformsTo"]), CrateProfile) || g[CrateProfile]["@type"] != "CreativeWork" {
		t.Errorf("root: %v", root)
	}
	parts := refs(root["hasPart"])
	var actions int
	for id, e := range g {
		switch e["@type"] {
		case "File", "Dataset":
			if id != "./" && !slices.Contains(parts, id) {
				t.Errorf("data entity %s is no part of the root", id)
			}
			if u, err := url.Parse(id); err != nil || strings.Contains(u.Path, "..") {
				t.Errorf("data entity %q: %v", id, err)
			}
		case "CreateAction":
			actions++
			if instrument := refs(e["instrument"]); len(instrument) != 1 || g[instrument[0]]["@type"] != "SoftwareApplication" {
				t.Errorf("the action MUST have an instrument: %v", instrument)
			}
			if !slices.Contains(refs(root["mentions"]), id) {
				t.Errorf("the action SHOULD be mentioned by the root")
			}
			for _, name := range []string{"startTime", "endTime"} {
				if text, _ := e[name].(string); !regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}\+\d{2}:\d{2}$`).MatchString(text) {
					t.Errorf("%s %q is not in the profile's form", name, text)
				}
			}
			status := strings.TrimPrefix(e["actionStatus"].(string), "http://schema.org/")
			if (status == "FailedActionStatus") != (e["error"] != nil) || !slices.Contains([]string{"CompletedActionStatus", "FailedActionStatus"}, status) {
				t.Errorf("status %s, error %v", status, e["error"])
			}
			for _, to := range append(refs(e["object"]), refs(e["result"])...) {
				if kind := g[to]["@type"]; !slices.Contains([]any{"File", "Dataset", "PropertyValue"}, kind) {
					t.Errorf("object or result %s is a %v", to, kind)
				}
			}
		case "SoftwareApplication":
			if e["name"] == nil || e["url"] == nil || e["softwareVersion"] == nil || !strings.HasPrefix(id, "https://") {
				t.Errorf("application: %v", e)
			}
		}
	}
	if actions != 1 {
		t.Errorf("%d actions", actions)
	}
}

// TestCrateFromArchive packs an archive, and compares every file with what the description says, and that with record and manifest.
func TestCrateFromArchive(t *testing.T) {
	s := open(t, frozenArchive(t), "")
	folder := filepath.Join(t.TempDir(), "parent", "crate")
	info, err := WriteCrate(t.Context(), folder, s, card())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, CrateMetadata))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Crate(s, card()); err != nil || !bytes.Equal(raw, again) || info.SHA256 != oci.DigestsOf(raw).SHA256Digest().String() {
		t.Errorf("other bytes the second time (%v), or another digest", err)
	}
	g := readCrate(t, raw)
	checkCrate(t, g)
	files, size := 0, int64(0)
	err = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files, size = files+1, size+int64(len(b))
		name, relErr := filepath.Rel(folder, path)
		if err = errors.Join(err, relErr); err != nil || name == CrateMetadata {
			return err
		}
		e := g[filepath.ToSlash(name)]
		if e["@type"] != "File" || e["sha256"] != oci.DigestsOf(b).Hex() || e["encodingFormat"] == "" || e["description"] == "" {
			t.Errorf("%s: %v", name, e)
		}
		return nil
	})
	if err != nil || files != info.Files || size != info.Bytes || files != 1+len(s.Contents)+len(s.Attestations) {
		t.Errorf("%d files and %d bytes, said are %+v (%v)", files, size, info, err)
	}
	if len(s.Attestations) == 0 {
		t.Fatal("the archive has no attestations")
	}
	run := g["#"+s.Record.ID]
	if !slices.Contains(refs(run["result"]), "record.json") || !slices.Contains(refs(run["result"]), "steps.parquet") ||
		slices.Contains(refs(run["result"]), "attestations/1.sigstore.json") || slices.Contains(refs(run["result"]), "manifest.json") {
		t.Errorf("results of the run: %v", refs(run["result"]))
	}
	au := g["#figure-au"]
	if au["value"] != *s.Record.Metrics.AU.Value || au["unitText"] != "%" || !strings.HasPrefix(au["description"].(string), "Class H") {
		t.Errorf("figure au: %v", au)
	}
	data := g[datasetURN(s.Record.Dataset.Root)]
	if data["identifier"] != s.Record.Dataset.Root || !slices.Contains(refs(run["object"]), datasetURN(s.Record.Dataset.Root)) {
		t.Errorf("data set: %v", data)
	}
	if g["./"]["identifier"] != "urn:benchpin:archive:"+s.Archive {
		t.Errorf("archive: %v", g["./"]["identifier"])
	}
	if _, err := WriteCrate(t.Context(), folder, s, card()); !errors.Is(err, ErrExists) {
		t.Errorf("a crate was written over another: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(folder))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the crate: %v %v", left, err)
	}
}

// TestCrateOfRun describes a run folder as the archive of it, but for what only an archive has; a run that failed is said to have.
func TestCrateOfRun(t *testing.T) {
	folder, manifestPath := runFolder(t, nil)
	s := open(t, folder, manifestPath)
	raw, err := Crate(s, card())
	if err != nil {
		t.Fatal(err)
	}
	checkCrate(t, readCrate(t, raw))
	archive := open(t, frozenArchive(t), "")
	archive.Attestations, archive.Archive = nil, ""
	if same, err := Crate(archive, card()); err != nil || !bytes.Equal(raw, same) {
		t.Errorf("the run folder is described in another way than its archive: %v", err)
	}

	folder, manifestPath = runFolder(t, func(r *record.Record) { r.Status, r.Reason = record.StatusIncomplete, "the disk broke" })
	raw, err = Crate(open(t, folder, manifestPath), card())
	if err != nil {
		t.Fatal(err)
	}
	g := readCrate(t, raw)
	checkCrate(t, g)
	if text, _ := g["./"]["description"].(string); !strings.Contains(text, "no result: the disk broke") {
		t.Errorf("description: %q", text)
	}
}

// TestCrateFigureAbsent: a figure that could not be computed has no value, and the reason.
func TestCrateFigureAbsent(t *testing.T) {
	s := open(t, frozenArchive(t), "")
	s.Record.Metrics.Other["none"] = record.Figure{Unit: "s", Class: record.HostOnly, Absent: "nobody counted"}
	raw, err := Crate(s, card())
	if err != nil {
		t.Fatal(err)
	}
	f := readCrate(t, raw)["#figure-none"]
	if _, has := f["value"]; has || !strings.Contains(f["description"].(string), "nobody counted") {
		t.Errorf("%v", f)
	}
}

// TestCrateNeedsRun: a manifest describes no run.
func TestCrateNeedsRun(t *testing.T) {
	if _, err := WriteCrate(t.Context(), filepath.Join(t.TempDir(), "c"), samples(t)["derived"], card()); !errors.Is(err, ErrNoRecord) {
		t.Errorf("%v", err)
	}
}

// TestCratePackage lets the ro-crate package of the npm registry validate a crate and its files, and a JSON-LD processor read it.
func TestCratePackage(t *testing.T) {
	s := open(t, frozenArchive(t), "")
	folder := filepath.Join(t.TempDir(), "crate")
	if _, err := WriteCrate(t.Context(), folder, s, card()); err != nil {
		t.Fatal(err)
	}
	type verdict struct {
		Checks int
		Bad    []struct{ ID, Status, Entity, Message string }
	}
	ask := func() verdict {
		var v verdict
		out := runNode(t, "validate-crate.js", folder)
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return v
	}
	if v := ask(); v.Checks < 8 || len(v.Bad) > 0 {
		t.Errorf("%+v", v)
	}
	quads := string(runNode(t, "expand.js", filepath.Join(folder, CrateMetadata)))
	for _, want := range []string{
		"<https://crate.example/> <http://purl.org/dc/terms/conformsTo> <" + CrateProfile + ">",
		"<https://crate.example/record.json> <http://schema.org/sha256> \"" + s.content(attest.TitleRecord).Digests.Hex(),
		"<https://crate.example/#" + s.Record.ID + "> <http://schema.org/instrument> <" + programURL + ">",
	} {
		if !strings.Contains(quads, want) {
			t.Errorf("no %s in\n%s", want, quads)
		}
	}
	// The validator notices what is missing.
	if err := os.Remove(filepath.Join(folder, "steps.parquet")); err != nil {
		t.Fatal(err)
	}
	if v := ask(); len(v.Bad) == 0 {
		t.Error("a missing file was not noticed")
	}
}

// TestCopyChanged: a file that changes between being described and being copied makes no crate.
func TestCopyChanged(t *testing.T) {
	folder, manifestPath := runFolder(t, nil)
	s := open(t, folder, manifestPath)
	write(t, filepath.Join(folder, "steps.parquet"), []byte("other"))
	to := filepath.Join(t.TempDir(), "crate")
	if _, err := WriteCrate(t.Context(), to, s, card()); err == nil || !strings.Contains(err.Error(), "changed while it was copied") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
