package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/workload"
)

func (a *app) dlioQueryCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "dlio-query [OPTION=VALUE...]",
		Short:   "Print one value of a workload, as dlio_benchmark_query does",
		GroupID: groupDLIO,
		Long: `Take dlio_benchmark_query's command line as it is and print the effective value of the key that workload.workflow.query names. As there,
a key that is unknown or whose value is empty, 0 or false gives None. A link to this program named dlio_benchmark_query does the same.`,
		Example:            "  benchpin dlio-query workload=quickstart ++workload.workflow.query=reader.batch_size",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parseDLIO(args)
			if err != nil {
				return err
			}
			if d.help {
				return cmd.Help()
			}
			if len(d.own) > 0 {
				return usagef("unknown flag %s", d.own[0])
			}
			w, _, err := a.loadDLIO(d, nil)
			if err != nil {
				return err
			}
			value, _ := lookup(w, w.Workload.Workflow.Query)
			a.printf("%s\n", pythonText(value))
			return nil
		},
	}
}

// lookup finds the value of a key of a workload, with its default filled in.
func lookup(w *workload.Resolved, key string) (any, bool) {
	if rest, ok := strings.CutPrefix(key, "data_reader."); ok {
		key = "reader." + rest
	}
	decoder := json.NewDecoder(bytes.NewReader(w.Canonical))
	decoder.UseNumber()
	var at any
	if err := decoder.Decode(&at); err != nil || key == "" {
		return nil, false
	}
	for name := range strings.SplitSeq(key, ".") {
		section, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = section[name]; !ok {
			return nil, false
		}
	}
	return at, true
}

// pythonText is how DLIO's query prints a value: Python's str, and None for what is false in Python.
func pythonText(v any) string {
	if t, ok := v.(map[string]any); ok && t["type"] == workload.TimeConstant {
		v = t["mean"]
	}
	switch s := pythonValue(v, false); s {
	case "", "0", "False", "[]", "{}":
		return "None"
	default:
		return s
	}
}

func pythonValue(v any, inside bool) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case json.Number:
		return v.String()
	case string:
		if inside {
			return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(v) + "'"
		}
		return v
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = pythonValue(v[i], true)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			items = append(items, pythonValue(k, true)+": "+pythonValue(v[k], true))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return ""
}
