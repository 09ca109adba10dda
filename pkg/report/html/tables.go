package html

import (
	"fmt"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

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

// waitTable is what the wait for data consisted of, by epoch; how it was spread is left out where there is little room.
func waitTable(epochs []record.EpochMetrics, narrow bool) *table {
	t := &table{Caption: "The wait for data, by epoch", Head: []string{"epoch", "total", "not begun", "opening", "reading", "decoding", "other"}}
	if !narrow {
		t.Head = append(t.Head, "median of steps", "99 % of steps", "longest", "most of one accelerator")
	}
	for i := range epochs {
		w := epochs[i].Waits
		if w == nil || skipped(i, len(epochs), t) {
			continue
		}
		s, a := &w.Steps, &w.Accelerators
		row := []string{strconv.Itoa(epochs[i].Epoch), report.Seconds(s.Load.Total)}
		for _, part := range []record.Spread{s.Queue, s.Open, s.Read, s.Decode, s.Other} {
			row = append(row, shareText(part.Total, s.Load.Total))
		}
		if !narrow {
			row = append(row, report.Seconds(s.Load.P50), report.Seconds(s.Load.P99), report.Seconds(s.Load.Max), report.Seconds(a.Load.Max))
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}
