package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
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
	r.scheduleItem(scheduleFault(was, is), "read again")
	r.checkpointsItem(was, is)
	r.toolItem(was.Tool, is.Tool)
	r.environmentItem(was.Environment, is.Environment)
	return r.performanceItem(ctx, was, is)
}

func scheduleFault(was, is *record.Record) *fault.Fault {
	if reflect.DeepEqual(was.Transcript, is.Transcript) {
		return nil
	}
	return differs("transcript", difference(was.Transcript, is.Transcript))
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
var changing = []string{"class", "redacted", "memory.available_bytes", "memory.swap_free_bytes", "load.", "unknown.",
	"buckets.data.traffic.", "buckets.checkpoints.traffic."}

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
		r.checkpointRates(was, is)
		return nil
	}
	window := compare.Window{From: 1, To: math.MaxInt64}
	if r.plan != nil {
		p := r.plan.Params(false)
		window = compare.WindowOf(p.StepsPerEpoch, p.ExcludeStart, p.ExcludeEnd)
	}
	blob := r.v.File(StepsName)
	if blob == nil {
		r.item(itemPerformance, attest.ReplayUndecided, "the archive has no readable %s", StepsName)
		return nil
	}
	a, err := seriesOf(ctx, blob, blob.Size, window)
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
	b, err := seriesOf(ctx, f, info.Size(), window)
	if err != nil {
		return err
	}
	more := ""
	if x, y := was.Metrics.AU.Value, is.Metrics.AU.Value; x != nil && y != nil {
		more = fmt.Sprintf("; AU %.2f %%, was %.2f %%", *y, *x)
	}
	e, err := compare.Ratio(a, b, compare.SamplesPerSecond, compare.Options{})
	if err != nil {
		r.item(itemPerformance, attest.ReplayUndecided, "%v%s", err, more)
		return nil
	}
	outcome := map[compare.Verdict]attest.ReplayOutcome{
		compare.Within: attest.ReplayWithin, compare.Outside: attest.ReplayOutside, compare.Undecided: attest.ReplayUndecided,
	}[e.Against(r.Tolerance)]
	r.item(itemPerformance, outcome, "%.3f times the original's rate (95 %%: %.3f to %.3f, by the noise between steps), tolerance %g %%%s", e.Value, e.Low,
		e.High, 100*r.Tolerance, more)
	return nil
}

func seriesOf(ctx context.Context, f io.ReaderAt, size int64, w compare.Window) (*compare.Series, error) {
	steps, err := stats.Open(f, size)
	if err != nil {
		return nil, err
	}
	defer steps.Close()
	return compare.Read(ctx, steps, w)
}

// checkpointRates compares runs that do nothing but write and read checkpoints: the rates of both.
func (r *replay) checkpointRates(was, is *record.Record) {
	var parts []string
	outcome := attest.ReplayWithin
	for _, c := range compare.CheckpointRates(was, is, compare.Options{}) {
		what := "written"
		if c.Load {
			what = "read back"
		}
		if c.Err != nil {
			if outcome == attest.ReplayWithin {
				outcome = attest.ReplayUndecided
			}
			parts = append(parts, fmt.Sprintf("%s: %v", what, c.Err))
			continue
		}
		e := c.Estimate
		switch v := e.Against(r.Tolerance); {
		case v == compare.Outside:
			outcome = attest.ReplayOutside
		case v == compare.Undecided && outcome == attest.ReplayWithin:
			outcome = attest.ReplayUndecided
		}
		parts = append(parts, fmt.Sprintf("%s at %.3f times the original's rate (95 %%: %.3f to %.3f, by the noise between checkpoints)", what, e.Value, e.Low, e.High))
	}
	if len(parts) == 0 {
		outcome, parts = attest.ReplayUndecided, []string{"no checkpoint took any time"}
	}
	r.item(itemPerformance, outcome, "%s; tolerance %g %%", strings.Join(parts, "; "), 100*r.Tolerance)
}
