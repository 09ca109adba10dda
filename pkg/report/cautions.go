package report

import (
	"fmt"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// mostOversleep is the share of oversleep in the compute time above which AU says more about the host than about storage.
const mostOversleep = 0.05

// Cautions says what a reader must know before trusting the AU and the rates of a record, a sentence each; nil when there is nothing.
// AU follows DLIO's rule, which counts a compute sleep as long as it took and leaves the first steps of an epoch out, so that it can be
// high although storage was slow:
//
//   - fewer than record.FewSteps steps of an epoch are in the window, and what was prefetched before it fills most of it;
//   - AU is met, and whole epochs were read at less than plan.required_bytes_per_second;
//   - compute sleeps took 5 % longer than prescribed, over all steps, as on a host that is short of processors or was stopped.
//
// The record is believed: whether its figures follow from the archive is for verification.
func Cautions(r *record.Record) []string {
	if r.Plan.Epochs == 0 {
		return nil
	}
	var list []string
	m := &r.Metrics
	if n, ok := windowSteps(r); ok && n > 0 && n < record.FewSteps {
		list = append(list, fmt.Sprintf("CAUTION: only %s of an epoch %s in the window of AU and throughput; what was prefetched before the window "+
			"weighs much in so few: use at least %d", plural(record.Int(n), "step"), isAre(n), record.FewSteps))
	}
	if q := r.Plan.RequiredBytesPerSecond; q != nil && m.Met != nil && *m.Met {
		if rate, _, ok := wholeEpochs(m.Epochs); ok && rate < *q {
			list = append(list, fmt.Sprintf("CAUTION: AU is met, but whole epochs, their first steps and the checkpoints in them included, were read at %s, "+
				"below the %s that this AU needs: storage was not shown to deliver it", rateText(rate), rateText(*q)))
		}
	}
	over, compute := m.Other["oversleep_total"].Value, m.Other["compute_total"].Value
	if over != nil && compute != nil && *over > mostOversleep**compute {
		list = append(list, fmt.Sprintf("CAUTION: compute sleeps took %s longer than prescribed, %.1f %% of the compute time, and AU counts that as "+
			"work: the host was busy or stopped", secondsText(*over), 100**over / *compute))
	}
	return list
}

// windowSteps is the number of steps of an epoch that the figures count; false where the workload of the record cannot be read.
func windowSteps(r *record.Record) (int64, bool) {
	w, err := workload.ParseCanonical(r.Workload.Canonical)
	if err != nil {
		return 0, false
	}
	x := &w.Output.Metric
	return int64(r.Plan.StepsPerEpoch) - int64(x.ExcludeStartSteps) - int64(x.ExcludeEndSteps), true
}

func isAre(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// cautions prints them below the result.
func (p *page) cautions(r *record.Record) {
	for _, caution := range Cautions(r) {
		for _, line := range wrap(caution, width-4) {
			p.line("    %s", p.paint(red, line))
		}
	}
}
