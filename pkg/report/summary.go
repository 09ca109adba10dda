package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
)

// maxRows bounds the epochs and checkpoints that a page lists; the first and the last are shown and the rest counted.
const maxRows = 12

// Summary prints the result of one run on a page: figures, epochs, where the time went, why AU was missed if it was, checkpoints, and what pins the data, with
// the class of each figure in the left margin. Sizes are in GB (10^9 bytes) with GiB (2^30 bytes) beside them. Texts of the record
// are shown with control characters escaped. It prints what the record says, true or not; an error is one of w.
func Summary(w io.Writer, r *record.Record, options ...Option) error {
	return SummaryWithReads(w, r, nil, options...)
}

// SummaryWithReads is Summary where plain reads of the data set were measured after the run, for what is said of an AU that was missed; nil
// where they were not.
func SummaryWithReads(w io.Writer, r *record.Record, plain *PlainReads, options ...Option) error {
	p := newPage(options)
	p.runHead(r)
	p.result(r)
	p.advice(r, plain)
	p.epochs("Epochs (H)", r.Metrics.Epochs)
	p.storage(r.Metrics.Epochs)
	p.evaluation(r.Metrics.Evaluation)
	p.waits(r.Metrics.Other)
	p.epochWaits(r.Metrics.Epochs)
	p.checkpoints(r)
	p.proof(r)
	p.legend()
	return p.flush(w)
}

func (p *page) runHead(r *record.Record) {
	p.title("benchpin result")
	status := p.paint(green, "complete")
	if r.Status != record.StatusComplete {
		status = p.paint(red, "INCOMPLETE, no result") + ": " + clean(cmp.Or(r.Reason, r.Status))
	}
	p.row("", "run", clean(r.ID)+", "+status)
	p.row("H", "host clock", clock(r))
	p.row("", "workload", clean(r.Workload.Name)+overrides(r.Workload.Overrides))
	p.row("", "tool", tool(&r.Tool))
	if text := ReplayText(r); text != "" {
		p.row(clean(string(r.ReplayOf.Class)), "replay of", text)
	}
	if j := r.Journal; j != nil {
		p.row(clean(string(j.Class)), "attempt", fmt.Sprintf("%d with this workload on this data, by a journal of %s", j.Attempt, plural(j.Entries, "line")))
	}
	p.row("H", "machine", machine(&r.Environment))
	if text := ClusterText(r); text != "" {
		p.row("H", "carried out by", text)
	}
	for i := range r.Environment.Folders {
		f := &r.Environment.Folders[i]
		p.row("H", clean(f.Role)+" on", folder(f))
	}
	for i := range r.Environment.Buckets {
		b := &r.Environment.Buckets[i]
		p.row("H", clean(b.Role)+" on", "bucket "+clean(b.Address)+" at "+clean(strings.Join(b.Endpoints, ", ")))
		p.row("", "", bucketRequests(&b.Traffic))
	}
	if e := &r.Environment; e.ResultsApart != nil && !*e.ResultsApart {
		p.row("H", "", "results are written to the file system that data is read from")
	}
}

func clock(r *record.Record) string {
	s := clean(r.Started) + " to " + clean(r.Finished)
	from, err1 := time.Parse(time.RFC3339Nano, r.Started)
	to, err2 := time.Parse(time.RFC3339Nano, r.Finished)
	if err1 != nil || err2 != nil {
		return s
	}
	const second = "2006-01-02 15:04:05"
	return from.UTC().Format(second) + " to " + to.UTC().Format(second) + " UTC, " + secondsText(between(from, to))
}

func overrides(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return ", with " + clean(strings.Join(list, " "))
}

func tool(t *record.Tool) string {
	commit := "commit not recorded by the build"
	if t.Commit != "" {
		commit = "commit " + clean(t.Commit)
	}
	if t.Modified {
		commit += " with changes"
	}
	return fmt.Sprintf("%s %s, %s, %s, %s", clean(t.Name), clean(t.Version), commit, clean(t.Go), clean(t.Platform))
}

func machine(e *record.Environment) string {
	parts := []string{clean(e.CPU.Model)}
	if e.CPU.Usable != nil {
		parts = append(parts, plural(record.Int(*e.CPU.Usable), "usable processor"))
	}
	if e.Memory.Total != nil {
		parts = append(parts, bytesText(float64(*e.Memory.Total))+" of memory")
	}
	parts = append(parts, clean(e.Host.OS)+" "+clean(e.Host.Kernel))
	if e.Container.Kind != "none" && e.Container.Kind != "" {
		parts = append(parts, "container: "+clean(e.Container.Kind))
	}
	return strings.Join(parts, ", ")
}

func folder(f *record.Folder) string {
	s := clean(f.FileSystem) + " at " + clean(f.MountPoint)
	if f.Device.Name != record.UnknownText && f.Device.Name != "" {
		s += ", device " + clean(f.Device.Name)
		if f.Device.Rotational != nil && *f.Device.Rotational {
			s += " (rotating)"
		}
	} else {
		s += ", device unknown"
	}
	if f.Free != nil {
		s += ", " + decimalBytes(float64(*f.Free)) + " free"
	}
	return s
}

// bucketRequests says what was asked of an object server, and what went wrong there.
func bucketRequests(t *record.BucketTraffic) string {
	s := plural(t.Get+t.Put+t.Head+t.List+t.Other, "request") + ", " + decimalBytes(float64(t.Received)) + " received, " + decimalBytes(float64(t.Sent)) + " sent"
	if t.Refused+t.Broken+t.Retried > 0 {
		s += fmt.Sprintf("; the server refused %d, %d broke, %s tried again", t.Refused, t.Broken, count(t.Retried))
	}
	return s
}

func (p *page) result(r *record.Record) {
	m := &r.Metrics
	p.title("Result")
	if checkpointOnly(&r.Plan) {
		p.checkpointResult(r)
		return
	}
	verdict := "not judged"
	if m.Met != nil && *m.Met {
		verdict = p.paint(green, "met")
	} else if m.Met != nil {
		verdict = p.paint(red, "NOT MET")
	}
	threshold := FigureText(m.Threshold)
	if v := m.Threshold.Value; v != nil {
		threshold = ThresholdText(*v, m.Threshold.Unit)
	}
	p.row(class(m.AU), "AU", FigureText(m.AU)+"  (threshold "+threshold+": "+verdict+")")
	if f, ok := m.Other["au_prescribed"]; ok {
		p.row(class(f), "AU, prescribed", FigureText(f)+"  (with the compute time that the workload asks for, without oversleep)")
	}
	p.row(class(m.SamplesPerSecond), "samples", FigureText(m.SamplesPerSecond)+", "+plural(record.Int(r.Plan.Accelerators), "accelerator"))
	p.row(class(m.BytesPerSecond), "throughput", FigureText(m.BytesPerSecond))
	if rate, class, ok := wholeEpochs(m.Epochs); ok {
		p.row(class, "", rateText(rate)+" over whole epochs, with the steps that the window leaves out")
	}
	if q := r.Plan.RequiredBytesPerSecond; q != nil {
		p.row(string(r.Plan.Class), "needed for AU", required(&r.Plan))
	}
	p.cautions(r)
}

// between is the time from one moment to another in seconds, also where it is longer than a time.Duration can be (292 years).
func between(from, to time.Time) float64 {
	return float64(to.Unix()-from.Unix()) + float64(to.Nanosecond()-from.Nanosecond())/1e9
}

// wholeEpochs is what was asked of storage in all epochs by the time that they took. It stands beside the throughput of the window
// because an epoch's first step, which fills the pipeline, is outside of the window, and what was prefetched meanwhile is inside.
func wholeEpochs(epochs []record.EpochMetrics) (rate float64, class string, ok bool) {
	var bytes, seconds float64
	for _, e := range epochs {
		if e.BytesAsked.Value == nil || e.Seconds.Value == nil {
			return 0, "", false
		}
		bytes += *e.BytesAsked.Value
		seconds += *e.Seconds.Value
	}
	return bytes / seconds, string(record.HostOnly), seconds > 0
}

func class(f record.Figure) string { return clean(string(f.Class)) }

// required is the rate that storage must deliver.
func required(p *record.Plan) string {
	s := "at least " + rateText(*p.RequiredBytesPerSecond)
	if p.RequiredFilesPerSecond != nil {
		s += ", " + digits(*p.RequiredFilesPerSecond) + " files/s"
	}
	return fmt.Sprintf("%s for %s and %s %% AU", s, plural(record.Int(p.Accelerators), "accelerator"),
		strconv.FormatFloat(p.AUThreshold, 'g', 10, 64))
}

// evaluation shows the passes over the files for evaluation, which are no part of the figures above.
func (p *page) evaluation(m *record.EvaluationMetrics) {
	if m == nil || len(m.Passes) == 0 {
		return
	}
	p.epochs("Evaluation, after the epoch named (H)", m.Passes)
	p.row(class(m.AU), "AU", FigureText(m.AU)+", "+FigureText(m.SamplesPerSecond)+" over all passes")
}

// epochs shows the figures of epochs, or of passes that are named by epochs.
func (p *page) epochs(title string, epochs []record.EpochMetrics) {
	if len(epochs) == 0 {
		return
	}
	p.title(title)
	var rows [][]string
	var largest float64
	for i := range epochs {
		for _, f := range []record.Figure{epochs[i].BytesPerSecond, epochs[i].BytesAsked, epochs[i].BytesDevice} {
			if f.Value != nil {
				largest = max(largest, *f.Value)
			}
		}
	}
	unit, size := column(largest)
	for i := range epochs {
		e := &epochs[i]
		if len(epochs) > maxRows && i == maxRows/2 {
			rows = append(rows, []string{"...", "", "", "", "", "", "", ""})
		}
		if len(epochs) > maxRows && i >= maxRows/2 && i < len(epochs)-maxRows/2 {
			continue
		}
		rows = append(rows, []string{
			strconv.Itoa(e.Epoch), count(e.Steps), cell(e.Seconds, fixed), cell(e.AU, percentText), cell(e.SamplesPerSecond, digits),
			cell(e.BytesPerSecond, size), cell(e.BytesAsked, size), cell(e.BytesDevice, size),
		})
	}
	p.table(false, []string{"epoch", "steps", "seconds", "AU %", "samples/s", unit + "/s", unit + " asked", unit + " from device"},
		rows)
	if len(epochs) > maxRows {
		p.line("    %d epochs, the first and the last %d shown", len(epochs), maxRows/2)
	}
	if reason := deviceReason(epochs); reason != "" {
		p.row("", "", "bytes from the device are absent: "+reason)
	}
}

func deviceReason(epochs []record.EpochMetrics) string {
	for i := range epochs {
		if f := epochs[i].BytesDevice; f.Value == nil {
			return clean(f.Absent)
		}
	}
	return ""
}

// waits shows the sums over all steps of all accelerators, and the spread of single steps.
func (p *page) waits(other map[string]record.Figure) {
	names := []struct{ key, label string }{
		{"load", "waiting for data"}, {"compute", "computing"}, {"barrier", "waiting for each other"}, {"oversleep", "sleeping too long"},
		{"step", "step"},
	}
	total := 0.0
	for _, key := range []string{"load_total", "compute_total", "barrier_total"} {
		if f := other[key]; f.Value != nil {
			total += *f.Value
		}
	}
	var rows [][]string
	for _, n := range names {
		row := []string{n.label}
		sum, seen := "", false
		if f, ok := other[n.key+"_total"]; ok && f.Value != nil {
			sum, seen = secondsText(*f.Value), true
			if total > 0 && n.key != "oversleep" {
				sum += fmt.Sprintf(" (%.1f %%)", 100**f.Value/total)
			}
		}
		row = append(row, sum)
		for _, q := range []string{"_p50", "_p90", "_p99", "_max"} {
			f, ok := other[n.key+q]
			seen = seen || ok
			row = append(row, cell(f, secondsText))
		}
		if seen {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return
	}
	p.title("Where the time went, all accelerators together (H)")
	p.table(true, []string{"", "total (share)", "median", "90 %", "99 %", "longest"}, rows)
	var parts []string
	for _, n := range []struct{ key, label string }{{"open_total", "opening"}, {"read_total", "reading"}, {"decode_total", "decoding"}} {
		if f, ok := other[n.key]; ok && f.Value != nil {
			parts = append(parts, n.label+" "+secondsText(*f.Value))
		}
	}
	if len(parts) > 0 {
		p.row("", "", "the loaders' work, partly behind the computing: "+strings.Join(parts, ", "))
	}
}

func (p *page) proof(r *record.Record) {
	d, t := &r.Dataset, &r.Transcript
	if checkpointOnly(&r.Plan) {
		p.checkpointProof(r)
		return
	}
	p.title("What was read")
	kind := "taken as it is"
	if d.Generated {
		kind = "generated from seed " + clean(d.Seed)
	}
	p.row(string(d.Class), "data set", plural(d.Files, "file")+", "+bytesText(float64(d.Bytes))+", "+kind)
	p.row(string(d.Class), "data root", clean(d.Root))
	p.row(clean(string(d.Verification.Class)), "verified", verified(&d.Verification))
	if n := r.NotBefore; n != nil {
		p.row(clean(string(n.Class)), "order drawn with", fmt.Sprintf("the public value %q, known from %s: %s", clean(n.Value), clean(n.Time), clean(n.Source)))
	}
	p.row(string(t.Class), "transcript root", clean(t.Root))
	switch {
	case t.Root == "":
		p.row("", "", "no transcript was finished")
	case t.Root == t.Expected:
		p.row("", "", "equal to the root that workload, recipe and plan demand, over "+plural(t.Entries, "sample"))
	case r.Status == record.StatusIncomplete:
		p.row("", "", "of what was read until the run ended, "+plural(t.Entries, "sample"))
	default:
		p.row("", "", p.paint(red, "DIFFERS")+" from what the plan expects, "+clean(t.Expected))
	}
	p.identity(r)
}

func (p *page) identity(r *record.Record) {
	p.row("", "workload digest", clean(r.Workload.Digest))
	p.row("", "binary", clean(r.Tool.Binary))
}

func verified(v *record.Verification) string {
	if v.Mode == "none" {
		return "none: nothing shows that the bytes were those of the manifest"
	}
	if v.Mode == "after" && v.Files == 0 {
		return "after: FAILED, or not finished: nothing shows that the bytes were those of the manifest"
	}
	when := map[string]string{
		"before": "before the clock started", "after": "after the run", "inline": "during the timed run", "sample": "a sample of the files",
	}[v.Mode]
	s := fmt.Sprintf("%s (%s): %s, %s in %s", clean(v.Mode), cmp.Or(when, "unknown mode"), plural(v.Files, "file"),
		bytesText(float64(v.Bytes)), secondsText(v.Seconds))
	if v.ResidentBefore != nil && v.ResidentAfter != nil {
		s += fmt.Sprintf("; in the page cache %s before and %s after it", decimalBytes(float64(*v.ResidentBefore)),
			decimalBytes(float64(*v.ResidentAfter)))
	}
	if i := v.Inline; i != nil {
		s += fmt.Sprintf("; hashing used %.2f cores, and accelerators waited %s for it", i.Cores, secondsText(i.WaitedSeconds))
		if e := i.Effect; e != nil && e.Difference != nil {
			s += fmt.Sprintf("; it changed AU by %+.2f points (95 %%: %+.2f to %+.2f)", *e.Difference, *e.Low, *e.High)
		}
	}
	if v.IdentityRechecked > 0 {
		s += "; file identity compared again " + times(v.IdentityRechecked) + " during the run"
	}
	return s
}

func times(n record.Int) string {
	if n == 1 {
		return "once"
	}
	return count(n) + " times"
}

func (p *page) legend() {
	p.line("")
	p.line("Classes: C anyone can compute it again from the archive; W a third party witnessed it; H only the host says so.")
	p.line("MB are 10^6 and GB 10^9 bytes, MiB 2^20 and GiB 2^30. AU is accelerator utilisation.")
}
