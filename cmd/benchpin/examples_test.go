package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// exampleOrder is the order in which the examples of all commands build on each other's files.
var exampleOrder = []string{
	"version", "workload list", "workload show", "workload check", "plan", "key generate", "data generate", "data pin", "data verify", "data certify",
	"data diff", "data lineage", "data prove", "data check-proof", "run", "preregister", "compare", "explain", "transcript expected", "transcript check", "attest", "pipeline", "report", "verify",
	"export croissant", "export ro-crate", "export model-signing", "push", "pull", "attach", "referrers", "replay",
	"audit challenge", "audit answer", "audit check", "journal show", "journal check", "dlio", "dlio-query",
}

// TestExamplesRun runs the example of every command's help, line by line, in one folder, as a shell would.
func TestExamplesRun(t *testing.T) {
	t.Chdir(t.TempDir())
	host := newRegistry(t.Cleanup)
	root := newApp().rootCommand()
	examples := map[string]string{}
	collectExamples(t, root, examples)
	for _, name := range exampleOrder {
		example, ok := examples[name]
		if !ok {
			t.Errorf("there is no command %q with an example", name)
		}
		delete(examples, name)
		// The registry of the examples is one that this test starts.
		example = strings.ReplaceAll(example, "localhost:5000", host)
		for _, line := range strings.Split(example, "\n") {
			runExample(t, strings.TrimSpace(line))
		}
	}
	for name := range examples {
		t.Errorf("the example of %q is not among those that are run", name)
	}
}

// collectExamples finds the examples of all commands of ours below cmd; one without an example is an error.
func collectExamples(t *testing.T, cmd *cobra.Command, into map[string]string) {
	for _, sub := range cmd.Commands() {
		switch {
		case sub.Name() == "completion" || sub.Name() == "help":
		case sub.HasSubCommands():
			collectExamples(t, sub, into)
		default:
			name := strings.TrimPrefix(sub.CommandPath(), "benchpin ")
			if sub.Example == "" {
				t.Errorf("%q has no example in its help", name)
			}
			into[name] = sub.Example
		}
	}
}

// runExample carries out one line: NAME=VALUE words, then the program and its arguments.
func runExample(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	for i, word := range words {
		words[i] = strings.Trim(word, "'") // no example quotes a blank
	}
	environment := map[string]string{}
	for len(words) > 0 && strings.Contains(words[0], "=") {
		name, value, _ := strings.Cut(words[0], "=")
		environment[name], words = value, words[1:]
	}
	if len(words) == 0 || words[0] != "benchpin" {
		t.Fatalf("example %q does not begin with benchpin", line)
	}
	// A folder that an earlier example made is made again by this one where results are never overwritten.
	for i, word := range words {
		if word == "--out" && i+1 < len(words) && words[1] == "run" {
			if err := os.RemoveAll(filepath.Clean(words[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if words[1] == "key" {
		for _, old := range []string{"me.key", "me.pub"} {
			if err := os.RemoveAll(old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if words[1] == "attach" {
		bundleOf(t, "demo/archive", words[len(words)-1])
	}
	var stdout, stderr bytes.Buffer
	a := newApp()
	a.stdout, a.stderr, a.terminal, a.color = &stdout, &stderr, false, false
	a.lookupenv = func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}
	if code := a.run(context.Background(), words[1:]); code != exitDone {
		t.Fatalf("example %q: exit code %d\n%s%s", line, code, stderr.String(), stdout.String())
	}
	if stdout.Len() == 0 && words[1] != "key" && words[1] != "data" {
		t.Errorf("example %q printed nothing", line)
	}
}

// bundleOf copies a bundle of an archive to a file, as somebody would hand one on.
func bundleOf(t *testing.T, archive, to string) {
	t.Helper()
	l, err := oci.Read(t.Context(), archive)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := l.Bundles[0].Blob.Bytes(oci.MaxBundleBytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o666); err != nil {
		t.Fatal(err)
	}
}
