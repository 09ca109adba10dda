package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
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
	c := activity(id, "What the accelerators did over time", r.Steps, ends, "epoch", "neither: between steps")
	if c == nil {
		return nil
	}
	if v := r.Record.Metrics.Threshold.Value; v != nil && r.Record.Plan.Epochs > 0 {
		y := activityBase - (activityBase-activityTop)*clamp(*v/100)
		c.Lines = append(c.Lines, line{"0%", px(y), "100%", px(y), "threshold"})
		c.Legend = append(c.Legend, key{"threshold", "threshold of AU, " + report.ThresholdText(*v, "%")})
	}
	return c
}

// The upper and lower end of what activity draws.
const activityTop, activityBase = 18.0, 218.0

// activity is what accelerators did in a series of steps. Its epochs are called as given, and so is the time between them.
func activity(id, title string, s *Series, ends float64, epoch, between string) *chart {
	if s == nil || s.steps == 0 {
		return nil
	}
	const top, base = activityTop, activityBase
	c := &chart{ID: id, Title: title, Height: 244,
		Legend: []key{{"compute", "computing"}, {"load", "waiting for data"}, {"barrier", "waiting for each other"}, {"none", between}}}
	list := s.shares(mostShares)
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
	if e := s.epochs; len(e) > 1 && len(e) <= 24 {
		for _, one := range e {
			x := float64(one.first) / 1e9 / ends
			c.Lines = append(c.Lines, line{pc(x), px(2), pc(x), px(base), "epoch"})
			c.Texts = append(c.Texts, text{pc(x + 0.004), px(12), "start", "tick", epoch + " " + strconv.Itoa(one.epoch)})
		}
		if len(e) > 8 {
			c.Texts = slices.DeleteFunc(c.Texts, func(t text) bool { return t.Y == px(12) && t.S != epoch+" "+strconv.Itoa(e[0].epoch) })
		}
	}
	at, label := clockTicks(ends)
	for i := range at {
		c.Texts = append(c.Texts, text{pc(at[i]), px(base + 18), anchorAt(at[i]), "tick", label[i]})
	}
	c.Desc = fmt.Sprintf("Stacked areas over %s from the start of the timed run. On average accelerators computed for %.1f %% of all time, at least %.1f %% "+
		"in each of %d stretches.", report.Seconds(whole), 100*mean, 100*least, len(list))
	c.Data = table{Caption: "What the accelerators did, in % of their time", Head: []string{"from", "to", "computing", "waiting for data", "waiting for each other"}}
	for _, s := range s.shares(24) {
		c.Data.Rows = append(c.Data.Rows, []string{report.Seconds(s.from), report.Seconds(s.to), report.Percent(100 * s.compute), report.Percent(100 * s.load),
			report.Percent(100 * s.barrier)})
	}
	return c
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
