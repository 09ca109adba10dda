package attest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// archiveVector is an archive that must be refused, and why: the good archive (goodArchive) with some files changed. Like a vector's,
// its file is written once and read by every later version.
type archiveVector struct {
	// Why says what was altered, for people.
	Why string `json:"why"`
	// Class is the fault that verification must find, and Check the check that must find it; both are "" for the good archive alone.
	Class fault.Class `json:"class"`
	Check string      `json:"check"`
	// Key is the public key given to the verifier, Policy a policy document; "" stands for the good archive's key, and for no policy.
	Key    string `json:"key,omitempty"`
	Policy string `json:"policy,omitempty"`
	// Files are the files that differ from the good archive, as base64; null for one that is not there.
	Files map[string][]byte `json:"files"`
}

const (
	archiveVectorsFolder = "testdata/vectors/archive"
	goodArchive          = "good"
	archiveVectorsSeed   = "benchpin archive vectors"
)

func readArchiveVector(t testing.TB, name string) archiveVector {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(archiveVectorsFolder, name+".json"))
	must(t, err)
	return decodeVector[archiveVector](t, raw)
}

// decodeVector reads a vector, which has no field that nobody looks at.
func decodeVector[T any](t testing.TB, raw []byte) (v T) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	must(t, d.Decode(&v))
	return v
}

func encodeVector(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	must(t, e.Encode(v))
	return b.Bytes()
}

// writeVector writes the file of a vector that is not there yet.
func writeVector(t testing.TB, folder, name string, v any) {
	t.Helper()
	path := filepath.Join(folder, name+".json")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		must(t, os.WriteFile(path, encodeVector(t, v), 0o666))
	}
}

// layOut writes the files of an archive into a new folder.
func layOut(t testing.TB, content map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	must(t, os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o777))
	for name, b := range content {
		must(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), b, 0o666))
	}
	return dir
}

func contentOf(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	names, _ := files(t, dir)
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		content[filepath.ToSlash(name)] = raw
	}
	return content
}

// verify returns the verdict on the good archive with the vector's changes.
func (v *archiveVector) verify(t testing.TB, good map[string][]byte) *attest.Verification {
	t.Helper()
	content := maps.Clone(good)
	for name, b := range v.Files {
		if b == nil {
			delete(content, name)
		} else {
			content[name] = b
		}
	}
	key := seededKey(t, archiveVectorsSeed).Public()
	if v.Key != "" {
		var err error
		key, err = attest.ParsePublic([]byte(v.Key))
		must(t, err)
	}
	var p attest.Policy
	if v.Policy != "" {
		d, err := attest.ParsePolicy("vector", []byte(v.Policy))
		must(t, err)
		p = d.Policy
	}
	return verify(t, layOut(t, content), p, key)
}

// TestVectorsArchive verifies the archive of every file: each must be refused by the check and for the reason that it names.
func TestVectorsArchive(t *testing.T) {
	if *update {
		must(t, os.MkdirAll(archiveVectorsFolder, 0o777))
		content := contentOf(t, newArchive(t, newRun(t, nil), seededKey(t, archiveVectorsSeed)))
		writeVector(t, archiveVectorsFolder, goodArchive, archiveVector{Why: "a good archive", Files: content})
		for name, v := range archiveVectors(t) {
			writeVector(t, archiveVectorsFolder, name, v)
		}
	}
	good := readArchiveVector(t, goodArchive)
	none := archiveVector{}
	if v := none.verify(t, good.Files); !v.OK() {
		t.Fatalf("the good archive is refused:\n%s", describe(v))
	}
	paths, err := filepath.Glob(archiveVectorsFolder + "/*.json")
	must(t, err)
	made := archiveVectors(t)
	if len(paths) < 65 || len(paths) != len(made)+1 {
		t.Errorf("%d files, and %d vectors are made", len(paths)-1, len(made))
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if name == goodArchive {
			continue
		}
		t.Run(name, func(t *testing.T) {
			v := readArchiveVector(t, name)
			if v.Class == "" || v.Check == "" || v.Why == "" {
				t.Fatal("the vector does not say what must be found, or why")
			}
			if again, ok := made[name]; !ok || !bytes.Equal(encodeVector(t, again), encodeVector(t, v)) {
				t.Error("the vector is not made as its file says")
			}
			wantFault(t, v.verify(t, good.Files), v.Check, v.Class, "")
		})
	}
}
