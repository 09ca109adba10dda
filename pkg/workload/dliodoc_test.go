package workload

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestDLIOPage: docs/dlio.md says of every key that a workload may have, once and in the order of the key table, what is the same, what
// differs, or why it is refused; and what it says to have no effect is what the program says so of.
func TestDLIOPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "dlio.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+(?:\\.[a-z0-9_]+)*)` \\| (same|differs|refused|no effect|ours) \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1)
	var found, want []string
	for _, row := range rows {
		found = append(found, row[1])
	}
	for _, k := range Keys() {
		want = append(want, k.Path)
	}
	for _, k := range want {
		if !slices.Contains(found, k) {
			t.Errorf("docs/dlio.md says nothing about %s", k)
		}
	}
	if !t.Failed() && !slices.Equal(found, want) {
		t.Errorf("docs/dlio.md has %d rows for %d keys, or not in their order", len(found), len(want))
	}
	inert := map[string]bool{"workflow.profiling": true} // which the plan speaks of
	for _, k := range Keys() {
		inert[k.Path] = inert[k.Path] || k.Inert
	}
	for _, row := range rows {
		if (row[2] == "no effect") != inert[row[1]] {
			t.Errorf("docs/dlio.md says %q of %s; has no effect: %v", row[2], row[1], inert[row[1]])
		}
		if row[3] == "" && row[2] != "same" && row[2] != "ours" {
			t.Errorf("docs/dlio.md says %q of %s and not how or why", row[2], row[1])
		}
	}
}

// TestInert: keys without an effect are told where they are given a value of their own.
func TestInert(t *testing.T) {
	src := Source{Name: "x.yaml", Data: []byte("framework: pytorch\nreader: {pin_memory: true, dont_use_mmap: true}\nprofiling: {iostat_devices: []}\n")}
	r, err := Load(src, Options{Overrides: []string{"++workload.checkpoint.type=all_ranks", "++workload.train.epochs=2"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Inert(), []string{"reader.dont_use_mmap", "checkpoint.type"}; !slices.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
}
