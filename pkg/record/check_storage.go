package record

import (
	"fmt"
	"math"
	"reflect"
	"time"
)

// storage holds what is said of where an epoch's bytes came from.
func (c *checker) storage(at string, e EpochMetrics, complete bool) {
	s := e.Storage
	if s == nil {
		return
	}
	at += "storage."
	var asked float64
	known := true
	for i, f := range s.FileSystems {
		at := fmt.Sprintf("%sfile_systems[%d].", at, i)
		v := reflect.ValueOf(f)
		for j := range v.NumField() {
			if f, ok := v.Field(j).Interface().(Figure); ok {
				c.figure(at+v.Type().Field(j).Tag.Get("json"), f)
			}
		}
		if f.Asked.Value == nil {
			known = false
			c.that(false, at+"bytes_asked", "is absent, although readers count it")
		} else {
			asked += *f.Asked.Value
		}
	}
	if e.BytesAsked.Value != nil && known && complete {
		c.that(asked == *e.BytesAsked.Value, at+"file_systems", "were asked for %v bytes, the epoch for %v", asked, *e.BytesAsked.Value)
	}
	c.figure(at+"bytes_from_memory", s.Memory)
	c.figure(at+"look_seconds", s.LookSeconds)
	if m := s.Memory.Value; m != nil {
		c.that(e.BytesDevice.Value != nil, at+"bytes_from_memory", "is known, although bytes_device is not")
		if e.BytesDevice.Value != nil && known {
			c.that(*m == max(0, asked-*e.BytesDevice.Value), at+"bytes_from_memory", "expected %v asked for less %v from a device, found %v", asked,
				*e.BytesDevice.Value, *m)
		}
		c.that((s.Sentence != "") == (*m > asked/2), at+"sentence", "stands where most bytes came from memory, and nowhere else: %v of %v did", *m, asked)
	} else {
		c.that(s.Sentence == "", at+"sentence", "stands although bytes_from_memory is absent")
	}
	notNegative(c, at+"files_looked_at", s.LookedAt)
	c.that(s.LookedAt <= s.Files, at+"files_looked_at", "%d of %d files", s.LookedAt, s.Files)
	if d := s.Dropped; d != nil {
		c.figure(at+"dropped.bytes_cached", d.Cached)
		c.figure(at+"dropped.seconds", d.Seconds)
	}
}

// waits holds the waits of an epoch: percentiles in order, none beyond its total, and the parts of a wait adding up to it.
func (c *checker) waits(at string, w *Waits, accelerators int) {
	if w == nil {
		return
	}
	at += "waits."
	c.class(at+"class", w.Class)
	c.waitParts(at+"steps.", w.Steps)
	c.waitParts(at+"accelerators.", w.Accelerators)
	a, b := reflect.ValueOf(w.Steps), reflect.ValueOf(w.Accelerators)
	for i := range a.NumField() {
		name := a.Type().Field(i).Tag.Get("json")
		c.that(a.Field(i).Interface().(Spread).Total == b.Field(i).Interface().(Spread).Total, at+"accelerators."+name+".total",
			"is not that of the steps, which are the same")
	}
	want := accelerators
	if accelerators > MostWaitRanks {
		want = 0
	}
	c.that(len(w.Ranks) == want, at+"ranks", "expected %d for %d accelerators, found %d", want, accelerators, len(w.Ranks))
	for i, r := range w.Ranks {
		at := fmt.Sprintf("%sranks[%d].", at, i)
		v := reflect.ValueOf(r)
		for j := range v.NumField() {
			notNegative(c, at+v.Type().Field(j).Tag.Get("json"), v.Field(j).Float())
		}
		c.sum(at+"load", r.Load, r.Queue+r.Open+r.Read+r.Decode+r.Other)
	}
}

func (c *checker) waitParts(at string, p WaitParts) {
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		s := v.Field(i).Interface().(Spread)
		name := at + v.Type().Field(i).Tag.Get("json")
		c.that(0 <= s.P50 && s.P50 <= s.P90 && s.P90 <= s.P99 && s.P99 <= s.Max && s.Max <= s.Total, name,
			"expected 0 <= p50 <= p90 <= p99 <= max <= total, found %v, %v, %v, %v, %v", s.P50, s.P90, s.P99, s.Max, s.Total)
	}
	c.sum(at+"load.total", p.Load.Total, p.Queue.Total+p.Open.Total+p.Read.Total+p.Decode.Total+p.Other.Total)
}

// sum holds that parts add up to a whole, but for the rounding of decimals.
func (c *checker) sum(at string, whole, parts float64) {
	c.that(math.Abs(whole-parts) <= 1e-9*(1+whole), at, "is %v, and its parts add up to %v", whole, parts)
}

// possible holds figures to each other that no run can have made so: epochs that took longer than the run, an epoch that is faster in its
// window than all of its bytes and samples allow, and a run that planned to read and asked for nothing.
func (c *checker) possible(r *Record) {
	m := &r.Metrics
	var seconds, asked float64
	for i, e := range m.Epochs {
		at := fmt.Sprintf("metrics.epochs[%d].", i)
		if e.Seconds.Value != nil {
			seconds += *e.Seconds.Value
		}
		if e.BytesAsked.Value == nil {
			continue
		}
		asked += *e.BytesAsked.Value
		samples, bytes := e.SamplesPerSecond.Value, e.BytesPerSecond.Value
		if samples != nil && bytes != nil && *samples > 0 {
			// In any stretch of the epoch, bytes are at most those of the epoch while a sample at least was read.
			c.that(*bytes / *samples <= *e.BytesAsked.Value*(1+1e-9), at+"bytes_per_second", "%v for each sample, where the epoch asked for %v in all",
				*bytes / *samples, *e.BytesAsked.Value)
		}
	}
	if r.Status != StatusComplete {
		return
	}
	started, finished := parseTime(r.Started), parseTime(r.Finished)
	c.that(seconds <= finished.Sub(started).Seconds()+clockSlack.Seconds(), "metrics.epochs", "took %v s together, in a run of %v", seconds,
		finished.Sub(started))
	c.that(asked > 0 || r.Plan.BytesTotal == 0 || r.Plan.Epochs == 0, "metrics.epochs", "asked for 0 bytes of the %d that are planned", r.Plan.BytesTotal)
}

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s) // head says what is wrong with it
	return t
}
