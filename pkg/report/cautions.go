package report

import (
	"fmt"
	"strconv"
	"strings"

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
//   - most of the bytes of an epoch came from memory, so that storage was hardly asked;
//   - most of them were in the page cache when it began, although devices delivered much: what they read ahead counts there too;
//   - the data set was to be dropped from the page cache before an epoch, and a good part of it stayed;
//   - it was to be dropped, and nothing shows whether that worked;
//   - the data set lies in memory, where changes through mappings that stood before it was verified leave no trace;
//   - the disk of the data set is memory, or a file;
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
	if caution := memoryCaution(m.Epochs); caution != "" {
		list = append(list, caution)
	}
	if caution := cachedCaution(m.Epochs); caution != "" {
		list = append(list, caution)
	}
	if caution := coldCaution(m.Epochs); caution != "" {
		list = append(list, caution)
	}
	if caution := unseenCaution(m.Epochs); caution != "" {
		list = append(list, caution)
	}
	if caution := mappingCaution(r); caution != "" {
		list = append(list, caution)
	}
	list = append(list, backingCautions(r)...)
	if s := r.Dataset.Verification.Sample; s != nil {
		list = append(list, fmt.Sprintf("CAUTION: a sample of %d of %s was compared with the manifest: it hits one of %s damaged with 95 %%, and fewer may be "+
			"damaged and nobody knows", r.Dataset.Verification.Files, plural(s.Of, "file"), plural(s.Found95, "file")))
	}
	over, compute := m.Other["oversleep_total"].Value, m.Other["compute_total"].Value
	if over != nil && compute != nil && *over > mostOversleep**compute {
		list = append(list, fmt.Sprintf("CAUTION: compute sleeps took %s longer than prescribed, %.1f %% of the compute time, and AU counts that as "+
			"work: the host was busy or stopped", secondsText(*over), 100**over / *compute))
	}
	return list
}

// memoryCaution says which epochs came from memory for the most part.
func memoryCaution(epochs []record.EpochMetrics) string {
	var which []string
	var memory, asked, cached float64
	known := true
	for i := range epochs {
		s := epochs[i].Storage
		if s == nil || s.Memory.Value == nil || epochs[i].BytesAsked.Value == nil || *s.Memory.Value <= *epochs[i].BytesAsked.Value/2 {
			continue
		}
		which = append(which, strconv.Itoa(epochs[i].Epoch))
		memory += *s.Memory.Value
		asked += *epochs[i].BytesAsked.Value
		for _, f := range s.FileSystems {
			if f.CachedBefore.Value == nil {
				known = false
			} else {
				cached += *f.CachedBefore.Value
			}
		}
	}
	if len(which) == 0 {
		return ""
	}
	text := fmt.Sprintf("CAUTION: most of what %s asked for came from memory and not from storage: %s of %s (%.1f %%)", named(which, len(epochs)),
		decimalBytes(memory), decimalBytes(asked), 100*memory/asked)
	if known {
		text += fmt.Sprintf("; the page cache held %s of the data set when %s began", decimalBytes(cached/float64(len(which))), itThey(len(which)))
	}
	return text + ". AU and rates there say little about storage: drop the pages before each epoch (--cold), or use a data set larger than memory"
}

// mostNamed is how many epochs a caution names.
const mostNamed = 8

// named names epochs, of so many.
func named(which []string, of int) string {
	switch {
	case len(which) == 1:
		return "epoch " + which[0]
	case len(which) == of:
		return fmt.Sprintf("all %d epochs", of)
	case len(which) > mostNamed:
		return fmt.Sprintf("%d of %d epochs (%s, ...)", len(which), of, strings.Join(which[:mostNamed], ", "))
	}
	return "epochs " + strings.Join(which[:len(which)-1], ", ") + " and " + which[len(which)-1]
}

func itThey(n int) string {
	if n == 1 {
		return "it"
	}
	return "they"
}

// mostKept is the share of an epoch's bytes that may stay in the page cache after it was dropped.
const mostKept = 0.02

// coldCaution says that dropping the data set from the page cache did not work.
func coldCaution(epochs []record.EpochMetrics) string {
	var which []string
	var kept float64
	for i := range epochs {
		s := epochs[i].Storage
		if s == nil || s.Dropped == nil || epochs[i].BytesAsked.Value == nil {
			continue
		}
		var cached float64
		for _, f := range s.FileSystems {
			if f.CachedBefore.Value != nil {
				cached += *f.CachedBefore.Value
			}
		}
		if cached > mostKept**epochs[i].BytesAsked.Value {
			which = append(which, strconv.Itoa(epochs[i].Epoch))
			kept = max(kept, cached)
		}
	}
	if len(which) == 0 {
		return ""
	}
	return fmt.Sprintf("CAUTION: the data set was to be dropped from the page cache before %s, and up to %s of it stayed: the file system keeps its "+
		"pages, or somebody else uses them", named(which, len(epochs)), decimalBytes(kept))
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
