package pipeline

import (
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// TestThresholdMessages: figures are written as on the pages, with their units, and what is missed never looks as if it were met.
func TestThresholdMessages(t *testing.T) {
	for _, c := range []struct {
		au, rate, least float64
		want            string
	}{
		{99.9456, 50, 99.95, "AU: 99.94 %, expected at least 99.95 %"},
		{99.9956, 50, 100 * 0.9999999000000001, "AU: 99.99 %, expected at least 99.99999 %"},
		{100, 1000.04, 90, "samples_per_second: 1000.04 samples/s, expected at least 1000.05 samples/s"},
	} {
		w := small(t, "benchpin.thresholds.samples_per_second=1000.05").Workload
		r := &record.Record{Plan: record.Plan{AUThreshold: c.least}, Metrics: record.NoMetrics(c.least, "")}
		r.Metrics.AU.Value, r.Metrics.SamplesPerSecond.Value = &c.au, &c.rate
		if err := CheckThresholds(w, r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("expected %q, found %v", c.want, err)
		}
	}
}

// TestAbsentUtilisation: without prescribed compute there is nothing to judge; an empty window cannot be judged, unless nothing is asked.
func TestAbsentUtilisation(t *testing.T) {
	for _, c := range []struct {
		set   string
		least float64
		met   bool
	}{{"train.computation_time=0", 90, true}, {"train.computation_time=0.1", 90, false}, {"train.computation_time=0.1", 0, true}} {
		r := &record.Record{Plan: record.Plan{AUThreshold: c.least}, Metrics: record.NoMetrics(c.least, "nothing was run in the window")}
		if err := CheckThresholds(small(t, c.set).Workload, r); (err == nil) != c.met || err != nil && !strings.Contains(err.Error(), "at least 90.00 % was asked for") {
			t.Errorf("%s, threshold %v: found %v", c.set, c.least, err)
		}
	}
}
