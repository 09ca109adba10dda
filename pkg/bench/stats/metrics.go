package stats

import (
	"fmt"
	"math"

	"github.com/benchpin/benchpin/pkg/record"
)

// metrics makes the figures after the last row.
func (s *summary) metrics(devices []Device) (record.Metrics, error) {
	if err := s.endEpoch(); err != nil {
		return record.Metrics{}, err
	}
	if s.overflow {
		return record.Metrics{}, fmt.Errorf("%w: some sum of the rows does not fit into 64 bits", ErrImpossible)
	}
	m := record.Metrics{
		Threshold: record.Figure{Value: &s.p.AUThreshold, Unit: "%", Class: record.Recomputable},
		Epochs:    make([]record.EpochMetrics, 0, len(s.epochs)),
		DLIO:      map[string]any{},
		Other:     map[string]record.Figure{},
	}
	var all epochSums
	for i := range s.epochs {
		e := &s.epochs[i]
		em, err := s.epochMetrics(e, devices)
		if err != nil {
			return record.Metrics{}, err
		}
		m.Epochs = append(m.Epochs, em)
		s.plus(&all.compute, e.compute)
		s.plus(&all.prescribed, e.prescribed)
		s.plus(&all.window, e.window)
		s.plus(&all.winWall, e.winWall)
		s.plus(&all.winSamples, e.winSamples)
		s.plus(&all.winBytes, e.winBytes)
	}
	var err error
	if m.AU, err = s.au(&all, all.compute); err != nil {
		return record.Metrics{}, err
	}
	m.SamplesPerSecond = s.rate(all.winSamples, all.winWall, "samples/s")
	m.BytesPerSecond = s.rate(all.winBytes, all.winWall, "B/s")
	if least := s.p.LeastBytes; s.total.bytes < least && !s.p.Partial {
		return record.Metrics{}, fmt.Errorf("%w: %d bytes were asked for, and the files that were read have %d", ErrImpossible, s.total.bytes, least)
	}
	if m.AU.Value != nil && !s.p.Partial {
		met := *m.AU.Value >= s.p.AUThreshold
		m.Met = &met
	}
	s.other(&m, &all)
	if !s.p.Partial {
		s.dlio(m.DLIO)
	}
	if s.overflow {
		return record.Metrics{}, fmt.Errorf("%w: some sum of the epochs does not fit into 64 bits", ErrImpossible)
	}
	return m, nil
}

// epochMetrics are the figures of one epoch.
func (s *summary) epochMetrics(e *epochSums, devices []Device) (record.EpochMetrics, error) {
	au, err := s.au(e, e.compute)
	if err != nil {
		return record.EpochMetrics{}, fmt.Errorf("epoch %d: %w", e.epoch, err)
	}
	m := record.EpochMetrics{
		Epoch:            e.epoch,
		Steps:            record.Int(e.steps),
		Seconds:          seconds(e.end - e.first),
		AU:               au,
		SamplesPerSecond: s.rate(e.winSamples, e.winWall, "samples/s"),
		BytesPerSecond:   s.rate(e.winBytes, e.winWall, "B/s"),
		BytesAsked:       measured(nanos(e.bytes), "B"),
		BytesDevice:      absent("B", "nothing was counted in this epoch"),
		Waits:            e.waits,
	}
	for i := range devices {
		d := &devices[i]
		if d.Epoch != e.epoch {
			continue
		}
		if d.Bytes != nil {
			m.BytesDevice = measured(nanos(int64(*d.Bytes)), "B")
		} else {
			m.BytesDevice = absent("B", d.Absent)
		}
		if m.Storage, err = s.storage(e, d); err != nil {
			return record.EpochMetrics{}, err
		}
	}
	return m, nil
}

// au is accelerator utilisation, for a sum of compute times over the window of e.
func (s *summary) au(e *epochSums, compute int64) (record.Figure, error) {
	switch {
	case e.winSamples == 0:
		return absent("%", s.emptyWindow()), nil
	case e.prescribed == 0:
		return absent("%", "the workload prescribes no compute time, so there is nothing to be utilised"), nil
	case e.window == 0:
		return absent("%", "no time passed in the window"), nil
	}
	v := 100 * nanos(compute) / nanos(e.window)
	if v > 100 {
		return record.Figure{}, fmt.Errorf("%w: AU is %v%%: %d ns of compute in %d ns", ErrImpossible, v, compute, e.window)
	}
	return measured(v, "%"), nil
}

// rate is n over a time in ns, per second.
func (s *summary) rate(n, ns int64, unit string) record.Figure {
	switch {
	case n == 0:
		return absent(unit, s.emptyWindow())
	case ns == 0:
		return absent(unit, "no time passed in the window")
	}
	return measured(nanos(n)/(nanos(ns)/1e9), unit)
}

// emptyWindow is the reason why a figure of the window is absent when the window holds nothing.
func (s *summary) emptyWindow() string {
	steps := "steps"
	if s.p.StepsPerEpoch == 1 {
		steps = "step"
	}
	return fmt.Sprintf("nothing was run in the window: %d %s an epoch, without the first %d and the last %d", s.p.StepsPerEpoch, steps,
		s.p.ExcludeStart, s.p.ExcludeEnd)
}

// other adds the figures that DLIO does not have.
func (s *summary) other(m *record.Metrics, all *epochSums) {
	type named struct {
		name string
		h    *histogram
	}
	histograms := []named{{"load", &s.load}, {"compute", &s.compute}, {"oversleep", &s.oversleep}, {"barrier", &s.barrier}, {"step", &s.step}}
	if s.waits != nil {
		histograms = append(histograms, named{"queue", &s.queue}, named{"ready", &s.ready})
		w := &s.total.waits
		for name, v := range map[string]int64{"wait_queue_total": w[partQueue], "wait_open_total": w[partOpen], "wait_read_total": w[partRead],
			"wait_decode_total": w[partDecode], "wait_other_total": w[partOther], "preprocess_total": s.total.preprocess} {
			m.Other[name] = seconds(v)
		}
	}
	for _, h := range histograms {
		for _, q := range []struct {
			name     string
			permille int64
		}{{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p99_9", 999}, {"max", 1000}} {
			f := absent("s", "no step was run")
			if v, ok := h.h.quantile(q.permille); ok {
				f = seconds(v)
			}
			m.Other[h.name+"_"+q.name] = f
		}
	}
	t := &s.total
	for name, v := range map[string]int64{
		"load_total": t.load, "open_total": t.open, "read_total": t.read, "decode_total": t.decode, "compute_total": t.compute,
		"oversleep_total": t.oversleep, "barrier_total": t.barrier, "excluded_barrier_total": t.excludedBarriers,
	} {
		m.Other[name] = seconds(v)
	}
	m.Other["bytes_asked"] = measured(nanos(t.bytes), "B")
	// What was prescribed may exceed the window when the sleeps came out short; it is then no share of it.
	f, err := s.au(all, all.prescribed)
	if err != nil {
		f = absent("%", "the compute sleeps were shorter than prescribed")
	}
	m.Other["au_prescribed"] = f
}

// dlio adds DLIO's figures under DLIO's names, computed as DLIO does (facts of summary.json).
func (s *summary) dlio(m map[string]any) {
	for i := range s.epochs {
		if s.epochs[i].dlioAbsent {
			return
		}
	}
	if len(s.epochs) == 0 {
		return
	}
	au, rate := make([]float64, len(s.epochs)), make([]float64, len(s.epochs))
	for i := range s.epochs {
		au[i], rate[i] = s.epochs[i].dlioAU, s.epochs[i].dlioRate
	}
	dlioSummary(m, au, rate, s.p)
}

// dlioSummary is the run level of DLIO's figures: from each epoch's AU and samples/s.
func dlioSummary(m map[string]any, au, rate []float64, p Params) {
	auMean, auStdev := meanStdev(au)
	rateMean, rateStdev := meanStdev(rate)
	// DLIO multiplies the mean and the deviation of the rate; its "MB" is 2^20 bytes.
	io := func(v float64) float64 { return v * p.RecordBytes / 1024 / 1024 }
	meets := "fail"
	if auMean >= p.AUThreshold {
		meets = "success"
	}
	of := "train_"
	if p.Evaluation {
		of = "eval_"
	}
	m[of+"au_percentage"] = au
	m[of+"au_mean_percentage"] = auMean
	m[of+"au_stdev_percentage"] = auStdev
	m[of+"au_meet_expectation"] = meets
	m[of+"throughput_samples_per_second"] = rate
	m[of+"throughput_mean_samples_per_second"] = rateMean
	m[of+"throughput_stdev_samples_per_second"] = rateStdev
	m[of+"io_mean_MB_per_second"] = io(rateMean)
	m[of+"io_stdev_MB_per_second"] = io(rateStdev)
}

// meanStdev are the mean and the population standard deviation, summed in order. (numpy sums pairwise from 8 values on; the last bit
// may differ.)
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

// measured is a figure that only the host knows.
func measured(v float64, unit string) record.Figure {
	return record.Figure{Value: &v, Unit: unit, Class: record.HostOnly}
}

// seconds is a measured time in ns as seconds.
func seconds(ns int64) record.Figure { return measured(nanos(ns)/1e9, "s") }

// absent is a figure that could not be computed.
func absent(unit, reason string) record.Figure {
	return record.Figure{Unit: unit, Class: record.HostOnly, Absent: reason}
}
