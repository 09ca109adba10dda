package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/workload"
)

// dlioArguments is DLIO's command line, which is Hydra's.
type dlioArguments struct {
	// workload is the workload that was chosen, "default" where none is.
	workload string
	// task and hydra are the overrides, as given; task has the choice of the workload among them.
	task, hydra []string
	// runDir and subfolder are hydra.run.dir and hydra.output_subdir.
	runDir, subfolder string
	// folders are those that workloads are looked for in, before those that are built in.
	folders []string
	// show is what --cfg asks for: "job", "hydra" or "all".
	show          string
	help, version bool
	// own are flags of benchpin itself.
	own []string
}

// dlioDefaultDir is where DLIO's configuration puts results.
const dlioDefaultDir = "./hydra_log/${workload.model.name}/${now:%Y-%m-%d}-${now:%H-%M-%S}"

// hydraFlag finds a flag of Hydra by its long form, --config-dir, or its short one, -cd. takes is true where it has a value, which may
// stand behind = or be the next argument.
func hydraFlag(arg string) (long string, takes bool) {
	for _, f := range []struct {
		long, short string
		takes       bool
	}{
		{"help", "h", false}, {"hydra-help", "", false}, {"version", "", false}, {"cfg", "c", true}, {"resolve", "", false}, {"package", "p", true},
		{"run", "r", false}, {"multirun", "m", false}, {"shell-completion", "sc", false}, {"config-path", "cp", true}, {"config-name", "cn", true},
		{"config-dir", "cd", true}, {"experimental-rerun", "", true}, {"info", "i", false},
	} {
		if arg == "--"+f.long || f.short != "" && arg == "-"+f.short {
			return f.long, f.takes
		}
	}
	return "", false
}

// parseDLIO reads the command line of dlio_benchmark.
func parseDLIO(args []string) (*dlioArguments, error) {
	d := &dlioArguments{workload: "default", runDir: dlioDefaultDir}
	chosen := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if strings.HasPrefix(arg, "-") && arg != "-" {
			n, err := d.flag(args[i:])
			if err != nil {
				return nil, err
			}
			i += n
			continue
		}
		key, value, hasValue := strings.Cut(strings.TrimLeft(arg, "+~"), "=")
		switch {
		case key == "workload" && hasValue:
			if strings.HasPrefix(arg, "~") || strings.Contains(value, ",") || value == "" {
				return nil, usagef("%s: expected workload=NAME", arg)
			}
			if chosen {
				return nil, usagef("%s: a second workload, after %s", arg, d.workload)
			}
			d.workload, chosen = unquoted(value), true
			d.task = append(d.task, arg)
		case strings.HasPrefix(key, "hydra.") && hasValue:
			d.hydra = append(d.hydra, arg)
			switch key {
			case "hydra.run.dir":
				d.runDir = unquoted(value)
			case "hydra.output_subdir":
				d.subfolder = unquoted(value)
			}
		default:
			d.task = append(d.task, arg)
		}
	}
	return d, nil
}

// flag takes the flag at the beginning of args, and returns how many more arguments belong to it.
func (d *dlioArguments) flag(args []string) (more int, err error) {
	name, value, inline := strings.Cut(args[0], "=")
	long, takes := hydraFlag(name)
	if takes && !inline {
		if len(args) < 2 {
			return 0, usagef("%s: expected a value", args[0])
		}
		value, more = args[1], 1
	}
	switch long {
	case "help", "hydra-help":
		d.help = true
	case "version":
		d.version = true
	case "cfg":
		if value != "job" && value != "hydra" && value != "all" {
			return 0, usagef("--cfg %s: expected job, hydra or all", value)
		}
		d.show = value
	case "config-dir", "config-path":
		d.folders = append(d.folders, value)
	case "config-name":
		if strings.TrimSuffix(value, ".yaml") != "config" {
			return 0, usagef("--config-name %s: a primary configuration of another name is not read; choose the workload with workload=NAME", value)
		}
	case "run", "resolve":
	case "multirun", "package", "shell-completion", "experimental-rerun", "info":
		return 0, usagef("--%s is a feature of Hydra that is not there; start the program once for each run, and see --cfg job for the configuration", long)
	default:
		// A flag of benchpin's own, such as --accelerators 4: taken as --name VALUE or --name=VALUE.
		d.own = append(d.own, args[0])
		if !inline && len(args) > 1 && name != "--redact" && name != "--overwrite-checkpoints" && !strings.HasPrefix(args[1], "-") {
			d.own, more = append(d.own, args[1]), 1
		}
	}
	return more, nil
}

// unquoted takes the quotes off a value.
func unquoted(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// find reads the chosen workload: from the folders of the command line first, then from those that are built in. from is the folder
// that it was found in, "" for the latter.
func (d *dlioArguments) find() (src workload.Source, from string, err error) {
	name := strings.TrimSuffix(d.workload, ".yaml")
	var looked []string
	for _, folder := range d.folders {
		file := filepath.Join(folder, "workload", filepath.FromSlash(name)+".yaml")
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			looked = append(looked, file)
			continue
		}
		src, err := workload.Find(file)
		return src, folder, err
	}
	names, err := workload.List()
	if err != nil {
		return src, "", err
	}
	if slices.Contains(names, name) {
		src, err = workload.Find(name)
		return src, "", err
	}
	hint := "give a folder that holds workload/NAME.yaml with --config-dir"
	if len(looked) > 0 {
		hint = "looked for at " + strings.Join(looked, ", ")
	}
	return src, "", usagef("workload=%s: there is no such workload: %s; \"benchpin workload list\" names those that are built in", d.workload, hint)
}

// folder is the folder of results: hydra.run.dir, or where the command line names none the workload's output.folder, or the fallback, with ${now:...} and
// ${workload....} replaced.
func (d *dlioArguments) folder(w *workload.Resolved, fallback string, now time.Time) (string, error) {
	dir := d.runDir
	if dir == dlioDefaultDir {
		dir = cmp.Or(w.Workload.Output.Folder, fallback, dir)
	}
	for {
		start := strings.Index(dir, "${")
		if start < 0 {
			return filepath.Clean(dir), nil
		}
		length := strings.Index(dir[start:], "}")
		if length < 0 {
			return "", usagef("hydra.run.dir=%s: ${ is not closed", dir)
		}
		name := dir[start+2 : start+length]
		var value string
		if form, ok := strings.CutPrefix(name, "now:"); ok {
			value = strftime(form, now)
		} else if v, ok := lookup(w, strings.TrimPrefix(name, "workload.")); ok && strings.HasPrefix(name, "workload.") {
			value = pythonText(v)
		} else {
			return "", usagef("hydra.run.dir=%s: ${%s} is not known; ${now:%%Y-%%m-%%d} and ${workload.section.key} are", dir, name)
		}
		if strings.Contains(value, "${") {
			return "", usagef("hydra.run.dir=%s: ${%s} holds ${", dir, name)
		}
		dir = dir[:start] + value + dir[start+length+1:]
	}
}

// strftime writes a time in the form of C's function of that name, as far as names of folders need it.
func strftime(form string, t time.Time) string {
	return strings.NewReplacer("%Y", t.Format("2006"), "%y", t.Format("06"), "%m", t.Format("01"), "%d", t.Format("02"), "%H", t.Format("15"),
		"%M", t.Format("04"), "%S", t.Format("05"), "%j", t.Format("002"), "%f", t.Format("000000"), "%%", "%").Replace(form)
}
