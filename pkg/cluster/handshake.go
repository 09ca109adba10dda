package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrDisagree is wrapped by the error of a handshake in which processes did not agree.
var ErrDisagree = errors.New("the processes do not agree")

// ErrAgreed is wrapped by errors that all processes of a world have in common (World.Agree).
var ErrAgreed = errors.New("cluster: an error of all processes")

// maxNamed is how many differences or failures a message names.
const maxNamed = 20

// exchangeNodes makes the names of all nodes known to every process.
func (w *World) exchangeNodes(ctx context.Context) error {
	all, err := w.GatherBytes(ctx, []byte(w.node))
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = string(b)
	}
	doc, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if doc, err = w.BroadcastBytes(ctx, doc); err != nil {
		return err
	}
	var nodes []string
	if err := json.Unmarshal(doc, &nodes); err != nil || len(nodes) != w.size {
		err = fmt.Errorf("cluster: the list of nodes names %d, expected %d: %v", len(nodes), w.size, err)
		w.Abort(err)
		return err
	}
	w.nodes.Store(&nodes)
	return nil
}

// Handshake compares fields, each a name and what this process has there, with those of process 0. It returns nil when all have the
// same names and values. Else all processes get an error that wraps ErrDisagree and has the same text: every field in which a process
// differs, with the process, its host and both values; processes that share a value are named together. It does not end the world.
func (w *World) Handshake(ctx context.Context, fields map[string]string) error {
	var text string
	err := w.exchange(ctx, fields, func(all []map[string]string) string { return differences(all, w.NodeOf) }, &text)
	if err == nil && text != "" {
		err = fmt.Errorf("%w: %s", ErrDisagree, text)
	}
	return err
}

// Agree makes one error of those of all processes: nil when every one gave nil, else the same text in all of them, naming who failed and
// of what, and wrapping ErrAgreed and this process's own. It does not end the world: what failed may be tried in another way, by all.
func (w *World) Agree(ctx context.Context, err error) error {
	mine := map[string]string{}
	if err != nil {
		mine["error"] = Bounded(err.Error())
	}
	var text string
	if merr := w.exchange(ctx, mine, func(all []map[string]string) string { return failures(all, w.NodeOf) }, &text); merr != nil {
		return merr
	}
	switch {
	case text == "":
		return nil
	case w.size == 1:
		return err
	}
	return &agreed{text: text, own: err}
}

// agreed is an error that all processes have. It wraps the one of this process.
type agreed struct {
	text string
	own  error
}

func (a *agreed) Error() string { return a.text }
func (a *agreed) Unwrap() []error {
	if a.own == nil {
		return []error{ErrAgreed}
	}
	return []error{ErrAgreed, a.own}
}

// exchange brings the fields of all processes to process 0, and what judge says of them to all.
func (w *World) exchange(ctx context.Context, fields map[string]string, judge func(all []map[string]string) string, text *string) error {
	doc, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	docs, err := w.GatherBytes(ctx, doc)
	if err != nil {
		return err
	}
	var said []byte
	if w.rank == 0 {
		all := make([]map[string]string, len(docs))
		for r, d := range docs {
			if err := json.Unmarshal(d, &all[r]); err != nil {
				err = fmt.Errorf("cluster: the fields of process %d: %w", r, err)
				w.Abort(err)
				return err
			}
		}
		said = []byte(judge(all))
	}
	said, err = w.BroadcastBytes(ctx, said)
	*text = string(said)
	return err
}

// differences says in which fields which processes differ from process 0, in the order of fields.
func differences(all []map[string]string, node func(int) string) string {
	ranks := make([]int, len(all))
	for r := range all {
		ranks[r] = r
	}
	return list(differing(all, ranks, node))
}

// differing says in which fields which of some processes differ from the first of them, in the order of fields.
func differing(all []map[string]string, ranks []int, node func(int) string) (lines []string) {
	first := ranks[0]
	names := map[string]bool{}
	for _, r := range ranks {
		for name := range all[r] {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		groups := map[string][]int{} // what is found there, and where
		for _, r := range ranks {
			if value := valueOf(all[r], name); value != valueOf(all[first], name) {
				groups[value] = append(groups[value], r)
			}
		}
		for _, value := range slices.SortedFunc(maps.Keys(groups), func(a, b string) int { return groups[a][0] - groups[b][0] }) {
			lines = append(lines, fmt.Sprintf("%s: %s has %s, %s %s", name, processName(first, node(first)), valueOf(all[first], name),
				processNames(groups[value], node), value))
		}
	}
	return lines
}

// failures says which processes failed, of what.
func failures(all []map[string]string, node func(int) string) string {
	groups := map[string][]int{}
	for r, fields := range all {
		if text, failed := fields["error"]; failed {
			groups[text] = append(groups[text], r)
		}
	}
	var lines []string
	for _, text := range slices.SortedFunc(maps.Keys(groups), func(a, b string) int { return groups[a][0] - groups[b][0] }) {
		lines = append(lines, processNames(groups[text], node)+": "+text)
	}
	return list(lines)
}

// valueOf is what a message shows of a field: absent is a value too.
func valueOf(fields map[string]string, name string) string {
	value, there := fields[name]
	switch {
	case !there:
		return "none"
	case value == "":
		return `""`
	}
	return Bounded(value)
}

// processNames names some processes: each with its host, and after the first few how many more there are.
func processNames(ranks []int, node func(int) string) string {
	const few = 4
	var b strings.Builder
	for i, r := range ranks {
		if i == few {
			fmt.Fprintf(&b, " and %d more", len(ranks)-few)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(processName(r, node(r)))
	}
	return b.String()
}

// list joins the first lines, and says how many are left out.
func list(lines []string) string {
	if n := len(lines) - maxNamed; n > 0 {
		lines = append(lines[:maxNamed:maxNamed], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(lines, "\n  ")
}
