// Package live shows a run while it goes on: it turns counts that the engine keeps anyhow into samples (rates, utilisation so far, time left,
// the slowest stage now), a few lines for a terminal, lines of JSON, and figures for Prometheus.
//
// What it shows is for people who wait. Nothing of it goes into a record, nothing is judged by it, and it never touches the engine: it looks
// at counters from outside, once a second, and what it hands samples to may be slow without the run noticing.
package live

import (
	"time"
)

// Phase is what an accelerator does at a moment.
type Phase int

// The phases.
const (
	// Idle is the time outside of epochs and checkpoints, in which accelerators wait for the page cache to be dropped, for evaluation to be
	// prepared, and for each other.
	Idle Phase = iota
	// Load is the wait for a batch.
	Load
	// Compute is the sleep in place of computing.
	Compute
	// Hash is the wait for what was not hashed in the sleep.
	Hash
	// Barrier is the wait for the other accelerators after a step.
	Barrier
	// Checkpoint is writing model state, or reading it back.
	Checkpoint
	// Phases is how many there are.
	Phases
)

// String is the name of a phase in samples.
func (p Phase) String() string {
	return [...]string{"idle", "load", "compute", "hash", "barrier", "checkpoint"}[p]
}

// Work is what the readers of a loader do for a batch.
type Work int

// The parts of a reader's work.
const (
	Open Work = iota
	Read
	Decode
	Preprocess
	// Works is how many there are.
	Works
)

// String is the name of a part of the work in samples.
func (w Work) String() string { return [...]string{"open", "read", "decode", "preprocess"}[w] }

// Counts is what a run has come to at one moment. All counts grow, but for Dropped. Of a run of several processes samples and bytes are those of all, which
// keep in step, and everything else is of this one.
type Counts struct {
	// Elapsed is the time since the timed part began.
	Elapsed time.Duration
	// Accelerators are those of this process.
	Accelerators int
	// Epoch of Epochs is going on, and Step of its Steps were done. A run of checkpoints alone counts checkpoints as steps of one epoch.
	Epoch, Epochs int
	Step, Steps   int64
	// Evaluation is true while the pass of evaluation goes on that follows the epoch.
	Evaluation bool
	// Samples were read, of SamplesTotal, and Bytes asked of the store for them, of BytesTotal. In a run of checkpoints alone Bytes
	// were written and read back, and there are no samples.
	Samples, SamplesTotal int64
	Bytes, BytesTotal     int64
	// EpochBegan is when the epoch did, as Elapsed; EpochSamples and EpochBytes what Samples and Bytes were then.
	EpochBegan               time.Duration
	EpochSamples, EpochBytes int64
	// Compute, Prescribed and Window are what AU is made of: in the window of the epochs, the time computed, the compute time that the
	// workload asks for, and the time of all accelerators.
	Compute, Prescribed, Window time.Duration
	// Threshold is that of AU in percent; 0 for none.
	Threshold float64
	// Spent is how long accelerators have been in each phase, up to this moment.
	Spent [Phases]time.Duration
	// Worked is how long readers have worked on the batches of steps that ended.
	Worked [Works]time.Duration
	// Dropped is how many of ToDrop files have been dropped from the page cache, while that goes on before an epoch; else ToDrop is 0.
	Dropped, ToDrop int64
	// Device is what this process has read from block devices so far, since whenever; nil where the kernel does not tell.
	Device *int64
}

// Schema is the value of the field "schema" of every sample.
const Schema = "benchpin.live/v1"

// Sample is a run at one moment and in the time since the sample before it. As JSON it is a line of --live (schemas/live-v1.schema.json). A
// figure that is not known is absent.
type Sample struct {
	Schema string `json:"schema"`
	Run    string `json:"run"`
	// Time is the host's clock, RFC 3339 in UTC; Elapsed the time since the timed part began.
	Time    string  `json:"time"`
	Elapsed float64 `json:"elapsed_seconds"`
	// Last marks the sample taken when the timed part had ended, however it did.
	Last bool `json:"last,omitempty"`

	Epoch      int   `json:"epoch"`
	Epochs     int   `json:"epochs"`
	Step       int64 `json:"step"`
	Steps      int64 `json:"steps"`
	Evaluation bool  `json:"evaluation,omitempty"`

	Samples      int64 `json:"samples"`
	SamplesTotal int64 `json:"samples_total"`
	Bytes        int64 `json:"bytes"`
	BytesTotal   int64 `json:"bytes_total"`

	// Now are the rates since the sample before, OfEpoch those since the epoch began, Overall those since the run did.
	Now     Rates `json:"now"`
	OfEpoch Rates `json:"of_epoch"`
	Overall Rates `json:"overall"`

	// AU is the utilisation so far in percent: the figure that the record would have if the run ended now.
	AU        *float64 `json:"au_percent,omitempty"`
	Threshold *float64 `json:"au_threshold_percent,omitempty"`
	// Left is how long the run goes on if it keeps its overall rate.
	Left *float64 `json:"left_seconds,omitempty"`
	// Shares are the parts of the accelerators' time since the sample before, by phase; Work those of the readers' work.
	Shares map[string]float64 `json:"shares,omitempty"`
	Work   map[string]float64 `json:"work,omitempty"`
	// Slowest is the phase with the largest share, and where that is the wait for data, the largest part of the readers' work.
	Slowest string `json:"slowest,omitempty"`

	counts Counts
}

// Rates are rates per second.
type Rates struct {
	Samples *float64 `json:"samples_per_second,omitempty"`
	// Bytes are those asked of the store, or of checkpoints; Device those that came from block devices.
	Bytes  *float64 `json:"bytes_per_second,omitempty"`
	Device *float64 `json:"device_bytes_per_second,omitempty"`
}

// Options says what to follow.
type Options struct {
	// Run names the run.
	Run string
	// Counts returns the counts of the moment; false while there is nothing to count yet.
	Counts func() (Counts, bool)
	// Each is called with every sample, from one goroutine, and with the last one before the function that ends it returns.
	Each func(Sample)
	// Every is the time between samples; 0: a second.
	Every time.Duration
}

// Follow takes samples until end is called, which takes the last one. A slow Each makes samples fewer, and nothing else.
func Follow(o Options) (end func()) {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		f := follower{Options: o}
		tick := time.NewTicker(o.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f.look(false)
			case <-done:
				f.look(true)
				return
			}
		}
	}()
	return func() {
		close(done)
		<-told
	}
}

// follower remembers what rates are differences from.
type follower struct {
	Options
	before   Counts
	any      bool   // there was a sample
	device   *int64 // when the run, or what is known of it, began
	deviceAt time.Duration
	slowest  string
}

func (f *follower) look(last bool) {
	c, ok := f.Counts()
	if !ok {
		return
	}
	if f.any && (c.Elapsed < f.before.Elapsed || c.Samples < f.before.Samples || c.Bytes < f.before.Bytes) {
		f.before, f.device, f.any = Counts{}, nil, false // another run has begun, as with --observer-effect
	}
	if f.device == nil {
		f.device, f.deviceAt = c.Device, c.Elapsed
	}
	s := f.sample(&c)
	s.Last = last
	f.before, f.any = c, true
	f.Each(s)
}

// sample computes a sample from the counts of now and before.
func (f *follower) sample(c *Counts) Sample {
	b := &f.before
	s := Sample{Schema: Schema, Run: f.Run, Time: time.Now().UTC().Format(time.RFC3339Nano), Elapsed: c.Elapsed.Seconds(), Epoch: c.Epoch, Epochs: c.Epochs,
		Step: c.Step, Steps: c.Steps, Evaluation: c.Evaluation, Samples: c.Samples, SamplesTotal: c.SamplesTotal, Bytes: c.Bytes, BytesTotal: c.BytesTotal, counts: *c}
	s.Now = rates(c.Elapsed-b.Elapsed, c.Samples-b.Samples, c.Bytes-b.Bytes, c.SamplesTotal > 0)
	s.OfEpoch = rates(c.Elapsed-c.EpochBegan, c.Samples-c.EpochSamples, c.Bytes-c.EpochBytes, c.SamplesTotal > 0)
	s.Overall = rates(c.Elapsed, c.Samples, c.Bytes, c.SamplesTotal > 0)
	if c.Device != nil && b.Device != nil && f.any {
		s.Now.Device = rate(*c.Device-*b.Device, c.Elapsed-b.Elapsed)
	}
	if c.Device != nil && f.device != nil {
		s.Overall.Device = rate(*c.Device-*f.device, c.Elapsed-f.deviceAt)
	}
	if c.Prescribed > 0 && c.Window > 0 {
		au := 100 * float64(c.Compute) / float64(c.Window)
		s.AU = &au
	}
	if c.Threshold > 0 {
		s.Threshold = &c.Threshold
	}
	s.Left = left(c)
	s.Shares = shares(c.Spent[:], b.Spent[:], func(i int) string { return Phase(i).String() })
	s.Work = shares(c.Worked[:], b.Worked[:], func(i int) string { return Work(i).String() })
	s.Slowest = f.slow(&s)
	return s
}

// slow names the slowest stage. Readers' work is known when steps end: until the next one does, what was slowest before is said to be.
func (f *follower) slow(s *Sample) string {
	if work := largest(s.Work, func(i int) string { return Work(i).String() }, int(Works)); work != "" {
		f.slowest = work
	}
	phase := largest(s.Shares, func(i int) string { return Phase(i).String() }, int(Phases))
	if phase == Load.String() && f.slowest != "" {
		return f.slowest
	}
	return phase
}

func largest(of map[string]float64, name func(i int) string, n int) string {
	found, most := "", 0.0
	for i := range n {
		if v := of[name(i)]; v > most {
			found, most = name(i), v
		}
	}
	return found
}

// shares are the parts that each of the times has grown by, of all growth; nil where nothing grew.
func shares(now, before []time.Duration, name func(i int) string) map[string]float64 {
	var all time.Duration
	for i := range now {
		all += max(0, now[i]-before[i])
	}
	if all == 0 {
		return nil
	}
	m := make(map[string]float64, len(now))
	for i := range now {
		m[name(i)] = float64(max(0, now[i]-before[i])) / float64(all)
	}
	return m
}

func rate(n int64, in time.Duration) *float64 {
	if in <= 0 || n < 0 {
		return nil
	}
	v := float64(n) / in.Seconds()
	return &v
}

func rates(in time.Duration, samples, bytes int64, training bool) Rates {
	r := Rates{Bytes: rate(bytes, in)}
	if training {
		r.Samples = rate(samples, in)
	}
	return r
}

// left is the time that the rest takes at the overall rate.
func left(c *Counts) *float64 {
	done, all := c.Samples, c.SamplesTotal
	if all == 0 {
		done, all = c.Bytes, c.BytesTotal
	}
	if done <= 0 || c.Elapsed <= 0 {
		return nil
	}
	v := c.Elapsed.Seconds() * float64(max(0, all-done)) / float64(done)
	return &v
}
