package attest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// The predicate types of an archive's attestations.
const (
	// ResultType is our own: what was run, on which bytes, with which figures.
	ResultType = "https://github.com/benchpin/benchpin/result/v1"
	// TestResultType is in-toto's test-result v0.1: which thresholds were met.
	TestResultType = "https://in-toto.io/attestation/test-result/v0.1"
	// ProvenanceType is SLSA's provenance v1: how a generated data set came to be. Data that nobody generated has none.
	ProvenanceType = "https://slsa.dev/provenance/v1"
)

// ResultSchemaFile is the name of the JSON schema of ResultPredicate in package schemas.
const ResultSchemaFile = "result-v1.schema.json"

const (
	buildType = "https://github.com/benchpin/benchpin/datagen/v1"
	builderID = "https://github.com/benchpin/benchpin"
)

// ResultPredicate is the predicate of type ResultType: the part of a record by which results are found and compared. Its JSON schema is
// schemas/result-v1.schema.json. Field by field it is what the record says; verification compares all of it.
type ResultPredicate struct {
	Run        ResultRun                `json:"run"`
	Tool       ResultTool               `json:"tool"`
	Workload   ResultWorkload           `json:"workload"`
	Dataset    ResultDataset            `json:"dataset"`
	Plan       ResultPlan               `json:"plan"`
	Transcript ResultTranscript         `json:"transcript"`
	Figures    map[string]record.Figure `json:"figures"`
	// ThresholdMet is absent when the figure that the threshold is about could not be computed.
	ThresholdMet *bool `json:"threshold_met,omitempty"`
}

// ResultRun identifies the run and its record.
type ResultRun struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Started  string `json:"started"`
	Finished string `json:"finished"`
	// Record is the BLAKE3 digest of the record.
	Record string `json:"record"`
}

// ResultTool identifies the program that ran.
type ResultTool struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Platform string `json:"platform"`
	Binary   string `json:"binary"`
}

// ResultWorkload identifies the resolved workload.
type ResultWorkload struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// ResultDataset identifies the data set and says how it was compared with its manifest. Large numbers are texts.
type ResultDataset struct {
	Root      string     `json:"root"`
	Manifest  string     `json:"manifest"`
	Files     record.Int `json:"files"`
	Bytes     record.Int `json:"bytes"`
	Generated bool       `json:"generated"`
	Seed      string     `json:"seed,omitempty"`
	Verified  string     `json:"verified"`
}

// ResultPlan is the size of the run.
type ResultPlan struct {
	Accelerators int        `json:"accelerators"`
	Epochs       int        `json:"epochs"`
	BatchSize    int        `json:"batch_size"`
	Steps        record.Int `json:"steps_per_epoch"`
	Bytes        record.Int `json:"bytes_total"`
	Checkpoints  int        `json:"checkpoints"`
	// Reads are the checkpoints read back.
	Reads int `json:"checkpoint_reads,omitempty"`
}

// ResultTranscript identifies the order of reads.
type ResultTranscript struct {
	Root    string     `json:"root"`
	Entries record.Int `json:"entries"`
}

func resultOf(r *record.Record, recordDigest string) ResultPredicate {
	return ResultPredicate{
		Run: ResultRun{ID: r.ID, Status: r.Status, Started: r.Started, Finished: r.Finished, Record: recordDigest},
		Tool: ResultTool{Name: r.Tool.Name, Version: r.Tool.Version, Commit: r.Tool.Commit, Modified: r.Tool.Modified,
			Platform: r.Tool.Platform, Binary: r.Tool.Binary},
		Workload: ResultWorkload{Name: r.Workload.Name, Digest: r.Workload.Digest},
		Dataset: ResultDataset{Root: r.Dataset.Root, Manifest: r.Dataset.Manifest, Files: r.Dataset.Files, Bytes: r.Dataset.Bytes,
			Generated: r.Dataset.Generated, Seed: r.Dataset.Seed, Verified: r.Dataset.Verification.Mode},
		Plan: ResultPlan{Accelerators: r.Plan.Accelerators, Epochs: r.Plan.Epochs, BatchSize: r.Plan.BatchSize,
			Steps: r.Plan.StepsPerEpoch, Bytes: r.Plan.BytesTotal, Checkpoints: r.Plan.Checkpoints,
			Reads: r.Plan.CheckpointReads},
		Transcript:   ResultTranscript{Root: r.Transcript.Root, Entries: r.Transcript.Entries},
		Figures:      figuresOf(&r.Metrics),
		ThresholdMet: r.Metrics.Met,
	}
}

// figuresOf are the figures by which results are compared; those of checkpoints where there are any.
func figuresOf(m *record.Metrics) map[string]record.Figure {
	figures := map[string]record.Figure{
		"au": m.AU, "au_threshold": m.Threshold, "samples_per_second": m.SamplesPerSecond, "bytes_per_second": m.BytesPerSecond,
	}
	for _, name := range []string{
		"save_checkpoint_seconds_mean", "save_checkpoint_bytes_per_second_mean", "load_checkpoint_seconds_mean",
		"load_checkpoint_bytes_per_second_mean",
	} {
		if f, ok := m.Other[name]; ok {
			figures[name] = f
		}
	}
	return figures
}

// resourceDescriptor is in-toto's way to name an artifact.
type resourceDescriptor struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type testResult struct {
	Result        string               `json:"result"`
	Configuration []resourceDescriptor `json:"configuration"`
	PassedTests   []string             `json:"passedTests"`
	WarnedTests   []string             `json:"warnedTests"`
	FailedTests   []string             `json:"failedTests"`
}

type provenance struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string               `json:"buildType"`
	ExternalParameters   externalParameters   `json:"externalParameters"`
	ResolvedDependencies []resourceDescriptor `json:"resolvedDependencies"`
}

type externalParameters struct {
	Recipe json.RawMessage `json:"recipe"`
}

type runDetails struct {
	Builder builder `json:"builder"`
}

type builder struct {
	ID           string               `json:"id"`
	Version      map[string]string    `json:"version"`
	Dependencies []resourceDescriptor `json:"builderDependencies"`
}

// provenanceOf says that the recipe, given to this program, yields the data set. It is what a builder would say, and holds whether
// or not the files were made in this run: recipe and generator version determine every byte.
func provenanceOf(r *record.Record, recipe json.RawMessage) (provenance, error) {
	p := provenance{
		BuildDefinition: buildDefinition{BuildType: buildType, ExternalParameters: externalParameters{Recipe: recipe},
			ResolvedDependencies: []resourceDescriptor{}},
		RunDetails: runDetails{Builder: builder{ID: builderID,
			Version:      map[string]string{"benchpin": r.Tool.Version, "go": r.Tool.Go},
			Dependencies: []resourceDescriptor{{Name: r.Tool.Name, Digest: blake3Set(r.Tool.Binary)}}}},
	}
	for _, m := range r.Tool.Modules {
		d := resourceDescriptor{Name: m.Path, URI: packageURL(m)}
		if m.Sum != "" {
			sum, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
			if err != nil || !strings.HasPrefix(m.Sum, "h1:") || len(sum) != 32 {
				return provenance{}, fmt.Errorf("write provenance: module %s: expected a digest such as h1:<base64 of 32 bytes>, found %q", m.Path, m.Sum)
			}
			d.Digest = map[string]string{"dirHash": hex.EncodeToString(sum)}
		}
		p.BuildDefinition.ResolvedDependencies = append(p.BuildDefinition.ResolvedDependencies, d)
	}
	return p, nil
}

// packageURL names a Go module at a version as package URLs do ("pkg:golang/...").
func packageURL(m record.Module) string {
	u := "pkg:golang/" + m.Path
	if m.Version != "" {
		// A plus sign is data in a path and a space in older readers; package URLs always escape it.
		u += "@" + strings.ReplaceAll(url.PathEscape(m.Version), "+", "%2B")
	}
	return u
}

// blake3Set turns "blake3:<hex>" into in-toto's form; nil when it is something else.
func blake3Set(digest string) map[string]string {
	digits, ok := strings.CutPrefix(digest, "blake3:")
	if !ok {
		return nil
	}
	return map[string]string{"blake3": digits}
}

// typedPredicate is a predicate with its type.
type typedPredicate struct {
	kind  string
	value any
	// former is how earlier versions wrote it, nil where they wrote the same; either holds.
	former any
}

// predicatesOf returns what is to be attested about a record, the manifest of its data set, and a certificate or nil. It is a pure function of these, so
// that whoever verifies makes the same predicates and compares.
func predicatesOf(r *record.Record, recordDigest string, h *manifest.Header, c *certified) ([]typedPredicate, error) {
	thresholds := thresholdsOf(r)
	test := typedPredicate{kind: TestResultType, value: testResultOf(r, thresholds)}
	// Earlier versions told of utilisation alone. That holds where it comes to the same: nobody can leave out the threshold that was missed.
	if former := testResultOf(r, thresholds[:1]); len(thresholds) > 1 && former.Result == testResultOf(r, thresholds).Result {
		test.former = former
	}
	all := []typedPredicate{{kind: ResultType, value: resultOf(r, recordDigest)}, test}
	if c != nil {
		all = append(all, c.predicate())
	}
	if h.Recipe == nil {
		return all, nil
	}
	p, err := provenanceOf(r, h.Recipe)
	if err != nil {
		return nil, err
	}
	return append(all, typedPredicate{kind: ProvenanceType, value: p}), nil
}
