package html

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
)

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
