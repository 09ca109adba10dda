package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

const (
	mostShares = 240 // stretches that a picture of the whole run has
	mostBars   = 80  // epochs that a picture has; more are put together
	mostRows   = 100 // rows of a table
)

// clockTicks labels a time axis up to so many seconds.
func clockTicks(most float64) (at []float64, label []string) {
	unit, name := 1.0, "s"
	switch {
	case most > 3*3600:
		unit, name = 3600, "h"
	case most > 300:
		unit, name = 60, "min"
	case most < 1:
		unit, name = 1e-3, "ms"
	}
	for _, v := range ticks(most/unit, 5) {
		at = append(at, v*unit/most)
		label = append(label, strconv.FormatFloat(v, 'g', 6, 64)+" "+name)
	}
	return at, label
}

// utilisation is what accelerators did over time. The axis ends at so many seconds, the same for all runs of a page.
func utilisation(id string, r *Run, ends float64) *chart {
	if r.Steps == nil || r.Steps.steps == 0 {
		return nil
	}
	const top, base = 18.0, 218.0
	c := &chart{ID: id, Title: "What the accelerators did over time", Height: 244,
		Legend: []key{{"compute", "computing"}, {"load", "waiting for data"}, {"barrier", "waiting for each other"}, {"none", "neither: between steps"}}}
	list := r.Steps.shares(mostShares)
	from, to := make([]float64, len(list)), make([]float64, len(list))
	layers := [][]float64{make([]float64, len(list)), make([]float64, len(list)), make([]float64, len(list))}
	var mean, least float64 = 0, 1
	for i, s := range list {
		from[i], to[i] = s.from/ends, s.to/ends
		layers[0][i], layers[1][i], layers[2][i] = s.compute, s.load, s.barrier
		mean += s.compute * (s.to - s.from)
		least = min(least, s.compute)
	}
	whole := list[len(list)-1].to
	mean /= whole
	c.Plot = &plot{Y: int(top), Height: int(base - top), Areas: stack(from, to, layers, []string{"compute", "load", "barrier"})}
	c.frame(top, base, 1, func(v float64) string { return strconv.Itoa(int(math.Round(100*v))) + " %" })
	if v := r.Record.Metrics.Threshold.Value; v != nil && r.Record.Plan.Epochs > 0 {
		y := base - (base-top)*clamp(*v/100)
		c.Lines = append(c.Lines, line{"0%", px(y), "100%", px(y), "threshold"})
		c.Legend = append(c.Legend, key{"threshold", "threshold of AU, " + report.ThresholdText(*v, "%")})
	}
	if e := r.Steps.epochs; len(e) > 1 && len(e) <= 24 {
		for _, one := range e {
			x := float64(one.first) / 1e9 / ends
			c.Lines = append(c.Lines, line{pc(x), px(2), pc(x), px(base), "epoch"})
			c.Texts = append(c.Texts, text{pc(x + 0.004), px(12), "start", "tick", "epoch " + strconv.Itoa(one.epoch)})
		}
		if len(e) > 8 {
			c.Texts = slices.DeleteFunc(c.Texts, func(t text) bool { return t.Y == px(12) && t.S != "epoch "+strconv.Itoa(e[0].epoch) })
		}
	}
	at, label := clockTicks(ends)
	for i := range at {
		c.Texts = append(c.Texts, text{pc(at[i]), px(base + 18), anchorAt(at[i]), "tick", label[i]})
	}
	c.Desc = fmt.Sprintf("Stacked areas over %s from the start of the timed run. On average accelerators computed for %.1f %% of all time, at least %.1f %% "+
		"in each of %d stretches.", report.Seconds(whole), 100*mean, 100*least, len(list))
	c.Data = table{Caption: "What the accelerators did, in % of their time", Head: []string{"from", "to", "computing", "waiting for data", "waiting for each other"}}
	for _, s := range r.Steps.shares(24) {
		c.Data.Rows = append(c.Data.Rows, []string{report.Seconds(s.from), report.Seconds(s.to), report.Percent(100 * s.compute), report.Percent(100 * s.load),
			report.Percent(100 * s.barrier)})
	}
	return c
}

// part is a kind of time.
type part struct {
	class, name string
	seconds     float64
}

func (p part) tip(whole float64) string {
	return p.name + ": " + report.Seconds(p.seconds) + ", " + shareText(p.seconds, whole)
}

// shareText is a part as a percentage; what is not nothing does not look like it.
func shareText(v, whole float64) string {
	switch p := 100 * v / whole; {
	case !(whole > 0):
		return "-"
	case v > 0 && p < 0.05:
		return "< 0.1 %"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
}

// waitParts are the parts of the wait for data, where the record tells them apart, else the wait as one.
func waitParts(other map[string]record.Figure) []part {
	value := func(key string) (float64, bool) {
		f, ok := other[key]
		return deref(f.Value), ok && f.Value != nil
	}
	if _, ok := value("wait_queue_total"); !ok {
		load, ok := value("load_total")
		if !ok {
			return nil
		}
		return []part{{"load", "waiting for data", load}}
	}
	var list []part
	for _, k := range waitKinds() {
		v, _ := value("wait_" + k.key + "_total")
		list = append(list, part{k.key, k.name, v})
	}
	return list
}

type waitKind struct{ key, name string }

func waitKinds() []waitKind {
	return []waitKind{{"queue", "batch not begun"}, {"open", "opening files"}, {"read", "reading"}, {"decode", "decoding"}, {"other", "other work for the batch"}}
}

func deref(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// split is where the time of all accelerators went: the whole, and the wait for data by itself, which is too thin to see where it is short.
func split(id string, r *Run) *chart {
	other := r.Record.Metrics.Other
	waits := waitParts(other)
	compute := other["compute_total"].Value
	if waits == nil || compute == nil {
		return nil
	}
	parts := []part{{"compute", "computing", *compute}}
	var waited float64
	for _, p := range waits {
		waited += p.seconds
	}
	parts = append(parts, waits...)
	parts = append(parts, part{"barrier", "waiting for each other", deref(other["barrier_total"].Value)})
	var whole float64
	for _, p := range parts {
		whole += p.seconds
	}
	if whole <= 0 {
		return nil
	}
	c := &chart{ID: id, Title: "Where the time of the accelerators went", Height: 62}
	c.Texts = append(c.Texts, text{"0%", px(14), "start", "label", "all time in steps, " + report.Seconds(whole)})
	c.bar(22, 34, parts, whole)
	c.Desc = "Bars divided into the kinds of time of the table below."
	if waited > 0 && len(waits) > 1 {
		c.Height = 136
		c.Texts = append(c.Texts, text{"0%", px(88), "start", "label", "the wait for data alone, " + report.Seconds(waited)})
		c.bar(96, 34, waits, waited)
	}
	c.Data = table{Caption: "Where the time went, over all accelerators and steps", Head: []string{"kind of time", "total", "of all time", "of the wait for data"}}
	for _, p := range parts {
		row := []string{p.name, report.Seconds(p.seconds), shareText(p.seconds, whole), ""}
		if slices.Contains(waits, p) {
			row[3] = shareText(p.seconds, waited)
		}
		c.Data.Rows = append(c.Data.Rows, row)
		c.Legend = append(c.Legend, key{p.class, p.name})
	}
	var work []string
	for _, n := range []struct{ key, name string }{{"open_total", "opening"}, {"read_total", "reading"}, {"decode_total", "decoding"}} {
		if f := other[n.key]; f.Value != nil {
			work = append(work, n.name+" "+report.Seconds(*f.Value))
		}
	}
	if len(work) > 0 {
		c.Data.Notes = append(c.Data.Notes, "The readers' own work, most of it behind the computing where storage keeps up: "+join(work)+".")
	}
	if over := other["oversleep_total"].Value; over != nil {
		c.Data.Notes = append(c.Data.Notes, fmt.Sprintf("Computing is a sleep; sleeps took %s longer than prescribed, %s of it.", report.Seconds(*over), shareText(*over, *compute)))
	}
	return c
}

// spreadOf is the histogram of one kind of time, from least to most, which all runs of a page share.
func spreadOf(id, key, title string, r *Run, h *histogram, least, most float64) *chart {
	if h.n == 0 {
		return nil
	}
	const top, base = 34.0, 154.0
	scale, marks, bars := axis(least, most)
	c := &chart{ID: id, Title: title, Height: 180}
	counts := make([]float64, bars)
	for i, n := range h.counts {
		if n > 0 {
			from, to := edges(i)
			deal(counts, float64(bars)*clamp(scale(from/1e9)), float64(bars)*clamp(scale(to/1e9)), float64(n))
		}
	}
	highest := slices.Max(counts)
	for i, n := range counts {
		if n == 0 {
			continue
		}
		height := max(1.5, (base-top)*n/highest)
		c.Rects = append(c.Rects, rect{pc(float64(i) / float64(bars)), px(base - height), pc(0.86 / float64(bars)), px(height), key,
			"about " + report.Count(record.Int(math.Ceil(n))) + " steps"})
	}
	c.Lines = append(c.Lines, line{"0%", px(base), "100%", px(base), "base"})
	for _, v := range marks {
		x := scale(v)
		if x < -1e-9 || x > 1+1e-9 {
			continue
		}
		c.Lines = append(c.Lines, line{pc(x), px(base), pc(x), px(base + 4), "base"})
		c.Texts = append(c.Texts, text{pc(x), px(base + 18), anchorAt(x), "tick", tickSeconds(v)})
	}
	other := r.Record.Metrics.Other
	c.Data = table{Caption: title, Head: []string{"", "time"}}
	last := -1.0
	for _, q := range []struct{ key, label, name string }{{"_p50", "50 %", "median"}, {"_p90", "90 %", "90 % are at most"}, {"_p99", "99 %", "99 % are at most"}, {"_max", "", "longest"}} {
		f := other[key+q.key]
		if f.Value == nil {
			continue
		}
		c.Data.Rows = append(c.Data.Rows, []string{q.name, report.Seconds(*f.Value)})
		if q.label == "" {
			continue
		}
		x := clamp(scale(*f.Value))
		c.Lines = append(c.Lines, line{pc(x), px(top - 14), pc(x), px(base), "mark"})
		if x-last > 0.13 || last < 0 {
			c.Texts = append(c.Texts, text{pc(x), px(top - 18), anchorAt(x), "tick", q.label})
			last = x
		}
	}
	c.Desc = fmt.Sprintf("Histogram of %s steps of all accelerators, from %s to %s; the lines are percentiles, which the table has.", report.Count(record.Int(h.n)),
		report.Seconds(float64(h.min)/1e9), report.Seconds(float64(h.max)/1e9))
	return c
}

// tickSeconds is a round time without the digits that a measured one has.
func tickSeconds(v float64) string {
	number, unit, _ := strings.Cut(report.Seconds(v), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + unit)
}

// deal gives each bar its part of n things that lie evenly between two places, in bars from the left.
func deal(bars []float64, from, to, n float64) {
	last := len(bars) - 1
	if to-from < 1e-9 {
		bars[min(last, int(from))] += n
		return
	}
	for i := int(from); i <= last && float64(i) < to; i++ {
		bars[i] += n * (min(to, float64(i+1)) - max(from, float64(i))) / (to - from)
	}
}

// mostHistogram is the number of bars of a histogram.
const mostHistogram = 48

// axis maps seconds to 0 to 1, evenly where the times lie close together, and by their logarithm where they do not, with round times to
// mark, and the number of bars that the buckets of a histogram are fine enough for.
func axis(least, most float64) (scale func(seconds float64) float64, marks []float64, bars int) {
	if most < 4*least {
		pad := max(0.05*(most-least), 0.005*most)
		lo, hi := max(0, least-pad), most+pad
		step := round125((hi - lo) / 4)
		for v := math.Ceil(lo/step) * step; v <= hi; v += step {
			marks = append(marks, v)
		}
		bars = int(min(mostHistogram, (hi-lo)/most*(1<<subBits)))
		return func(v float64) float64 { return (v - lo) / (hi - lo) }, marks, max(1, bars)
	}
	lo, hi := math.Log10(max(least, 1e-9)), math.Log10(max(most, 1e-8))
	lo, hi = lo-0.02*(hi-lo), hi+0.02*(hi-lo)
	steps := []float64{1}
	if hi-lo < 2 {
		steps = []float64{1, 2, 5}
	}
	every := max(1, int(math.Ceil((hi-lo)/6)))
	for d := int(math.Floor(lo)); d <= int(math.Ceil(hi)); d++ {
		if (d%every+every)%every != 0 {
			continue
		}
		for _, m := range steps {
			marks = append(marks, m*math.Pow(10, float64(d)))
		}
	}
	return func(v float64) float64 { return (math.Log10(max(v, 1e-9)) - lo) / (hi - lo) }, marks, mostHistogram
}

func join(list []string) string {
	s := ""
	for i, one := range list {
		if i > 0 {
			s += ", "
		}
		s += one
	}
	return s
}

// traffic is where the bytes of each epoch came from. The axis ends at so many bytes.
func traffic(id string, r *Run, most float64) *chart {
	epochs := r.Record.Metrics.Epochs
	known := slices.ContainsFunc(epochs, func(e record.EpochMetrics) bool { return e.BytesDevice.Value != nil || e.Storage != nil })
	if len(epochs) == 0 || !known || most <= 0 {
		return nil
	}
	const top, base = 18.0, 178.0
	c := &chart{ID: id, Title: "Bytes from the device and from the page cache, by epoch", Height: 204,
		Legend: []key{{"device", "from the device"}, {"memory", "from the page cache"}, {"asked", "asked for"}}}
	c.frame(top, base, most, report.DecimalBytes)
	group := (len(epochs) + mostBars - 1) / mostBars
	n := (len(epochs) + group - 1) / group
	wide := 1 / float64(n)
	for i := range n {
		some := epochs[i*group : min((i+1)*group, len(epochs))]
		device, memory, asked := mean(some, func(e *record.EpochMetrics) *float64 { return e.BytesDevice.Value }),
			mean(some, func(e *record.EpochMetrics) *float64 {
				if e.Storage == nil {
					return nil
				}
				return e.Storage.Memory.Value
			}), mean(some, func(e *record.EpochMetrics) *float64 { return e.BytesAsked.Value })
		name := "epoch " + strconv.Itoa(some[0].Epoch)
		if len(some) > 1 {
			name = fmt.Sprintf("epochs %d to %d, mean", some[0].Epoch, some[len(some)-1].Epoch)
		}
		x := float64(i) * wide
		thick := min(wide*0.32, 0.06)
		middle := x + wide/2
		for j, b := range []struct {
			v           *float64
			class, what string
		}{{device, "device", "from the device"}, {memory, "memory", "from the page cache"}} {
			if b.v == nil {
				continue
			}
			h := (base - top) * clamp(*b.v/most)
			c.Rects = append(c.Rects, rect{pc(middle + (float64(j)-1)*thick), px(base - h), pc(thick * 0.94), px(h), b.class, name + ": " + report.DecimalBytes(*b.v) + " " + b.what})
		}
		if asked != nil {
			y := base - (base-top)*clamp(*asked/most)
			c.Lines = append(c.Lines, line{pc(middle - 1.25*thick), px(y), pc(middle + 1.25*thick), px(y), "asked"})
		}
		if n <= 16 || i%((n+7)/8) == 0 {
			c.Texts = append(c.Texts, text{pc(middle), px(base + 18), "middle", "tick", strconv.Itoa(some[0].Epoch)})
		}
	}
	c.Desc = fmt.Sprintf("Bars for %d epochs: bytes that the kernel counted as read from block devices for this process, and bytes that the page cache had.", len(epochs))
	c.Data = trafficTable(epochs)
	return c
}

func mean(epochs []record.EpochMetrics, of func(*record.EpochMetrics) *float64) *float64 {
	var sum float64
	n := 0
	for i := range epochs {
		if v := of(&epochs[i]); v != nil {
			sum += *v
			n++
		}
	}
	if n == 0 {
		return nil
	}
	sum /= float64(n)
	return &sum
}

// cell is a figure in a table, with its unit.
func cell(f record.Figure) string {
	if f.Value == nil {
		return "-"
	}
	if f.Unit == "B" {
		return report.DecimalBytes(*f.Value)
	}
	return report.FigureText(f)
}

func trafficTable(epochs []record.EpochMetrics) table {
	t := table{Caption: "Where the bytes came from", Head: []string{"epoch", "asked for", "from the device", "from the page cache", "disk, by anybody", "server, by anybody",
		"cached before", "cached after"}}
	absent := map[string]bool{}
	note := func(what string, f record.Figure) {
		if s := what + ": " + report.Clean(f.Absent) + "."; f.Value == nil && f.Absent != "" && !absent[s] {
			absent[s] = true
			t.Notes = append(t.Notes, s)
		}
	}
	for i := range epochs {
		e := &epochs[i]
		if skipped(i, len(epochs), &t) {
			continue
		}
		name := strconv.Itoa(e.Epoch)
		note("No bytes from the device", e.BytesDevice)
		if e.Storage == nil {
			t.Rows = append(t.Rows, []string{name, cell(e.BytesAsked), cell(e.BytesDevice), "-", "-", "-", "-", "-"})
			continue
		}
		note("No bytes from the page cache", e.Storage.Memory)
		if e.Storage.Dropped != nil {
			name += ", begun cold"
		}
		for j, f := range e.Storage.FileSystems {
			row := []string{name, cell(f.Asked), cell(e.BytesDevice), cell(e.Storage.Memory), cell(f.Disk), cell(f.Network), cell(f.CachedBefore), cell(f.CachedAfter)}
			if len(e.Storage.FileSystems) > 1 {
				row[0] += ", " + report.Clean(f.Type) + " at " + report.Clean(f.MountPoint)
				if j > 0 {
					row[2], row[3] = "", ""
				}
			}
			t.Rows = append(t.Rows, row)
		}
		if e.Storage.Direct && !absent["direct"] {
			absent["direct"] = true
			t.Notes = append(t.Notes, "Files were read past the page cache (O_DIRECT).")
		}
		if e.Storage.LookedAt < e.Storage.Files && !absent["looked"] {
			absent["looked"] = true
			t.Notes = append(t.Notes, fmt.Sprintf("What is cached is an estimate, from %s of %s files.", report.Count(e.Storage.LookedAt), report.Count(e.Storage.Files)))
		}
	}
	t.Notes = append(t.Notes, "The device can deliver more than was asked for: the kernel reads ahead, in whole pages, and files are opened.")
	return t
}

// skipped tells the rows in the middle of a long table, and puts one in their place.
func skipped(i, n int, t *table) bool {
	if n <= mostRows || i < mostRows/2 || i >= n-mostRows/2 {
		return false
	}
	if i == mostRows/2 {
		row := make([]string, len(t.Head))
		row[0] = fmt.Sprintf("%d more", n-mostRows)
		t.Rows = append(t.Rows, row)
	}
	return true
}

// epochTable are the figures of epochs, or of passes of evaluation.
func epochTable(caption string, epochs []record.EpochMetrics) *table {
	if len(epochs) == 0 {
		return nil
	}
	t := &table{Caption: caption, Head: []string{"epoch", "steps", "time", "AU", "samples/s", "throughput"}}
	for i := range epochs {
		if e := &epochs[i]; !skipped(i, len(epochs), t) {
			rate := "-"
			if e.BytesPerSecond.Value != nil {
				rate = report.DecimalBytes(*e.BytesPerSecond.Value) + "/s"
			}
			samples := "-"
			if e.SamplesPerSecond.Value != nil {
				samples = report.Number(*e.SamplesPerSecond.Value)
			}
			t.Rows = append(t.Rows, []string{strconv.Itoa(e.Epoch), report.Count(e.Steps), cell(e.Seconds), cell(e.AU), samples, rate})
		}
	}
	return t
}

// waitTable is what the wait for data consisted of, by epoch.
func waitTable(epochs []record.EpochMetrics) *table {
	t := &table{Caption: "The wait for data, by epoch", Head: []string{"epoch", "total", "not begun", "opening", "reading", "decoding", "other", "median of steps", "99 % of steps", "longest", "most of one accelerator"}}
	any := false
	for i := range epochs {
		w := epochs[i].Waits
		if w == nil || skipped(i, len(epochs), t) {
			continue
		}
		any = true
		s := &w.Steps
		t.Rows = append(t.Rows, []string{strconv.Itoa(epochs[i].Epoch), report.Seconds(s.Load.Total), shareText(s.Queue.Total, s.Load.Total), shareText(s.Open.Total, s.Load.Total),
			shareText(s.Read.Total, s.Load.Total), shareText(s.Decode.Total, s.Load.Total), shareText(s.Other.Total, s.Load.Total), report.Seconds(s.Load.P50),
			report.Seconds(s.Load.P99), report.Seconds(s.Load.Max), report.Seconds(w.Accelerators.Load.Max)})
	}
	if !any {
		return nil
	}
	return t
}

// saved is one writing or reading of a checkpoint.
type saved struct {
	name    string
	bytes   float64
	seconds []float64
	more    []string // cells of its own
}

// ranks is how long each accelerator took for each checkpoint. The axis ends at so many seconds.
func ranks(id, title string, list []saved, most float64, class string, extra []string) *chart {
	if len(list) == 0 {
		return nil
	}
	const rowHeight, mostDrawn, mostDots = 40, 16, 64
	drawn := list
	if len(drawn) > mostDrawn {
		drawn = slices.Concat(list[:mostDrawn/2], list[len(list)-mostDrawn/2:])
	}
	c := &chart{ID: id, Title: title, Height: rowHeight*len(drawn) + 26}
	bottom := float64(rowHeight * len(drawn))
	for _, v := range ticks(most, 5) {
		x := clamp(v / (most * 1.04))
		c.Lines = append(c.Lines, line{pc(x), px(0), pc(x), px(bottom), "grid"})
		c.Texts = append(c.Texts, text{pc(x), px(bottom + 17), anchorAt(x), "tick", tickSeconds(v)})
	}
	for i, s := range drawn {
		y := float64(rowHeight*i) + 27
		if len(s.seconds) == 0 {
			continue
		}
		at := func(v float64) string { return pc(v / (most * 1.04)) }
		c.Texts = append(c.Texts, text{"0%", px(y - 12), "start", "label", report.Clean(s.name)})
		c.Lines = append(c.Lines, line{"0%", px(y), at(slices.Max(s.seconds)), px(y), "reach " + class})
		if len(s.seconds) <= mostDots {
			for rank, v := range s.seconds {
				c.Dots = append(c.Dots, dot{at(v), px(y), class, fmt.Sprintf("accelerator %d: %s", rank, report.Seconds(v))})
			}
		} else {
			for _, v := range []float64{slices.Min(s.seconds), median(s.seconds), slices.Max(s.seconds)} {
				c.Dots = append(c.Dots, dot{at(v), px(y), class, report.Seconds(v)})
			}
		}
	}
	c.Desc = fmt.Sprintf("A line for each of %d checkpoints with a dot for each accelerator, at how long it took.", len(drawn))
	c.Data = table{Caption: title, Head: slices.Concat([]string{"checkpoint", "size", "accelerators", "fastest", "median", "slowest", "rate by the slowest"}, extra)}
	for i, s := range list {
		if skipped(i, len(list), &c.Data) {
			continue
		}
		row := []string{report.Clean(s.name), report.DecimalBytes(s.bytes), strconv.Itoa(len(s.seconds)), "-", "-", "-", "-"}
		if len(s.seconds) > 0 {
			longest := slices.Max(s.seconds)
			row[3], row[4], row[5] = report.Seconds(slices.Min(s.seconds)), report.Seconds(median(s.seconds)), report.Seconds(longest)
			if longest > 0 {
				row[6] = report.DecimalBytes(s.bytes/longest) + "/s"
			}
		}
		c.Data.Rows = append(c.Data.Rows, append(row, s.more...))
	}
	if len(drawn) < len(list) {
		c.Data.Notes = append(c.Data.Notes, fmt.Sprintf("The picture has the first and the last %d of %d.", mostDrawn/2, len(list)))
	}
	return c
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func saves(r *record.Record) (list []saved) {
	for i := range r.Checkpoints.Saves {
		s := &r.Checkpoints.Saves[i]
		one := saved{name: s.Name, bytes: float64(s.Bytes), seconds: s.Seconds, more: []string{"-"}}
		if len(s.WriteSeconds) > 0 {
			one.more[0] = report.Seconds(slices.Max(s.WriteSeconds))
		}
		list = append(list, one)
	}
	return list
}

func loads(r *record.Record) (list []saved) {
	for i := range r.Checkpoints.Loads {
		l := &r.Checkpoints.Loads[i]
		one := saved{name: l.Name, bytes: float64(l.Bytes), seconds: l.Seconds, more: []string{"-", "no"}}
		if l.DeviceBytes != nil {
			one.more[0] = report.DecimalBytes(float64(*l.DeviceBytes))
		}
		if l.Verified {
			one.more[1] = "equal"
		}
		list = append(list, one)
	}
	return list
}

// when is the time of a run by the host's clock.
func when(r *record.Record) string {
	from, err1 := time.Parse(time.RFC3339Nano, r.Started)
	to, err2 := time.Parse(time.RFC3339Nano, r.Finished)
	if err1 != nil || err2 != nil {
		return report.Clean(cmp.Or(r.Started, "unknown")) + " to " + report.Clean(cmp.Or(r.Finished, "unknown"))
	}
	return from.UTC().Format("2006-01-02 15:04:05 UTC") + ", for " + report.Seconds(to.Sub(from).Seconds())
}
