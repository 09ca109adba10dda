package manifest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
)

const example = vectors + "/example"

// block returns the fenced block of one language in the format's specification.
func block(t *testing.T, language string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/manifest.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n```"+language+"\n")
	text, _, end := strings.Cut(rest, "```\n")
	if !ok || !end {
		t.Fatalf("docs/manifest.md has no %s block", language)
	}
	return text
}

// TestDocumentedExample reads the example of the specification, pins its data again, and finds what the page says.
func TestDocumentedExample(t *testing.T) {
	m, err := Open(example + "/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	es, err := m.list()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.HeaderBytes()); got != block(t, "json") {
		t.Errorf("the header differs from the page: %s", got)
	}
	var lines string
	hashes := map[string]string{"manifest": hexOf(m.Digest().String()), "root": hexOf(string(m.Header().Root))}
	var leaves [3][32]byte
	for i, e := range es {
		line := e.AppendLine(nil)
		lines += string(line) + "\n"
		hashes[e.Path] = hexOf(FormatDigest(e.Digest).String())
		leaves[i] = LeafHash(line)
		hashes["leaf"+string(rune('0'+i))] = hexOf(FormatDigest(leaves[i]).String())
	}
	if lines != block(t, "jsonl") {
		t.Errorf("the lines differ from the page:\n%s", lines)
	}
	node := NodeHash(leaves[0], leaves[1])
	hashes["node"] = hexOf(FormatDigest(node).String())
	if got := FormatDigest(NodeHash(node, leaves[2])); got != m.Header().Root {
		t.Errorf("root by hand %s, expected %s", got, m.Header().Root)
	}
	f := m.Header().Frames[0]
	hashes["frame"], hashes["plain_frame"] = hexOf(string(f.Digest)), hexOf(string(f.PlainDigest))
	before, _, _ := strings.Cut(string(m.HeaderBytes()), `,"header_digest"`)
	hashes["header_digest"] = hexOf(FormatDigest(blake3Sum([]byte(before))).String())
	printed := strings.Split(strings.TrimSpace(block(t, "text")), "\n")
	for _, l := range printed {
		name, hash, _ := strings.Cut(l, " ")
		if hashes[name] != hash {
			t.Errorf("%s: the page says %s, expected %s", name, hash, hashes[name])
		}
	}
	if len(printed) != len(hashes) {
		t.Errorf("the page prints %d hashes, expected %d", len(printed), len(hashes))
	}

	st, err := store.NewFolder(example+"/data", store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(context.Background(), m, st, VerifyOptions{}); err != nil || r.Files != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if again := mustOpen(t, pin(t, st, 2)); again.Header().Root != m.Header().Root {
		t.Errorf("pinned again: root %s, expected %s", again.Header().Root, m.Header().Root)
	}
}

func hexOf(s string) string { return strings.TrimPrefix(s, "blake3:") }

// TestDocumentedCommands runs the commands of the specification, which know nothing of this package.
func TestDocumentedCommands(t *testing.T) {
	for _, p := range []string{"bash", "b3sum", "zstdcat", "sed"} {
		needPeer(t, p)
	}
	cmd := exec.Command("bash", "-eu", "-c", block(t, "bash"))
	cmd.Dir = example
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != block(t, "text") {
		t.Errorf("the page says\n%sthe commands print\n%s%v", block(t, "text"), out, err)
	}
}
