package export

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// The specifications that a crate follows.
const (
	// CrateVersion is RO-Crate 1.1, which the profile builds on.
	CrateVersion = "https://w3id.org/ro/crate/1.1"
	// CrateProfile is the Process Run Crate profile 0.5: a run of one program.
	CrateProfile = "https://w3id.org/ro/wfrun/process/0.5"
	// CrateMetadata is the name of a crate's description.
	CrateMetadata = "ro-crate-metadata.json"
)

const (
	programURL  = "https://github.com/benchpin/benchpin"
	figureTerm  = programURL + "/blob/main/docs/record.md"
	sha256Term  = "http://schema.org/sha256"
	statusTerms = "http://schema.org/"
)

// crate is an RO-Crate's graph: entities, each once.
type crate struct {
	graph []object
}

func (c *crate) add(entity object) object {
	c.graph = append(c.graph, entity)
	return ref(entity["@id"].(string))
}

// ref refers to an entity.
func ref(id string) object { return object{"@id": id} }

// Crate describes the run of a source as an RO-Crate with the Process Run Crate profile: the bytes of ro-crate-metadata.json. They are a pure function
// of source and card.
//
// RO-Crate demands a licence and the day of publication. What is missing or wrong is an ErrCard; a source without a record is ErrNoRecord.
func Crate(s *Source, card Card) ([]byte, error) {
	if s.Record == nil {
		return nil, fmt.Errorf("export ro-crate: %w: expected an archive or a run folder", ErrNoRecord)
	}
	if err := card.check("RO-Crate", need{"the licence (--license URL)", card.License != ""}, need{"the day of publication (--published YYYY-MM-DD)", card.Published != ""}); err != nil {
		return nil, fmt.Errorf("export ro-crate: %w", err)
	}
	r := s.Record
	c := &crate{}
	root := object{"@id": "./", "@type": "Dataset", "name": card.Name, "description": card.Description, "datePublished": card.Published,
		"license": ref(card.License), "conformsTo": []object{ref(CrateProfile)}}
	if card.Name == "" {
		root["name"] = fmt.Sprintf("benchpin run %s of %s", r.ID, r.Workload.Name)
	}
	if card.Description == "" {
		root["description"] = runDescription(r)
	}
	for name, value := range map[string]string{"url": card.URL, "version": card.Version, "creditText": card.Citation} {
		if value != "" {
			root[name] = value
		}
	}
	if s.Archive != "" {
		root["identifier"] = "urn:benchpin:archive:" + s.Archive
	}
	c.add(object{"@id": CrateMetadata, "@type": "CreativeWork", "conformsTo": ref(CrateVersion), "about": ref("./")})
	c.add(root)
	c.add(object{"@id": CrateProfile, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"})
	c.add(object{"@id": card.License, "@type": "CreativeWork", "name": path.Base(card.License), "description": "The licence of this crate."})

	authors := c.people(card)
	if len(authors) > 0 {
		root["author"] = authors
	}
	if card.Publisher != "" {
		root["publisher"] = c.add(object{"@id": "#publisher", "@type": "Organization", "name": card.Publisher})
	}
	parts, results := c.files(s)
	dataset := c.dataset(s)
	root["hasPart"] = append(parts, dataset)
	root["mentions"] = []object{c.action(s, authors, dataset, append(results, c.figures(r)...))}
	return encode(object{
		"@context": []any{CrateVersion + "/context", object{"sha256": sha256Term}},
		"@graph":   c.graph,
	})
}

// people adds the creators.
func (c *crate) people(card Card) []object {
	var all []object
	for i, one := range creators(card) {
		one["@type"] = strings.TrimPrefix(one["@type"].(string), "sc:")
		one["@id"] = fmt.Sprintf("#creator-%d", i+1)
		all = append(all, c.add(one))
	}
	return all
}

// files adds the files of the crate, and says which the run wrote.
func (c *crate) files(s *Source) (parts, results []object) {
	for _, content := range slices.Concat(s.Contents, s.Attestations) {
		entity := object{"@id": escapePath(content.Name), "@type": "File", "name": content.Name, "encodingFormat": content.MediaType,
			"contentSize": fmt.Sprint(content.Digests.Size), "sha256": content.Digests.Hex(), "description": describe(s, content)}
		if content.PredicateType != "" {
			entity["about"] = ref(escapePath(attest.TitleRecord))
		}
		at := c.add(entity)
		parts = append(parts, at)
		if s.madeByRun(content.Name) {
			results = append(results, at)
		}
	}
	return parts, results
}

// madeByRun reports whether the run wrote a file: its record, and what that lists, but for what was signed before it.
func (s *Source) madeByRun(name string) bool {
	if name == attest.TitlePreregistration {
		return false
	}
	return name == attest.TitleRecord || slices.ContainsFunc(s.Record.Files, func(f record.File) bool { return f.Name == name })
}

// describe says what a file of a crate is.
func describe(s *Source, c Content) string {
	switch c.MediaType {
	case record.MediaType:
		return "The record: what was run, on what, and what came of it (" + record.SchemaName + ")."
	case manifest.MediaType:
		return "The manifest's header: pins every file of the data set under the root " + s.Manifest.Header().Root.String() + "."
	case manifest.EntriesMediaType:
		return "The manifest's entries: path, size and BLAKE3 of every file of the data set, one line of JSON each."
	case manifest.GroupsMediaType:
		return "Digests of the parts of large files, for proofs about them."
	}
	switch {
	case c.PredicateType != "":
		return "A signed statement about the result, as a Sigstore bundle: " + c.PredicateType + ". Nobody checked its signature when this crate was made."
	case c.Name == attest.TitlePreregistration:
		return "What was signed before the run about what it would be judged by."
	case c.Name == attest.TitleCertificate:
		return "How much of the data set repeats and how far it compresses."
	case c.Name == "steps.parquet":
		return "The times of every step of every accelerator."
	case c.Name == "eval.parquet":
		return "The times of every step of the evaluation."
	}
	return "A file of the run."
}

// dataset adds the data set. It is no part of the crate's bytes: the manifest identifies it.
func (c *crate) dataset(s *Source) object {
	root := s.Manifest.Header().Root.String()
	return c.add(object{"@id": datasetURN(root), "@type": "Dataset", "name": datasetName(s), "identifier": root,
		"description": datasetDescription(s) + " Its files are not in this crate.", "subjectOf": ref(escapePath(s.headerName()))})
}

// action adds the run.
func (c *crate) action(s *Source, agents []object, dataset object, results []object) object {
	r := s.Record
	version := r.Tool.Version
	if r.Tool.Commit != "" {
		version += " (" + r.Tool.Commit + ")"
	}
	program := c.add(object{"@id": programURL, "@type": "SoftwareApplication", "name": r.Tool.Name, "url": programURL, "softwareVersion": version,
		"identifier": r.Tool.Binary, "description": "The identifier is the digest of the executable that ran."})
	workload := c.add(object{"@id": "#workload", "@type": "PropertyValue", "name": "workload", "value": r.Workload.Digest, "propertyID": figureTerm,
		"description": "The workload " + r.Workload.Name + ": the digest of its resolved form, which record.json holds."})
	run := object{"@id": "#" + r.ID, "@type": "CreateAction", "name": "benchpin run " + r.ID, "description": runDescription(r),
		"startTime": crateTime(r.Started), "endTime": crateTime(r.Finished), "instrument": program, "object": []object{dataset, workload},
		"result": results, "actionStatus": statusTerms + "CompletedActionStatus"}
	if r.Status != record.StatusComplete {
		run["actionStatus"], run["error"] = statusTerms+"FailedActionStatus", r.Reason
	}
	if len(agents) > 0 {
		run["agent"] = agents
	}
	return c.add(run)
}

// figures adds the figures of the run, each with what it rests on.
func (c *crate) figures(r *record.Record) []object {
	m := r.Metrics
	all := map[string]record.Figure{"au": m.AU, "au_threshold": m.Threshold, "samples_per_second": m.SamplesPerSecond, "bytes_per_second": m.BytesPerSecond}
	maps.Copy(all, m.Other)
	var results []object
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		entity := object{"@id": "#figure-" + url.PathEscape(name), "@type": "PropertyValue", "name": name, "propertyID": figureTerm, "unitText": f.Unit,
			"description": classText(f.Class)}
		if f.Value != nil {
			entity["value"] = *f.Value
		} else {
			entity["description"] = classText(f.Class) + " It could not be computed: " + f.Absent
		}
		results = append(results, c.add(entity))
	}
	return results
}

// classText says who can know that a figure is true.
func classText(c record.Class) string {
	switch c {
	case record.Recomputable:
		return "Class C: anyone can compute it again from the archive."
	case record.Witnessed:
		return "Class W: a third party witnessed it."
	}
	return "Class H: only the host that ran says so."
}

// runDescription says in a sentence what was run.
func runDescription(r *record.Record) string {
	p := r.Plan
	text := fmt.Sprintf("A storage benchmark for deep-learning training: workload %s, %d accelerators, %d epochs, %d files, %d bytes read in all.",
		r.Workload.Name, p.Accelerators, p.Epochs, int64(p.Files), int64(p.BytesTotal))
	if r.Status != record.StatusComplete {
		text += " The run did not finish, and this is no result: " + r.Reason
	}
	return text
}

// crateTime writes a record's time as the profile wants it: milliseconds, and an offset. The record has all digits.
func crateTime(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.UTC().Format("2006-01-02T15:04:05.000") + "+00:00"
}

// escapePath writes a relative path as a relative URI reference: a name that could be read as a scheme gets "./" before it.
func escapePath(name string) string {
	u := url.URL{Path: name}
	return u.String()
}
