package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/report"
	"github.com/benchpin/benchpin/pkg/workload"
)

// CheckThresholds compares the figures of a complete run with the thresholds of its workload: metric.au and benchpin.thresholds. The
// error wraps ErrThreshold and names every threshold that was not met, and every one whose figure could not be computed. AU is not
// judged where the workload prescribes no compute time: there is then nothing to be utilised.
func CheckThresholds(w *workload.Workload, r *record.Record) error {
	var missed []error
	judge := func(name string, least float64, f record.Figure) {
		switch {
		case least <= 0:
		case f.Value == nil:
			missed = append(missed, fmt.Errorf("%s: at least %s was asked for, and it could not be computed: %s", name,
				report.ThresholdText(least, f.Unit), f.Absent))
		case *f.Value < least:
			found := report.ThresholdText(*f.Value, f.Unit)
			if f.Unit == "%" {
				found = report.FigureText(f) // as on every page
			}
			missed = append(missed, fmt.Errorf("%s: %s, expected at least %s", name, found, report.ThresholdText(least, f.Unit)))
		}
	}
	if w.Train.ComputationTime.Mean() > 0 {
		judge("AU", r.Plan.AUThreshold, r.Metrics.AU)
	}
	judge("samples_per_second", w.Benchpin.Thresholds.SamplesPerSecond, r.Metrics.SamplesPerSecond)
	judge("bytes_per_second", w.Benchpin.Thresholds.BytesPerSecond, r.Metrics.BytesPerSecond)
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrThreshold, strings.ReplaceAll(errors.Join(missed...).Error(), "\n", "; "))
}
