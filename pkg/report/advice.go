package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// PlainReads are reads of the files of a data set from end to end, as many at once as given and with nothing else to do: what the store
// gives who asks for it like that. They are measured after a run that missed its AU, and are no part of its record.
type PlainReads struct {
	Rates []PlainRate
	// Cold is true where the files were dropped from the page cache before, as the run did.
	Cold bool
}

// PlainRate is one measurement.
type PlainRate struct {
	Readers        int // at once
	Files          int64
	BytesPerSecond float64
}

// most is the highest of the rates.
func (p *PlainReads) most() (best PlainRate) {
	if p == nil {
		return best
	}
	return slices.MaxFunc(append([]PlainRate{{}}, p.Rates...), func(a, b PlainRate) int { return cmp.Compare(a.BytesPerSecond, b.BytesPerSecond) })
}

// Cause is why accelerators were not busy enough.
type Cause string

// The causes.
const (
	// CauseTurns: without read threads, reading and computing take turns.
	CauseTurns Cause = "turns"
	// CauseReaders: the readers were busy all the time; more of them would have read more.
	CauseReaders Cause = "readers"
	// CausePrefetch: readers were idle although data were waited for: they may not be far enough ahead to hide what is slow now and then.
	CausePrefetch Cause = "prefetch"
	// CauseStore: the store delivers no more.
	CauseStore Cause = "store"
	// CauseDecoding: the readers' time went into decoding, and the host has no processors left for more of them.
	CauseDecoding Cause = "decoding"
	// CauseOthers: accelerators waited for each other more than for data.
	CauseOthers Cause = "others"
	// CauseHashing: accelerators waited for what the verification hashed in the run.
	CauseHashing Cause = "hashing"
)

// Advice is what can be said of a run that missed its AU.
type Advice struct {
	Cause Cause
	// Went are the parts of the accelerators' time; Found says what was measured, Try what may help, a sentence each.
	Went, Found, Try []string
	// Threads and Prefetch are what Try says about reader.read_threads and reader.prefetch_size; 0 where it says nothing.
	Threads, Prefetch int
}

// Bounds of what is said.
const (
	// busyReaders is the share of their time from which readers count as busy all the time. Between two batches there is always a moment.
	busyReaders = 0.9
	// atLimit is the part of the plain rate at which the run reads as fast as the store lets it.
	atLimit = 0.8
	// mostThreads is the largest number of read threads that is proposed.
	mostThreads = 1024
	// mostPrefetch is the largest number of batches in flight that is proposed.
	mostPrefetch = 4096
)

// Advise says where the time of a complete run went that missed the threshold of its AU, and what to try; nil for every other run. The
// record is believed. plain may be nil, and what needs it is not said then.
//
// It is a rule of thumb about one run: it names the stage that was full, and what hides behind that shows when it is no longer.
func Advise(r *record.Record, plain *PlainReads) *Advice {
	m, p := &r.Metrics, &r.Plan
	if r.Status != record.StatusComplete || m.Met == nil || *m.Met || m.AU.Value == nil || p.ComputeSeconds <= 0 {
		return nil
	}
	x := newLosses(r)
	if x == nil {
		return nil
	}
	a := &Advice{}
	x.went(a)
	x.storage(a, plain)
	x.judge(a, plain)
	return a
}

func (a *Advice) found(format string, args ...any) {
	a.Found = append(a.Found, fmt.Sprintf(format, args...))
}

func (a *Advice) try(format string, args ...any) { a.Try = append(a.Try, fmt.Sprintf(format, args...)) }

// losses are the sums that advice rests on, in seconds over all accelerators.
type losses struct {
	r                              *record.Record
	compute, load, barrier, hash   float64
	open, read, decode, preprocess float64
	samples                        float64 // that were read for training
	threads                        int     // of an accelerator; 0 where it reads itself
	busy                           float64 // share of their time that readers worked
}

// newLosses is nil where the record lacks a sum: one of a run that ended before it had any.
func newLosses(r *record.Record) *losses {
	x := &losses{r: r, threads: r.Plan.ReadThreads, samples: float64(r.Plan.SamplesPerEpoch) * float64(r.Plan.Epochs)}
	for name, to := range map[string]*float64{"compute_total": &x.compute, "load_total": &x.load, "barrier_total": &x.barrier, "open_total": &x.open,
		"read_total": &x.read, "decode_total": &x.decode} {
		f := r.Metrics.Other[name]
		if f.Value == nil {
			return nil
		}
		*to = *f.Value
	}
	if f := r.Metrics.Other["preprocess_total"]; f.Value != nil { // absent in records of earlier versions
		x.preprocess = *f.Value
	}
	if i := r.Dataset.Verification.Inline; i != nil {
		x.hash = i.WaitedSeconds
	}
	var wall float64
	for _, e := range r.Metrics.Epochs {
		if e.Seconds.Value == nil {
			return nil
		}
		wall += *e.Seconds.Value
	}
	if wall <= 0 || x.samples <= 0 {
		return nil
	}
	x.busy = min(1, x.work()/(wall*float64(max(1, x.threads)*max(1, r.Plan.Accelerators))))
	return x
}

// work is the readers' time.
func (x *losses) work() float64 { return x.open + x.read + x.decode + x.preprocess }

// went says where the accelerators' time went.
func (x *losses) went(a *Advice) {
	all := x.compute + x.load + x.barrier + x.hash
	for _, part := range []struct {
		name string
		time float64
	}{{"computing", x.compute}, {"waiting for data", x.load}, {"waiting for each other", x.barrier}, {"waiting for hashing", x.hash}} {
		if part.time > 0 {
			a.Went = append(a.Went, fmt.Sprintf("%s %.1f %%", part.name, 100*part.time/all))
		}
	}
	work := x.work()
	if work <= 0 {
		return
	}
	var parts []string
	for _, part := range []struct {
		name string
		time float64
	}{{"reading", x.read}, {"opening files", x.open}, {"decoding", x.decode}, {"preprocessing", x.preprocess}} {
		if part.time > 0.005*work {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", part.name, 100*part.time/work))
		}
	}
	a.found("readers (%s) worked %.0f %% of the time: %s of it", x.readers(), 100*x.busy, strings.Join(parts, ", "))
}

func (x *losses) readers() string {
	n := record.Int(x.r.Plan.Accelerators)
	if x.threads == 0 {
		return "the accelerators themselves, which have no read threads"
	}
	return fmt.Sprintf("%s, %d each", plural(n, "accelerator"), x.threads)
}

// storage says what was asked of the store, what AU needs, and what plain reads come to.
func (x *losses) storage(a *Advice, plain *PlainReads) {
	rate, need := x.r.Metrics.BytesPerSecond.Value, x.r.Plan.RequiredBytesPerSecond
	if rate == nil || need == nil {
		return
	}
	a.found("the run read at %s, and this AU needs %s", shortRate(*rate), shortRate(*need))
	if plain == nil || len(plain.Rates) == 0 {
		return
	}
	var rates []string
	for _, one := range plain.Rates {
		rates = append(rates, fmt.Sprintf("%s, %d at once", shortRate(one.BytesPerSecond), one.Readers))
	}
	how := "as the page cache had them"
	if plain.Cold {
		how = "after they were dropped from the page cache"
	}
	a.found("plain reads of the same files, %s, came to %s", how, strings.Join(rates, "; "))
}

func shortRate(v float64) string { return decimalBytes(v) + "/s" }

// others: one accelerator was slower than the rest, or another one at each step.
func (x *losses) others(a *Advice) {
	a.Cause = CauseOthers
	sums := make([]float64, x.r.Plan.Accelerators)
	for _, e := range x.r.Metrics.Epochs {
		if e.Waits == nil || len(e.Waits.Ranks) != len(sums) {
			sums = nil
			break
		}
		for i, w := range e.Waits.Ranks {
			sums[i] += w.Load
		}
	}
	if len(sums) > 1 {
		slowest := 0
		var all float64
		for i, s := range sums {
			all += s
			if s > sums[slowest] {
				slowest = i
			}
		}
		if others := (all - sums[slowest]) / float64(len(sums)-1); sums[slowest] > 2*others {
			a.found("accelerator %d waited %s for data, the others %s on average: it holds them up", slowest, secondsText(sums[slowest]), secondsText(others))
		} else {
			a.found("no accelerator is slower than the others over the run: at each step another one is, and all wait for it")
		}
	}
	x.ahead(a, "every step waits for the slowest of its batches, and batches that are ready ahead hide one that is slow")
	a.try("look for what is slow now and then: the longest wait for a batch was %s, and half of them were below %s", x.figure("load_max"), x.figure("load_p50"))
}

func (x *losses) figure(name string) string { return FigureText(x.r.Metrics.Other[name]) }

// judge finds the cause. A store at its limit and readers without time are looked for first: with many accelerators either shows as waiting for
// each other too, because one of them is the last to be served.
func (x *losses) judge(a *Advice, plain *PlainReads) {
	rate, need, best := x.r.Metrics.BytesPerSecond.Value, x.r.Plan.RequiredBytesPerSecond, plain.most()
	fromStore := x.read+x.open > x.work()/2
	limited := fromStore && rate != nil && need != nil && best.BytesPerSecond > 0 && (best.BytesPerSecond < *need || *rate > atLimit*best.BytesPerSecond)
	switch {
	case x.hash > x.load+x.barrier:
		a.Cause = CauseHashing
		a.try("--verify before, after or sample: hashing in the run (inline) needs %.1f cores here, and accelerators waited %s for it",
			x.r.Dataset.Verification.Inline.Cores, secondsText(x.hash))
	case x.threads == 0:
		a.Cause = CauseTurns
		x.threadsFor(a, "without read threads the accelerator reads and computes in turns")
	case limited:
		a.Cause = CauseStore
		a.try("a faster store, or fewer accelerators on this one: the run read at %.0f %% of what plain reads come to, and this AU needs %.0f %%",
			100**rate/best.BytesPerSecond, 100**need/best.BytesPerSecond)
		if *rate <= atLimit*best.BytesPerSecond {
			x.more(a, ", which gives a part of it")
		}
	case x.busy >= busyReaders && x.decode > x.work()/2 && x.full():
		a.Cause = CauseDecoding
		a.try("fewer accelerators on this host, or more processors: decoding takes %s of a reader for each sample, and the %s are taken",
			secondsText(x.decode/x.samples), plural(record.Int(*x.r.Environment.CPU.Usable), "processor"))
		a.try("a container that costs less to decode (dataset.format), or none of its compression (dataset.compression)")
	case x.busy < busyReaders && x.barrier > x.load:
		x.others(a)
	default:
		a.Cause = x.more(a, "")
	}
}

// more asks more of the store: with more readers where they are busy, else by being further ahead.
func (x *losses) more(a *Advice, why string) Cause {
	if x.busy >= busyReaders {
		x.threadsFor(a, "the readers had no time left"+why)
		return CauseReaders
	}
	x.ahead(a, fmt.Sprintf("readers were idle %.0f %% of the time, while accelerators waited: they may not be further ahead than this%s", 100*(1-x.busy), why))
	return CausePrefetch
}

// full says whether as many readers as there are processors were at work.
func (x *losses) full() bool {
	n := x.r.Environment.CPU.Usable
	return n != nil && float64(x.threads*x.r.Plan.Accelerators)*x.busy >= float64(*n)*busyReaders
}

// threadsFor proposes as many read threads as the work on a sample and the samples of a second make necessary.
func (x *losses) threadsFor(a *Advice, because string) {
	each := x.work() / x.samples
	need := x.r.Plan.RequiredFilesPerSecond
	n := x.threads + 1
	why := ""
	if need != nil && each > 0 {
		perAccelerator := *need / float64(x.r.Plan.Accelerators)
		n = max(n, int(math.Ceil(each*perAccelerator)))
		why = fmt.Sprintf("; a sample takes %s of a reader, and an accelerator needs %s a second", secondsText(each), digits(perAccelerator))
	}
	if n > mostThreads {
		a.try("a data set whose samples take less than %s of a reader: %d read threads would be needed", secondsText(each), n)
		return
	}
	a.Threads = n
	a.try("--set reader.read_threads=%d (found %d): %s%s", n, x.threads, because, why)
	if now := x.inFlight(); x.r.Plan.Loader == "" && now < 2*n {
		a.Prefetch = 2 * n
		a.try("with it --set reader.prefetch_size=%d, two batches for each read thread (%d were in flight)", 2*n, now)
	}
}

// ahead proposes a prefetch that bridges the longest waits.
func (x *losses) ahead(a *Advice, because string) {
	now := x.inFlight()
	wait, compute := x.r.Metrics.Other["load_max"].Value, x.r.Plan.ComputeSeconds
	n := 2 * now
	if wait != nil {
		n = max(n, now+int(min(mostPrefetch, math.Ceil(*wait/compute))))
	}
	n = min(n, max(now, mostPrefetch))
	a.Prefetch = n
	a.try("--set reader.prefetch_size=%d (%s in flight now): %s", n, inFlightText(now), because)
}

// inFlight is how many batches of an accelerator are under way or ready: workers times their factor with pytorch, what is taken ahead with
// the other loaders.
func (x *losses) inFlight() int {
	if x.r.Plan.Loader != "" {
		return max(1, x.r.Plan.PrefetchFactor)
	}
	return max(1, x.r.Plan.PrefetchFactor) * max(1, x.threads)
}

func inFlightText(n int) string {
	if n == 1 {
		return "1 batch is"
	}
	return count(record.Int(n)) + " batches are"
}

// advice prints it below the result.
func (p *page) advice(r *record.Record, plain *PlainReads) {
	a := Advise(r, plain)
	if a == nil {
		return
	}
	p.title("Why AU was not met (H)")
	p.row("", "accelerators", strings.Join(a.Went, ", "))
	for i, s := range a.Found {
		p.row("", map[bool]string{true: "measured"}[i == 0], s)
	}
	for i, s := range a.Try {
		p.row("", map[bool]string{true: "try"}[i == 0], s)
	}
}
