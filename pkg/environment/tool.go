package environment

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/record"
)

// Tool says which program is running: its version and revision, the modules linked into it with their go.sum digests, and the
// BLAKE3 digest of its executable file, which is read for it.
//
// version and commit are what the build passed to the linker (-ldflags -X), "" where it passed nothing; then they are what the Go
// toolchain recorded. It records no revision for "go run" and with -buildvcs=false: the commit is "" then. A commit that ends in
// "-dirty" or "+dirty" is one with changes. An error means that the executable cannot be read.
func Tool(version, commit string) (record.Tool, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	t := describe(info, version, commit)
	sum, err := executableDigest()
	if err != nil {
		return record.Tool{}, err
	}
	t.Binary = sum
	return t, nil
}

func describe(info *debug.BuildInfo, version, commit string) record.Tool {
	t := record.Tool{
		Name: "benchpin", Version: cmp.Or(version, info.Main.Version, "(devel)"), Commit: commit, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Modules: []record.Module{},
	}
	for _, suffix := range []string{"-dirty", "+dirty"} {
		if clean, ok := strings.CutSuffix(t.Commit, suffix); ok {
			t.Commit, t.Modified = clean, true
		}
	}
	var revision string
	var modified bool
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if t.Commit == "" {
		t.Commit = revision
	}
	// What the toolchain saw of the source holds for the commit that the build named, when it is the same.
	if t.Commit != "" && t.Commit == revision {
		t.Modified = t.Modified || modified
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			// The replacement is what was linked.
			m = m.Replace
		}
		t.Modules = append(t.Modules, record.Module{Path: m.Path, Version: m.Version, Sum: m.Sum})
	}
	slices.SortFunc(t.Modules, func(a, b record.Module) int { return cmp.Compare(a.Path, b.Path) })
	return t
}

// executableDigest hashes the file that runs. On Linux /proc/self/exe is that file even when its name was given to another.
func executableDigest() (string, error) {
	path := "/proc/self/exe"
	f, err := os.Open(path)
	if err != nil {
		if path, err = os.Executable(); err == nil {
			f, err = os.Open(path)
		}
	}
	if err != nil {
		return "", fmt.Errorf("finding the running executable, whose digest belongs into the record: %w", err)
	}
	defer f.Close()
	h := blake3.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 1<<20)); err != nil {
		return "", fmt.Errorf("reading the running executable %s for its digest: %w", path, err)
	}
	return fmt.Sprintf("blake3:%x", h.Sum(nil)), nil
}
