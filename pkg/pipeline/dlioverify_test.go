package pipeline

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/record"
)

// TestSignerCannotLieInDLIOsFiles: whoever signs an archive may write other files of DLIO and give the record their digests; that they do
// not follow from the step times is found all the same.
func TestSignerCannotLieInDLIOsFiles(t *testing.T) {
	l, out := gone(t)
	if evidence := figuresEvidence(t, out.Verification); !strings.Contains(evidence, "; 9 files of DLIO too") {
		t.Errorf("expected summary.json, two files of each of two ranks, the log and three of the configuration to be compared: %s", evidence)
	}
	replace := func(pattern, by string) func([]byte) []byte {
		return func(b []byte) []byte { return regexp.MustCompile(pattern).ReplaceAll(b, []byte(by)) }
	}
	for name, lie := range map[string]struct {
		file string
		tell func([]byte) []byte
	}{
		"utilisation":     {"summary.json", replace(`("train_au_mean_percentage"): [0-9.]+`, "$1: 99.5")},
		"verdict":         {"summary.json", replace(`"success"`, `"fail"`)},
		"host's memory":   {"summary.json", replace(`("host_memory_GB"): \[\s*[0-9.]+`, "$1: [1.5")},
		"another field":   {"summary.json", replace(`"num_hosts"`, `"num_host": 1, "num_hosts"`)},
		"a step":          {"1_output.json", replace(`(?s)("load": \{\s*"block1": \[\s*)[0-9.e-]+`, "${1}0.25")},
		"a checkpoint":    {"0_per_epoch_stats.json", replace(`("throughput"): [0-9.e-]+`, "$1: 7.5")},
		"the log":         {"dlio.log", replace(`steps completed in`, "steps done in")},
		"a year ago":      {"0_per_epoch_stats.json", replace(`("start"): "2[0-9]{3}`, `$1: "2001`)},
		"the start":       {"summary.json", replace(`("start"): "[^"]*"`, `$1: "2001-02-03T04:05:06.000007"`)},
		"times of lines":  {"dlio.log", replace(`[0-9-]{10}T[0-9:.]{15}`, "2001-02-03T04:05:06.000007")},
		"a comment":       {"dlio_config/config.yaml", func(b []byte) []byte { return append(b, "# AU: 100 %\n"...) }},
		"not JSON":        {"0_output.json", replace(`^\{`, "[")},
		"the workload":    {"dlio_config/config.yaml", replace("epochs: 2", "epochs: 3")},
		"an override":     {"dlio_config/overrides.yaml", func(b []byte) []byte { return append(b, "- \"++workload.train.epochs=99\"\n"...) }},
		"no list":         {"dlio_config/hydra.yaml", replace(`    task:`, "    tasks:")},
		"Hydra's list":    {"dlio_config/hydra.yaml", replace(`(    task:\n)`, "${1}    - \"++workload.train.epochs=99\"\n")},
		"a rank too many": {"2_output.json", func([]byte) []byte { return []byte("{}") }},
	} {
		t.Run(name, func(t *testing.T) {
			v := resigned(t, l, out, lie.file, lie.tell)
			defer v.Close()
			for _, c := range v.Checks {
				if c.OK == (c.Name == checkFigures) {
					t.Errorf("check %s: OK is %v: %s", c.Name, c.OK, c.Problem)
				}
				if c.Name == checkFigures && !strings.Contains(c.Problem, lie.file) {
					t.Errorf("the problem does not name %s: %s", lie.file, c.Problem)
				}
			}
		})
	}
}

// TestDLIOStamps: timestamps are those of the record, in one zone that a host can have, summer time included.
func TestDLIOStamps(t *testing.T) {
	const at = "2026-10-25T00:59:58.000001"
	for found, want := range map[string]bool{
		at:                           true,
		"2026-10-25T02:59:58.000001": true, // another zone
		"2026-10-24T12:59:58.400001": true, // and a clock that was late
		"2026-10-25T14:59:58.000001": true,
		"2026-10-25T00:59:59.900001": true, // within the lead
		"2025-10-25T00:59:58.000001": false,
		"2026-10-26T00:59:58.000001": false,
		"2026-10-25T01:03:58.000001": false,
		"2026-99-25T01:03:58.000001": false,
	} {
		z := zones{lead: time.Second}
		if d := z.difference(at, found); (d == "") != want {
			t.Errorf("%s: %q", found, d)
		}
	}
	// The second one is two hours behind where an hour went by: the end of summer time. Three are too many.
	for found, want := range map[string]bool{"2026-10-25T02:00:00.000000": true, "2026-10-25T03:00:00.000000": true, "2026-10-25T06:00:00.000000": false} {
		z := zones{lead: time.Second}
		if d := z.difference("2026-10-25T00:00:00.000000", "2026-10-25T02:00:00.000000"); d != "" {
			t.Fatal(d)
		}
		if d := z.difference("2026-10-25T01:00:00.000000", found); (d == "") != want {
			t.Errorf("%s: %q", found, d)
		}
	}
	// A long lead leaves many zones, all of which stay possible.
	z := zones{lead: 8 * time.Hour}
	for _, found := range []string{"2026-10-25T08:00:00.000000", "2026-10-25T00:00:00.000000"} {
		if d := z.difference("2026-10-25T00:00:00.000000", found); d != "" {
			t.Error(d)
		}
	}
}

func figuresEvidence(t *testing.T, v *attest.Verification) string {
	t.Helper()
	for _, c := range v.Checks {
		if c.Name == checkFigures {
			return c.Evidence
		}
	}
	t.Fatal("there is no check of figures")
	return ""
}

// resigned changes one file of a run, gives the record its digest, and signs the result with the right key.
func resigned(t *testing.T, l Layout, out *Outcome, file string, tell func([]byte) []byte) *attest.Verification {
	t.Helper()
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if err := os.CopyFS(run, os.DirFS(out.Run)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(run, filepath.FromSlash(file))
	before, _ := os.ReadFile(path) // one of them is new
	after := tell(before)
	if bytes.Equal(before, after) {
		t.Fatalf("%s is not changed", file)
	}
	if err := os.WriteFile(path, after, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(run, RecordName))
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fileOf(run, file)
	if err != nil {
		t.Fatal(err)
	}
	files := []record.File{f}
	for _, old := range r.Files {
		if old.Name != file {
			files = append(files, old)
		}
	}
	r.Files = sortFiles(files)
	if b, err = r.Canonical(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, RecordName), b, 0o644); err != nil {
		t.Fatal(err)
	}
	key, err := attest.LoadPrivate(l.PrivateKey(), func() ([]byte, error) { return []byte{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "archive")
	if _, err := writeArchive(context.Background(), AttestOptions{Run: run, Manifest: l.Manifest(), Archive: archive, Key: key}, nil); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(context.Background(), archive, []attest.PublicKey{key.Public()}, attest.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
