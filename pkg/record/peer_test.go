package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// peer returns the path of another program; where it is missing the test fails in CI and is skipped elsewhere.
func peer(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is needed: %v", name, err)
		}
		t.Skipf("%s is not installed: %v", name, err)
	}
	return path
}

// TestDocumentedCommands runs the commands that docs/record.md gives for checking a record without benchpin.
func TestDocumentedCommands(t *testing.T) {
	for _, name := range []string{"b3sum", "sed", "jq"} {
		peer(t, name)
	}
	doc, err := os.ReadFile("../../docs/record.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    \$ (.+)\n    (.+)$`).FindAllStringSubmatch(string(doc), -1)
	if len(commands) < 3 {
		t.Fatalf("docs/record.md has %d commands with output", len(commands))
	}
	r := sample()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "record.json"), mustCanonical(t, r), 0o644); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"canonical": strings.TrimPrefix(r.Workload.Digest, "blake3:"), ".dataset.root": r.Dataset.Root, "transcript": "true",
	}
	for _, c := range commands {
		cmd := exec.Command("/bin/sh", "-c", c[1])
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", c[1], err)
			continue
		}
		for part, result := range want {
			if strings.Contains(c[1], part) {
				delete(want, part)
				if got := strings.TrimSpace(string(out)); got != result {
					t.Errorf("%s printed %q, expected %q", c[1], got, result)
				}
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no command for %v", want)
	}
}
