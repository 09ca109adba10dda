package workload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"syscall"

	"github.com/benchpin/benchpin/workloads"
)

// extension is that of the workload files that come with benchpin.
const extension = ".yaml"

// List names the workloads that come with benchpin, sorted.
func List() ([]string, error) {
	entries, err := fs.ReadDir(workloads.FS, ".")
	if err != nil {
		return nil, fmt.Errorf("list the workloads that come with benchpin: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), extension); ok {
			names = append(names, name)
		}
	}
	sort.Strings(names) // files sort otherwise: NAME-mini.yaml is before NAME.yaml
	return names, nil
}

// Find reads a workload: one that comes with benchpin, by its name, or a file, by its path. A name without a slash and
// without the extension .yaml or .yml is looked up among the former first.
func Find(nameOrPath string) (Source, error) {
	ext := path.Ext(nameOrPath)
	isPath := strings.ContainsAny(nameOrPath, `/\`) || ext == ".yaml" || ext == ".yml"
	if !isPath {
		if data, err := fs.ReadFile(workloads.FS, nameOrPath+extension); err == nil {
			return Source{Name: nameOrPath + extension, Data: data}, nil
		}
	}
	// Opening a pipe would wait for somebody to write to it.
	f, err := os.OpenFile(nameOrPath, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if !isPath && errors.Is(err, fs.ErrNotExist) {
			return Source{}, unknownName(nameOrPath, err)
		}
		return Source{}, fmt.Errorf("read the workload: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading: nothing is lost
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return Source{}, fmt.Errorf("read the workload %s: expected a regular file", nameOrPath)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err != nil {
		return Source{}, fmt.Errorf("read the workload %s: %w", nameOrPath, err)
	}
	return Source{Name: nameOrPath, Data: data}, nil
}

// unknownName says which workloads there are.
func unknownName(name string, cause error) error {
	names, err := List()
	if err != nil {
		return err
	}
	hint := `"benchpin workload list" names those that come with it; or give the path of a file`
	if near := nearest(strings.ToLower(name), names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	msg := fmt.Sprintf("no workload is called %q, and there is no such file", clip(name))
	return &Error{Msg: msg, Hint: hint, Err: cause}
}
