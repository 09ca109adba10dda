package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/compare"
	"github.com/benchpin/benchpin/pkg/record"
)

// compare makes the items that the replay's run gives.
func (r *replay) compare(ctx context.Context) error {
	was, is := r.v.Record, r.out.Record
	if !r.haveItem(itemData) {
		r.dataHeld() // by the run
	}
	var f *fault.Fault
	if !reflect.DeepEqual(was.Transcript, is.Transcript) {
		f = differs("transcript", difference(was.Transcript, is.Transcript))
	}
	r.scheduleItem(f, "read again")
	r.checkpointsItem(was, is)
	r.toolItem(was.Tool, is.Tool)
	r.environmentItem(was.Environment, is.Environment)
	return r.performanceItem(ctx, was, is)
}

// checkpointsItem compares names, sizes and digests of checkpoints, those read back included.
func (r *replay) checkpointsItem(was, is *record.Record) {
	a, b := was.Checkpoints, is.Checkpoints
	if len(a.Saves)+len(a.Loads)+len(b.Saves)+len(b.Loads) == 0 {
		r.item(itemCheckpoints, attest.ReplayAbsent, "the workload writes none")
		return
	}
	if len(a.Saves) != len(b.Saves) || len(a.Loads) != len(b.Loads) {
		r.item(itemCheckpoints, attest.ReplayDiffers, "expected %d written and %d read back, found %d and %d", len(a.Saves), len(a.Loads), len(b.Saves), len(b.Loads))
		return
	}
	for i, s := range a.Saves {
		expected := record.Checkpoint{Name: s.Name, Epoch: s.Epoch, Step: s.Step, Bytes: s.Bytes, Digest: s.Digest}
		s = b.Saves[i]
		if found := (record.Checkpoint{Name: s.Name, Epoch: s.Epoch, Step: s.Step, Bytes: s.Bytes, Digest: s.Digest}); !reflect.DeepEqual(expected, found) {
			r.item(itemCheckpoints, attest.ReplayDiffers, "%s: %s", expected.Name, difference(expected, found))
			return
		}
	}
	for i, l := range a.Loads {
		expected := record.CheckpointLoad{Name: l.Name, Epoch: l.Epoch, Step: l.Step, Bytes: l.Bytes, Verified: l.Verified}
		l = b.Loads[i]
		if found := (record.CheckpointLoad{Name: l.Name, Epoch: l.Epoch, Step: l.Step, Bytes: l.Bytes, Verified: l.Verified}); !reflect.DeepEqual(expected, found) {
			r.item(itemCheckpoints, attest.ReplayDiffers, "%s, read back: %s", expected.Name, difference(expected, found))
			return
		}
	}
	r.item(itemCheckpoints, attest.ReplaySame, "%s, every byte", counted(len(a.Saves), "checkpoint"))
}

// toolItem says how the programs differ.
func (r *replay) toolItem(was, is record.Tool) {
	var different []string
	for _, part := range []struct{ name, was, is string }{
		{"version", was.Version, is.Version},
		{"commit", was.Commit, is.Commit},
		{"changed source", fmt.Sprint(was.Modified), fmt.Sprint(is.Modified)},
		{"Go", was.Go, is.Go},
		{"platform", was.Platform, is.Platform},
		{"binary", was.Binary, is.Binary},
	} {
		if part.was != part.is {
			different = append(different, fmt.Sprintf("%s %s, was %s", part.name, cmp.Or(part.is, "unknown"), cmp.Or(part.was, "unknown")))
		}
	}
	if n := differentModules(was.Modules, is.Modules); n > 0 {
		different = append(different, counted(n, "module"))
	}
	if len(different) == 0 {
		r.item(itemTool, attest.ReplaySame, "%s %s, commit %s, binary %s", was.Name, was.Version, cmp.Or(was.Commit, "unknown"), was.Binary)
		return
	}
	r.item(itemTool, attest.ReplayDiffers, "%s", strings.Join(different, "; "))
}

func differentModules(was, is []record.Module) int {
	a, b := map[record.Module]bool{}, map[string]bool{}
	for _, m := range was {
		a[m] = true
	}
	for _, m := range is {
		if !a[m] {
			b[m.Path] = true
		}
		delete(a, m)
	}
	for m := range a {
		b[m.Path] = true
	}
	return len(b)
}

// changing are the fields of the environment that are others at every look, or are no property of the machine.
var changing = []string{"class", "redacted", "memory.available_bytes", "memory.swap_free_bytes", "load.", "unknown."}

// mostFields is how many fields of the environment are written out.
const mostFields = 8

// environmentItem lists how the machines differ.
func (r *replay) environmentItem(was, is record.Environment) {
	a, b := fieldsOf(was), fieldsOf(is)
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	var different []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		x, y := a[key], b[key]
		hidden := func(s string) bool { return s == `"`+record.RedactedText+`"` }
		if x == y || hidden(x) || hidden(y) || strings.HasSuffix(key, ".free_bytes") ||
			slices.ContainsFunc(changing, func(c string) bool { return key == c || strings.HasPrefix(key, c) && strings.HasSuffix(c, ".") }) {
			continue
		}
		different = append(different, fmt.Sprintf("%s %s, was %s", key, cmp.Or(y, "nothing"), cmp.Or(x, "nothing")))
	}
	if len(different) == 0 {
		r.item(itemEnvironment, attest.ReplaySame, "%s, kernel %s; nothing differs that is recorded and stays", was.CPU.Model, was.Host.Kernel)
		return
	}
	n := len(different)
	if n > mostFields {
		different = append(different[:mostFields], fmt.Sprintf("%d more", n-mostFields))
	}
	r.item(itemEnvironment, attest.ReplayDiffers, "%s: %s", counted(n, "field"), strings.Join(different, "; "))
}

// fieldsOf are the values of a document by the paths of their names, each as JSON. Folders go by their role.
func fieldsOf(v any) map[string]string {
	all := map[string]string{}
	b, err := json.Marshal(v)
	if err != nil {
		return all
	}
	var tree any
	if json.Unmarshal(b, &tree) != nil {
		return all
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		join := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				walk(join(name), inner)
			}
		case []any:
			for i, inner := range v {
				name := fmt.Sprint(i)
				if m, ok := inner.(map[string]any); ok {
					if role, ok := m["role"].(string); ok {
						name = role
					}
				}
				walk(join(name), inner)
			}
		default:
			b, _ := json.Marshal(v)
			all[path] = string(b)
		}
	}
	walk("", tree)
	return all
}

// performanceItem compares the rates.
func (r *replay) performanceItem(ctx context.Context, was, is *record.Record) error {
	if was.Plan.Epochs == 0 {
		return r.checkpointRates(was, is)
	}
	from, to := int64(1), int64(math.MaxInt64)
	if r.plan != nil {
		p := r.plan.Params(false)
		from, to = p.ExcludeStart+1, p.StepsPerEpoch-p.ExcludeEnd
	}
	blob := r.v.File(StepsName)
	if blob == nil {
		r.item(itemPerformance, attest.ReplayUndecided, "the archive has no readable %s", StepsName)
		return nil
	}
	a, err := seriesOf(ctx, blob, blob.Size, from, to)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.item(itemPerformance, attest.ReplayUndecided, "%s of the archive: %v", StepsName, err)
		return nil
	}
	f, err := os.Open(filepath.Join(r.out.Folder, StepsName))
	if err != nil {
		return fmt.Errorf("step times: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("step times: %w", err)
	}
	b, err := seriesOf(ctx, f, info.Size(), from, to)
	if err != nil {
		return err
	}
	return r.rateItem("rate", a, b, auText(was.Metrics.AU, is.Metrics.AU))
}

func auText(was, is record.Figure) string {
	if was.Value == nil || is.Value == nil {
		return ""
	}
	return fmt.Sprintf("; AU %.2f %%, was %.2f %%", *is.Value, *was.Value)
}

func seriesOf(ctx context.Context, f io.ReaderAt, size, from, to int64) (compare.Series, error) {
	steps, err := stats.Open(f, size)
	if err != nil {
		return nil, err
	}
	defer steps.Close()
	return compare.Steps(ctx, steps, from, to)
}

// checkpointRates compares runs that do nothing but write and read checkpoints: by the seconds that each took on the slowest rank.
func (r *replay) checkpointRates(was, is *record.Record) error {
	series := func(rec *record.Record) compare.Series {
		var saves, loads []compare.Step
		for _, s := range rec.Checkpoints.Saves {
			saves = append(saves, compare.Step{Work: float64(s.Bytes), Seconds: longest(s.Seconds)})
		}
		for _, l := range rec.Checkpoints.Loads {
			loads = append(loads, compare.Step{Work: float64(l.Bytes), Seconds: longest(l.Seconds)})
		}
		return compare.Series{saves, loads}
	}
	return r.rateItem("rate of checkpoints", series(was), series(is), "")
}

func longest(seconds []float64) float64 {
	if len(seconds) == 0 {
		return 0
	}
	return slices.Max(seconds)
}

func (r *replay) rateItem(what string, a, b compare.Series, more string) error {
	e, err := compare.Ratio(a, b, compare.Options{})
	switch {
	case errors.Is(err, compare.ErrFew):
		r.item(itemPerformance, attest.ReplayUndecided, "%v%s", err, more)
		return nil
	case err != nil:
		return err
	}
	outcome := map[compare.Verdict]attest.ReplayOutcome{
		compare.Within: attest.ReplayWithin, compare.Outside: attest.ReplayOutside, compare.Undecided: attest.ReplayUndecided,
	}[e.Against(r.Tolerance)]
	r.item(itemPerformance, outcome, "%s %.3f times the original's (95 %%: %.3f to %.3f by the noise between steps), tolerance %g %%%s", what, e.Value, e.Low,
		e.High, 100*r.Tolerance, more)
	return nil
}
