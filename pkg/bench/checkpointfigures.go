package bench

import (
	"math"
	"slices"

	"github.com/benchpin/benchpin/pkg/record"
)

// CheckpointMetrics are the figures of a run that only writes and reads checkpoints: they follow from the record's times of every rank.
// complete is false for a run that ended early.
func CheckpointMetrics(p *Plan, c record.Checkpoints, complete bool) record.Metrics {
	m := record.NoMetrics(p.AUThreshold, errNoTraining.Error())
	checkpointFigures(&m, p, c, complete)
	return m
}

// AddCheckpointFigures adds the figures of the checkpoints of a training run to those of its steps.
func AddCheckpointFigures(m *record.Metrics, p *Plan, c record.Checkpoints) {
	checkpointFigures(m, p, c, len(c.Saves) == p.Checkpoints && len(c.Loads) == p.CheckpointReads)
}

// phase is writing or reading.
type phase struct {
	name string
	// seconds are each checkpoint's times of every rank.
	seconds [][]float64
}

// checkpointFigures adds, for writes and for reads:
//
//   - the duration of a checkpoint, which is that of its slowest rank: mean and longest;
//   - the throughput of a checkpoint, which is its payload over all ranks by that duration, and so the least that a rank saw: mean and
//     least;
//   - DLIO's figures under DLIO's names, from the first rank's durations and the size as DLIO counts it. Only of whole runs.
func checkpointFigures(m *record.Metrics, p *Plan, c record.Checkpoints, complete bool) {
	if p.model == nil || len(c.Saves)+len(c.Loads) == 0 {
		return
	}
	saves, loads := phase{name: "save_checkpoint"}, phase{name: "load_checkpoint"}
	var write, starved, waited float64
	for _, s := range c.Saves {
		saves.seconds = append(saves.seconds, s.Seconds)
		write, starved = max(write, longest(s.WriteSeconds)), max(starved, longest(s.StarvedSeconds))
	}
	for _, l := range c.Loads {
		loads.seconds = append(loads.seconds, l.Seconds)
		waited = max(waited, longest(l.WaitedSeconds))
	}
	const gib = 1 << 30
	size := float64(p.model.DLIOBytes()) / gib
	if complete {
		m.DLIO["checkpoint_size_GB"] = size
	}
	for _, ph := range []phase{saves, loads} {
		if len(ph.seconds) == 0 {
			continue
		}
		var durations, rates, first, firstRates []float64
		for _, ranks := range ph.seconds {
			slowest := longest(ranks)
			durations = append(durations, slowest)
			if slowest > 0 {
				rates = append(rates, float64(p.model.PayloadPerCheckpoint())/slowest)
			}
			if len(ranks) > 0 && ranks[0] > 0 {
				first, firstRates = append(first, ranks[0]), append(firstRates, size/ranks[0])
			}
		}
		mean, _ := meanStdev(durations)
		m.Other[ph.name+"_seconds_mean"] = hostFigure(mean, "s")
		m.Other[ph.name+"_seconds_max"] = hostFigure(slices.Max(durations), "s")
		if len(rates) == len(durations) {
			mean, _ = meanStdev(rates)
			m.Other[ph.name+"_bytes_per_second_mean"] = hostFigure(mean, "B/s")
			m.Other[ph.name+"_bytes_per_second_min"] = hostFigure(slices.Min(rates), "B/s")
		} else {
			none := record.Figure{Unit: "B/s", Class: record.HostOnly, Absent: "no time passed"}
			m.Other[ph.name+"_bytes_per_second_mean"], m.Other[ph.name+"_bytes_per_second_min"] = none, none
		}
		if complete && len(first) == len(durations) {
			m.DLIO[ph.name+"_duration_mean_seconds"], m.DLIO[ph.name+"_duration_stdev_seconds"] = meanStdev(first)
			m.DLIO[ph.name+"_io_mean_GB_per_second"], m.DLIO[ph.name+"_io_stdev_GB_per_second"] = meanStdev(firstRates)
		}
	}
	if len(c.Saves) > 0 {
		m.Other["save_checkpoint_write_seconds_max"] = hostFigure(write, "s")
		m.Other["save_checkpoint_starved_seconds_max"] = hostFigure(starved, "s")
	}
	if len(c.Loads) > 0 {
		m.Other["load_checkpoint_waited_seconds_max"] = hostFigure(waited, "s")
	}
}

func longest(seconds []float64) float64 {
	if len(seconds) == 0 {
		return 0
	}
	return slices.Max(seconds)
}

func hostFigure(v float64, unit string) record.Figure {
	return record.Figure{Value: &v, Unit: unit, Class: record.HostOnly}
}

// meanStdev are the mean and the population standard deviation, summed in order.
func meanStdev(v []float64) (mean, stdev float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x
	}
	mean /= n
	for _, x := range v {
		d := x - mean
		stdev += float64(d * d)
	}
	return mean, math.Sqrt(stdev / n)
}
