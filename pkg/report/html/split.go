package html

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

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
		c.Data.Notes = append(c.Data.Notes, "The readers' own work, most of it behind the computing where storage keeps up: "+strings.Join(work, ", ")+".")
	}
	if over := other["oversleep_total"].Value; over != nil {
		c.Data.Notes = append(c.Data.Notes, fmt.Sprintf("Computing is a sleep; sleeps took %s longer than prescribed, %s of it.", report.Seconds(*over), shareText(*over, *compute)))
	}
	return c
}
