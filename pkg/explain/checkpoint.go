package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// times are those of the checkpoints that were written, or read: of each the seconds of every rank.
func (s *Source) times(phase string) (names []string, seconds [][]float64) {
	if phase == "save" {
		for _, c := range s.Record.Checkpoints.Saves {
			names, seconds = append(names, c.Name), append(seconds, c.Seconds)
		}
		return names, seconds
	}
	for _, c := range s.Record.Checkpoints.Loads {
		names, seconds = append(names, c.Name), append(seconds, c.Seconds)
	}
	return names, seconds
}

// most is the greatest of all times of a kind.
func most(lists [][]float64) float64 {
	v := 0.0
	for _, l := range lists {
		for _, t := range l {
			v = max(v, t)
		}
	}
	return v
}

// checkpointFigure explains a figure of metrics.other about checkpoints.
func (s *Source) checkpointFigure(x *Explanation, name string) error {
	phase, rest, _ := strings.Cut(name, "_checkpoint_")
	names, seconds := s.times(phase)
	x.Source = "checkpoints." + phase + "s of the record: the seconds of every rank"
	switch rest {
	case "write_seconds_max", "starved_seconds_max", "waited_seconds_max":
		var lists [][]float64
		for _, c := range s.Record.Checkpoints.Saves {
			if rest == "write_seconds_max" {
				lists = append(lists, c.WriteSeconds)
			} else {
				lists = append(lists, c.StarvedSeconds)
			}
		}
		if rest == "waited_seconds_max" {
			lists = nil
			for _, c := range s.Record.Checkpoints.Loads {
				lists = append(lists, c.WaitedSeconds)
			}
		}
		part := strings.TrimSuffix(rest, "_max")
		x.Meaning, x.Formula = "the longest "+part+" of any rank", "max over all checkpoints and ranks of "+part
		x.Computed = most(lists)
		return nil
	}
	payload := float64(s.Record.Plan.CheckpointBytes)
	x.Table = &Table{Columns: []string{"checkpoint", "slowest rank s", "B/s"}}
	var slowest, rates []float64
	for i, ranks := range seconds {
		t := most([][]float64{ranks})
		slowest = append(slowest, t)
		if t > 0 {
			rates = append(rates, payload/t)
			x.Table.add(names[i], t, payload/t)
		} else {
			x.Table.add(names[i], t, nil)
		}
	}
	x.input("checkpoints", int64(len(seconds)), "", "")
	if strings.HasPrefix(rest, "bytes_per_second") {
		x.input("payload", payload, "B", "plan.checkpoint_bytes, over all ranks")
		if len(rates) != len(slowest) {
			x.Formula = "none: the figure is absent"
			return nil
		}
	}
	mean := func(v []float64) float64 { m, _ := spread(v); return m }
	switch rest {
	case "seconds_mean":
		x.Meaning, x.Formula, x.Computed = "mean duration of a checkpoint, which is that of its slowest rank", "mean of the slowest ranks' seconds", mean(slowest)
	case "seconds_max":
		x.Meaning, x.Formula, x.Computed = "longest duration of a checkpoint, which is that of its slowest rank", "max of the slowest ranks' seconds", slices.Max(slowest)
	case "bytes_per_second_mean":
		x.Meaning, x.Formula, x.Computed = "mean throughput of a checkpoint", "mean of payload / seconds of the slowest rank", mean(rates)
	case "bytes_per_second_min":
		x.Meaning, x.Formula, x.Computed = "least throughput of a checkpoint", "min of payload / seconds of the slowest rank", slices.Min(rates)
	default:
		return ErrNoFigure
	}
	return nil
}

// dlioCheckpoint explains a figure about checkpoints under DLIO's name.
func (s *Source) dlioCheckpoint(x *Explanation, name string) error {
	x.Meaning = "as DLIO computes it: "
	size := float64(s.DLIOCheckpointBytes) / (1 << 30)
	x.input("size", size, "2^30 B", "the model state of the workload, as DLIO counts it: docs/checkpoint.md")
	if name == "checkpoint_size_GB" {
		x.Meaning += "size of a checkpoint in units of 2^30 bytes"
		x.Source, x.Formula, x.Computed = "the workload", "bytes as DLIO counts them / 2^30", size
		return nil
	}
	phase, rest, _ := strings.Cut(name, "_checkpoint_")
	names, seconds := s.times(phase)
	x.Source = "checkpoints." + phase + "s of the record: the seconds of the first rank"
	x.Table = &Table{Columns: []string{"checkpoint", "first rank s", "2^30 B/s"}}
	var first, rates []float64
	for i, ranks := range seconds {
		if len(ranks) == 0 || ranks[0] == 0 {
			return nil
		}
		first, rates = append(first, ranks[0]), append(rates, size/ranks[0])
		x.Table.add(names[i], ranks[0], size/ranks[0])
	}
	of, what := first, "durations of the first rank"
	if strings.HasPrefix(rest, "io_") {
		of, what = rates, "size / duration of the first rank"
	}
	mean, stdev := spread(of)
	if x.Formula, x.Computed = "mean of "+what, mean; strings.Contains(rest, "stdev") {
		x.Formula, x.Computed = "population standard deviation of "+what, stdev
	}
	x.Meaning += x.Formula + ", over all checkpoints"
	return nil
}

// checkpoint explains a number of the record's checkpoints: those were measured, or follow from the plan, and are what others are computed
// from.
func (s *Source) checkpoint(x *Explanation, path []string) error {
	x.Meaning, x.Source, x.Formula = "measured by the run, in seconds after its start or as a duration", "the record itself", "as it was measured"
	x.Class = "H"
	last := path[len(path)-1]
	if strings.HasSuffix(last, "seconds") {
		x.Unit = "s"
	} else {
		x.Unit = "B"
	}
	name := strings.Join(path, ".")
	switch path[0] {
	case "eviction":
		x.Meaning = "how much of the checkpoints to be read was in the page cache before and after they were dropped"
	case "saves", "loads":
		i, err := strconv.Atoi(path[1])
		if err != nil || i < 1 {
			return ErrNoFigure
		}
		if last == "bytes" && path[0] == "saves" {
			x.Meaning, x.Source, x.Formula, x.Class = "size of all files of the checkpoint", "the workload and its seed", "sum of the sizes of its files; verification makes them again", "C"
		} else if last == "bytes" {
			x.Meaning, x.Formula, x.Class = "bytes that all ranks read back", "sum over the ranks; verification computes it from the plan", "C"
		} else if last == "device_bytes" {
			x.Meaning = "bytes that came from block devices meanwhile, as the kernel counted them for the process"
		}
	}
	x.input(name, x.Recorded, x.Unit, fmt.Sprintf("checkpoints.%s", name))
	x.Computed = plain(x.Recorded)
	return nil
}

// plain turns a list of numbers as JSON gives it into one of Go.
func plain(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]float64, 0, len(list))
	for _, e := range list {
		f, ok := e.(float64)
		if !ok {
			return v
		}
		out = append(out, f)
	}
	return out
}
