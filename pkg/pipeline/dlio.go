package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/workload"
)

// DLIOConfigFolder is the folder below a run folder that holds the configuration as Hydra, DLIO's configuration framework, saves it,
// under the name that MLPerf Storage gives it.
const DLIOConfigFolder = "dlio_config"

// mostListedRanks is how many ranks' files of DLIO are listed in a record, two for each: an archive has a limit of layers. Of runs with
// more, they stand in the run folder and are not part of the result; all of what is in them is in the record and the step times.
const mostListedRanks = 256

// DLIOConfig is how a run was asked for, for the files that Hydra would save beside it.
type DLIOConfig struct {
	// Workload is the name by which the workload was chosen, and From the folder that it was found in.
	Workload, From string
	// Task and Hydra are the overrides as they were given: of the workload, and of Hydra's own settings.
	Task, Hydra []string
	// Subfolder is where the files go below the run folder; "" is DLIOConfigFolder.
	Subfolder string
	// Redact leaves absolute paths out.
	Redact bool
}

// WriteDLIOConfig writes config.yaml (the workload with its overrides), overrides.yaml and hydra.yaml below a run folder. It returns
// their names there.
func WriteDLIOConfig(out string, w *workload.Resolved, c DLIOConfig) ([]string, error) {
	folder := path.Clean(filepath.ToSlash(cmp.Or(c.Subfolder, DLIOConfigFolder)))
	if !record.PlainName(folder) {
		return nil, fmt.Errorf("folder %q for the configuration: expected a relative path below the run folder", c.Subfolder)
	}
	c.Workload = cmp.Or(c.Workload, w.Name)
	if c.Task == nil {
		c.Task = append([]string{"workload=" + c.Workload}, w.Overrides...)
	}
	if err := os.MkdirAll(filepath.Join(out, filepath.FromSlash(folder)), 0o777); err != nil {
		return nil, fmt.Errorf("folder for the configuration: %w", err)
	}
	var names []string
	for _, f := range []struct {
		name    string
		content []byte
	}{{"config.yaml", w.Composed}, {"hydra.yaml", c.HydraYAML(out)}, {"overrides.yaml", yamlList("", c.Task)}} {
		name := folder + "/" + f.name
		if err := writeFile(filepath.Join(out, filepath.FromSlash(name)), f.content); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// HydraYAML is hydra.yaml for a run folder: the parts of it that say something about the run, in the form of Hydra 1.3.
func (c DLIOConfig) HydraYAML(out string) []byte {
	absolute := func(p string) string {
		if c.Redact {
			return record.RedactedText
		}
		if a, err := filepath.Abs(p); err == nil {
			return a
		}
		return p
	}
	var b strings.Builder
	dir := out
	if filepath.IsAbs(out) {
		dir = absolute(out)
	}
	b.WriteString("hydra:\n  run:\n    dir: " + yamlText(dir) + "\n  output_subdir: " + yamlText(cmp.Or(c.Subfolder, DLIOConfigFolder)) + "\n  overrides:\n    hydra:")
	b.Write(yamlNested("    ", c.Hydra))
	b.WriteString("    task:")
	b.Write(yamlNested("    ", c.Task))
	b.WriteString("  job:\n    name: dlio_benchmark\n    override_dirname: " + yamlText(strings.Join(c.Task, ",")) +
		"\n    config_name: config\n  runtime:\n    version: 1.3.2\n    version_base: '1.3'\n    cwd: " + yamlText(absolute(".")) +
		"\n    output_dir: " + yamlText(absolute(out)) + "\n    choices:\n      workload: " + yamlText(c.Workload) + "\n")
	if c.From != "" {
		b.WriteString("    config_sources:\n    - path: " + yamlText(absolute(c.From)) + "\n      schema: file\n      provider: command-line\n")
	}
	return []byte(b.String())
}

// yamlNested is a list behind its key.
func yamlNested(indent string, list []string) []byte {
	if len(list) == 0 {
		return []byte(" []\n")
	}
	return append([]byte("\n"), yamlList(indent, list)...)
}

func yamlList(indent string, list []string) []byte {
	if len(list) == 0 {
		return []byte(indent + "[]\n")
	}
	var b strings.Builder
	for _, s := range list {
		b.WriteString(indent + "- " + yamlText(s) + "\n")
	}
	return []byte(b.String())
}

// yamlText writes a text in double quotes; the escapes that Go uses are YAML's too.
func yamlText(s string) string { return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD")) }

// dlioFiles writes DLIO's files of the run and its configuration into the run folder, and returns those that belong to the record.
func (r *run) dlioFiles(rec *record.Record, result *bench.Result) ([]record.File, error) {
	config := r.DLIO
	config.Redact = r.Redact
	names, err := WriteDLIOConfig(r.Out, r.Workload, config)
	if err != nil {
		return nil, err
	}
	var files []record.File
	for _, name := range names {
		f, err := fileOf(r.Out, name)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	clock := result.Clock
	if clock.IsZero() {
		clock = result.Started
	}
	listed := rec.Plan.Accelerators <= mostListedRanks
	steps := r.dlioSteps
	if bench.CheckpointOnly(r.w) {
		steps = nil
	}
	err = report.DLIO(report.DLIORun{
		Record: rec, Clock: clock.In(time.Local), Steps: steps, CPUInfo: r.cpuInfo, MemInfo: r.memInfo, LogName: r.w.Output.LogFile,
	}, func(name string) (io.WriteCloser, error) {
		return newRunFile(r.Out, name, func(f record.File) {
			if listed || f.Name == report.DLIOSummaryName || f.Name == r.w.Output.LogFile {
				files = append(files, f)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}

// dlioSteps yields the steps of training, and then those of evaluation.
func (r *run) dlioSteps(yield func(*report.DLIOStep) error) error {
	for _, name := range r.timesNames() {
		if err := r.dlioStepsOf(name, yield); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (r *run) dlioStepsOf(name string, yield func(*report.DLIOStep) error) error {
	f, err := os.Open(filepath.Join(r.Out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return eachStep(f, info.Size(), r.plan, name == EvalStepsName, yield)
}

// runFile is a new file of the run folder that is hashed while it is written, and there whole or not at all.
type runFile struct {
	f    *os.File
	h    hash.Hash
	n    int64
	path string
	name string
	done func(record.File)
	err  error
}

func newRunFile(dir, name string, done func(record.File)) (*runFile, error) {
	p := filepath.Join(dir, filepath.FromSlash(name))
	if !record.PlainName(name) || name == RecordName || name == StepsName || name == EvalStepsName {
		return nil, fmt.Errorf("file %q: expected the name of a new file in the run folder", name)
	}
	f, err := os.CreateTemp(dir, ".dlio-*")
	if err != nil {
		return nil, err
	}
	return &runFile{f: f, h: blake3.New(), path: p, name: name, done: done}, nil
}

func (f *runFile) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	f.h.Write(p[:n]) // never fails
	f.n += int64(n)
	f.err = errors.Join(f.err, err)
	return n, err
}

// Close gives the file its name, or removes it when a write failed.
func (f *runFile) Close() error {
	err := errors.Join(f.err, f.f.Chmod(0o644), f.f.Close())
	if err == nil {
		err = os.Rename(f.f.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.f.Name()))
	}
	f.done(record.File{Name: f.name, Size: record.Int(f.n), Blake3: manifest.FormatDigest([32]byte(f.h.Sum(nil))).String()})
	return nil
}

// procTable reads a table of /proc as DLIO does: lines with exactly one colon, the last of equal names counts. nil where there is none.
func procTable(name string) map[string]string {
	b, err := os.ReadFile(filepath.Join("/proc", name))
	if err != nil {
		return nil
	}
	t := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if strings.Count(line, ":") != 1 {
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); key != "processor" {
			t[key] = strings.TrimSpace(value)
		}
	}
	return t
}

// sortFiles brings the files of a record into their order.
func sortFiles(files []record.File) []record.File {
	slices.SortFunc(files, func(a, b record.File) int { return strings.Compare(a.Name, b.Name) })
	return files
}
