package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

// spreadOf is the histogram of one kind of time, from least to most, which all runs of a page share. Percentiles are those that the function
// has; false where it has none.
func spreadOf(id, key, title string, h *histogram, percentile func(key string) (float64, bool), least, most float64) *chart {
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
	c.Data = table{Caption: title, Head: []string{"", "time"}}
	last := -1.0
	for _, q := range []struct{ key, label, name string }{{"_p50", "50 %", "median"}, {"_p90", "90 %", "90 % are at most"}, {"_p99", "99 %", "99 % are at most"}, {"_max", "", "longest"}} {
		v, ok := percentile(key + q.key)
		if !ok {
			continue
		}
		c.Data.Rows = append(c.Data.Rows, []string{q.name, report.Seconds(v)})
		if q.label == "" {
			continue
		}
		x := clamp(scale(v))
		c.Lines = append(c.Lines, line{pc(x), px(top - 14), pc(x), px(base), "mark"})
		if x-last > 0.17 || last < 0 {
			c.Texts = append(c.Texts, text{pc(x), px(top - 18), anchorAt(x), "tick", q.label})
			last = x
		}
	}
	c.Desc = fmt.Sprintf("Histogram of %s steps of all accelerators, from %s to %s; the lines are percentiles, which the table has.", report.Count(record.Int(h.n)),
		report.Seconds(float64(h.min)/1e9), report.Seconds(float64(h.max)/1e9))
	return c
}

// recorded are the percentiles of a record.
func recorded(r *record.Record) func(key string) (float64, bool) {
	return func(key string) (float64, bool) {
		f := r.Metrics.Other[key]
		if f.Value == nil {
			return 0, false
		}
		return *f.Value, true
	}
}

// drawn are the percentiles of a series, of which no record has any: never below the exact ones, and above them by less than 0.1 %.
func drawn(h *histogram) func(key string) (float64, bool) {
	return func(key string) (float64, bool) {
		_, q, _ := strings.Cut(key, "_")
		permille := map[string]int64{"p50": 500, "p90": 900, "p99": 990, "max": 1000}[q]
		return float64(h.quantile(permille)) / 1e9, h.n > 0
	}
}

// tickSeconds is a round time without the digits that a measured one has, tickBytes such a size.
func tickSeconds(v float64) string { return round(report.Seconds(v)) }

func tickBytes(v float64) string { return round(report.DecimalBytes(v)) }

func round(s string) string {
	number, unit, _ := strings.Cut(s, " ")
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
	every := max(1, int(math.Ceil((hi-lo)/5)))
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
