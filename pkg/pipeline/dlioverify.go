package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/bench/stats"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/workload"
)

// mostCompared bounds a file of DLIO that is compared with what it must be; larger ones say nothing that the step times do not.
const mostCompared = 32 << 20

// dlioFile tells the names of DLIO's files of a run but its log, which the workload names.
var dlioFile = regexp.MustCompile(`^(?:summary\.json|(?:0|[1-9][0-9]*)_(?:output|per_epoch_stats)\.json)$`)

// dlioStamp finds timestamps.
var dlioStamp = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}`)

// dlioAgain writes DLIO's files again, from the record and the step times, and compares them with those of the archive: everything but
// the tables of /proc; timestamps but for the zone. config.yaml must resolve to the workload of the record and be what runs write of it, overrides.yaml and hydra.yaml tell its
// overrides. It returns how many files were compared.
func dlioAgain(ctx context.Context, v *attest.Verification, plan *bench.Plan) (n int, found []*fault.Fault) {
	written := map[string]bool{}
	lead := dlioLead(v.Record)
	differ := func(name, detail string) {
		found = append(found, fault.New(fault.RecordFile, "", detail).In(name))
	}
	w := plan.Workload()
	run := report.DLIORun{Record: v.Record, LogName: w.Output.LogFile, Steps: func(yield func(*report.DLIOStep) error) error {
		return archivedSteps(ctx, v, plan, yield)
	}}
	if started, err := time.Parse(time.RFC3339Nano, v.Record.Started); err == nil {
		run.Clock = started
	}
	err := report.DLIO(run, func(name string) (io.WriteCloser, error) {
		written[name] = true
		blob := v.File(name)
		if blob == nil || blob.Size > mostCompared {
			return discarded{io.Discard}, nil
		}
		n++
		return &compared{limit: 2 * mostCompared, done: func(expected []byte) {
			b, err := blob.Bytes(mostCompared)
			if err != nil {
				differ(name, err.Error())
			} else if detail := dlioDifference(expected, b, strings.HasSuffix(name, ".json"), lead); detail != "" {
				differ(name, detail)
			}
		}}, nil
	})
	if err != nil {
		found = append(found, fault.New(fault.Unchecked, "files", "DLIO's files cannot be written again: "+err.Error()).In(attest.TitleRecord))
	}
	for _, f := range v.Record.Files {
		switch {
		case dlioFile.MatchString(f.Name) && !written[f.Name]:
			differ(f.Name, "it does not belong to this run")
		case path.Base(f.Name) == "config.yaml":
			n++
			if detail := configDifference(v, f.Name); detail != "" {
				differ(f.Name, detail)
			}
		case path.Base(f.Name) == "overrides.yaml", path.Base(f.Name) == "hydra.yaml":
			n++
			if detail := overridesDifference(v, f.Name); detail != "" {
				differ(f.Name, detail)
			}
		}
	}
	return n, found
}

// archivedSteps yields the steps of the archive's files of step times.
func archivedSteps(ctx context.Context, v *attest.Verification, plan *bench.Plan, yield func(*report.DLIOStep) error) error {
	for _, name := range []string{StepsName, EvalStepsName} {
		f := v.File(name)
		if f == nil {
			continue
		}
		if err := eachStep(f, f.Size, plan, name == EvalStepsName, func(s *report.DLIOStep) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return yield(s)
		}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// eachStep yields the steps of one file of step times. In that of the evaluation, passes are counted instead of epochs.
func eachStep(f io.ReaderAt, size int64, plan *bench.Plan, eval bool, yield func(*report.DLIOStep) error) error {
	steps, err := stats.Open(f, size)
	if err != nil {
		return err
	}
	defer steps.Close()
	var d report.DLIOStep
	return steps.Each(func(s *stats.Step) error {
		d = report.DLIOStep{Epoch: int(s.Epoch), Block: int(s.Block), Rank: int(s.Rank), Eval: eval, BlockStart: s.BlockStart,
			BlockEnd: s.BlockEnd, Load: s.Load, Compute: s.Compute, Proc: s.Proc}
		if e := plan.Evaluation; eval && e != nil {
			d.Epoch = e.AfterEpoch + (d.Epoch-1)*e.EpochsBetween
		}
		return yield(&d)
	})
}

// configDifference says why a config.yaml is not the workload of the record, "" when it is.
func configDifference(v *attest.Verification, name string) string {
	blob := v.File(name)
	if blob == nil {
		return "it is not there, or was refused"
	}
	b, err := blob.Bytes(mostCompared)
	if err != nil {
		return err.Error()
	}
	w, err := workload.Load(workload.Source{Name: name, Data: b}, workload.Options{})
	switch {
	case err != nil:
		return err.Error()
	case !bytes.Equal(w.Canonical, v.Record.Workload.Canonical):
		return fmt.Sprintf("it resolves to the workload %s, the record has %s", w.Digest, v.Record.Workload.Digest)
	case !bytes.Equal(w.Composed, b):
		return "its bytes are not those that runs write of what it says"
	}
	return ""
}

// overridesDifference says why an overrides.yaml or a hydra.yaml does not tell the overrides of the record, "" when it does. They are
// those of the record in their order, behind the choice of the workload; what flags of ours said may be left out at the end.
func overridesDifference(v *attest.Verification, name string) string {
	blob := v.File(name)
	if blob == nil {
		return "it is not there, or was refused"
	}
	b, err := blob.Bytes(mostCompared)
	if err != nil {
		return err.Error()
	}
	text := string(b)
	if path.Base(name) == "hydra.yaml" {
		_, rest, ok := strings.Cut(text, "\n    task:")
		end := strings.Index(rest, "\n  job:")
		if !ok || end < 0 {
			return "it has no list of the workload's overrides"
		}
		text = rest[:end] + "\n"
	}
	recorded := v.Record.Workload.Overrides
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line == "[]" {
			continue
		}
		item, err := strconv.Unquote(strings.TrimPrefix(line, "- "))
		switch {
		case err != nil || !strings.HasPrefix(line, "- "):
			return fmt.Sprintf("%.80q is no override in the form that runs write", line)
		case strings.HasPrefix(item, "workload="):
		case len(recorded) == 0 || recorded[0] != strings.ToValidUTF8(item, "\uFFFD"):
			return fmt.Sprintf("it has the override %.200q, the record has %.400q", item, v.Record.Workload.Overrides)
		default:
			recorded = recorded[1:]
		}
	}
	for _, left := range recorded {
		if !strings.HasPrefix(left, "++workload.benchpin.") {
			return fmt.Sprintf("it lacks the override %.200q of the record", left)
		}
	}
	return ""
}

// dlioDifference compares two files of DLIO, and says what differs but the tables of /proc. Timestamps may differ by the zone of the host's clock,
// and by the lead.
func dlioDifference(expected, found []byte, isJSON bool, lead time.Duration) string {
	// Line by line, or value by value, timestamps come in the same order once everything else is the same; of JSON, whose keys may stand
	// in any order, they are compared in the tree.
	stamps := &zones{lead: lead}
	if !isJSON {
		a, b := dlioStamp.ReplaceAll(expected, []byte("TIME")), dlioStamp.ReplaceAll(found, []byte("TIME"))
		if !bytes.Equal(a, b) {
			return "its lines are not those that follow from the step times"
		}
		y := dlioStamp.FindAll(found, -1)
		for i, x := range dlioStamp.FindAll(expected, -1) {
			if d := stamps.difference(string(x), string(y[i])); d != "" {
				return d
			}
		}
		return ""
	}
	x, err1 := decodeDLIO(expected)
	y, err2 := decodeDLIO(found)
	if err1 != nil || err2 != nil {
		return fmt.Sprintf("not JSON: %v %v", err1, err2)
	}
	return stamps.tree("", x, y)
}

func decodeDLIO(b []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something stands behind the document")
	}
	delete(v, "host_cpuinfo")
	delete(v, "host_meminfo")
	return v, nil
}

// zones compares the timestamps of one file, which have the host's local time and name no zone.
type zones struct {
	// lead is the longest time from the start of the record to that of the clock of the steps.
	lead time.Duration
	// possible are the zones in which all timestamps so far fit; nil before the first.
	possible []time.Duration
}

const (
	// zoneStep divides every time zone of today, summerTime every change of one.
	zoneStep, summerTime = 15 * time.Minute, 30 * time.Minute
	// stampSlack is how far a clock may be corrected meanwhile.
	stampSlack = time.Second
)

// dlioLead bounds the time from "started" to the moment that step times count from, in which the expected transcript is computed: what the run took by
// its clock and its epochs did not.
func dlioLead(r *record.Record) time.Duration {
	started, err1 := time.Parse(time.RFC3339Nano, r.Started)
	finished, err2 := time.Parse(time.RFC3339Nano, r.Finished)
	if err1 != nil || err2 != nil {
		return 0
	}
	lead := finished.Sub(started)
	for _, e := range r.Metrics.Epochs {
		if e.Seconds.Value != nil {
			lead -= time.Duration(*e.Seconds.Value * float64(time.Second))
		}
	}
	return max(0, lead)
}

// difference says why a timestamp is not the one expected, in UTC, in the zone that the file has, "" when it is.
func (z *zones) difference(expected, found string) string {
	a, err1 := time.Parse(report.DLIOStamp, expected)
	b, err2 := time.Parse(report.DLIOStamp, found)
	if err1 != nil || err2 != nil {
		return fmt.Sprintf("the timestamp %.40q is no time", found)
	}
	fits := func(zone time.Duration) bool {
		late := b.Sub(a) - zone
		return late >= -stampSlack && late <= z.lead+stampSlack
	}
	if z.possible == nil {
		for zone := -12 * time.Hour; zone <= 14*time.Hour; zone += zoneStep {
			z.possible = append(z.possible, zone)
		}
	}
	z.possible = slices.DeleteFunc(z.possible, func(zone time.Duration) bool {
		for change := -2 * summerTime; change <= 2*summerTime; change += summerTime {
			if fits(zone + change) {
				return false
			}
		}
		return true
	})
	if len(z.possible) > 0 {
		return ""
	}
	return fmt.Sprintf("the timestamp %s is not %s UTC in the zone of the others, nor up to %v later: times of DLIO's files follow from started and the step times",
		found, expected, z.lead.Round(time.Millisecond))
}

// tree names the first place at which two JSON values differ.
func (z *zones) tree(at string, a, b any) string {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok || len(other) != len(a) {
			break
		}
		for _, k := range slices.Sorted(maps.Keys(a)) {
			if _, ok := other[k]; !ok {
				return fmt.Sprintf("%s.%s is missing", at, k)
			}
			if d := z.tree(at+"."+k, a[k], other[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		other, ok := b.([]any)
		if !ok || len(other) != len(a) {
			break
		}
		for i := range a {
			if d := z.tree(fmt.Sprintf("%s[%d]", at, i), a[i], other[i]); d != "" {
				return d
			}
		}
		return ""
	case string:
		if other, ok := b.(string); ok && dlioStamp.FindString(a) == a && dlioStamp.FindString(other) == other && a != "" && other != "" {
			if d := z.difference(a, other); d != "" {
				return at + ": " + d
			}
			return ""
		}
		if a == b {
			return ""
		}
	default:
		if a == b {
			return ""
		}
	}
	return fmt.Sprintf("%s: expected %.80v, found %.80v", at, a, b)
}

// compared collects a file and hands it over when it is closed.
type compared struct {
	bytes.Buffer
	limit int
	done  func([]byte)
}

func (c *compared) Write(p []byte) (int, error) {
	if c.Len()+len(p) > c.limit {
		return 0, fmt.Errorf("more than %d bytes, which the file of the archive does not have", c.limit)
	}
	return c.Buffer.Write(p)
}

func (c *compared) Close() error {
	c.done(c.Bytes())
	return nil
}

// discarded is a file that nobody wants.
type discarded struct{ io.Writer }

func (discarded) Close() error { return nil }
