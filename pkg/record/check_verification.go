package record

import (
	"fmt"
	"strconv"
)

// compared holds what is said of comparing the data set with its manifest to the mode. Modes before and after hash every file; a run that
// did not come to its end may not have begun with after. No mode but none leaves identities unknown, and then each file that is opened is
// looked at.
func (c *checker) compared(r *Record) {
	const at = "dataset.verification."
	d, v := &r.Dataset, &r.Dataset.Verification
	complete := r.Status == StatusComplete
	reads := complete && r.Plan.Epochs > 0 && r.Plan.BytesTotal > 0
	switch v.Mode {
	case "before", "after":
		if v.Mode == "after" && !complete && v.Files == 0 && v.Bytes == 0 {
			return
		}
		c.that(v.Files == d.Files && v.Bytes == d.Bytes, at+"files", "mode %s compares all %d files and %d bytes, found %d and %d", v.Mode, d.Files, d.Bytes,
			v.Files, v.Bytes)
		c.that(v.Bytes == 0 || v.Seconds > 0, at+"seconds", "%d bytes were hashed in %v seconds", v.Bytes, v.Seconds)
	case "sample":
		c.that(v.Bytes == 0 || v.Seconds > 0, at+"seconds", "%d bytes were hashed in %v seconds", v.Bytes, v.Seconds)
	case "none":
		c.that(v.Bytes == 0 && v.Seconds == 0, at+"bytes", "%d bytes were verified in %v seconds although the mode is none", v.Bytes, v.Seconds)
		c.that(v.IdentityRechecked == 0, at+"identity_rechecked", "mode none knows no identity to compare with, found %d", v.IdentityRechecked)
		return
	}
	c.that(!reads || v.IdentityRechecked > 0, at+"identity_rechecked", "%d bytes were read with mode %s, which looks at every file that is opened, found 0",
		r.Plan.BytesTotal, v.Mode)
}

// verification checks what modes inline and sample say of themselves.
func (c *checker) verification(v *Verification) {
	const at = "dataset.verification."
	c.that(v.Inline == nil || v.Mode == "inline", at+"inline", "the mode is %s", v.Mode)
	c.that(v.Sample == nil || v.Mode == "sample", at+"sample", "the mode is %s", v.Mode)
	if i := v.Inline; i != nil {
		c.inline(at+"inline.", i)
	}
	if s := v.Sample; s != nil {
		c.sampled(at+"sample.", v, s)
	}
}

func (c *checker) inline(at string, i *InlineVerification) {
	c.oneOf(at+"reads", i.Reads, "file", "ranges", "groups", "stream", "none")
	notNegative(c, at+"samples", i.Samples)
	notNegative(c, at+"bytes", i.Bytes)
	notNegative(c, at+"held_bytes", i.HeldBytes)
	notNegative(c, at+"hash_cpu_seconds", i.HashCPUSeconds)
	notNegative(c, at+"cores", i.Cores)
	notNegative(c, at+"waited_seconds", i.WaitedSeconds)
	c.that(i.Hashers > 0, at+"hashers", "expected at least 1, found %d", i.Hashers)
	c.that(i.Reads != "none" || i.Bytes == 0, at+"bytes", "%d bytes were hashed although nothing was read", i.Bytes)
	if f := i.Confirmed; f != nil {
		notNegative(c, at+"confirmed.samples", f.Samples)
		notNegative(c, at+"confirmed.seconds", f.Seconds)
		c.that(i.Reads != "file" && i.Reads != "none", at+"confirmed", "is there although reads is %s", i.Reads)
	}
	if e := i.Effect; e != nil {
		c.effect(at+"observer_effect.", e)
	}
}

func (c *checker) effect(at string, e *ObserverEffect) {
	for i, p := range e.Epochs {
		field := fmt.Sprintf("%sepochs[%d].", at, i)
		c.that(p.Turn > 0, field+"turn", "counts from 1, found %d", p.Turn)
		c.that(p.Epoch > 0, field+"epoch", "counts from 1, found %d", p.Epoch)
		for name, au := range map[string]float64{"with": p.With, "without": p.Without} {
			c.that(au >= 0 && au <= 100, field+name, "expected 0 to 100 percent, found %v", au)
		}
	}
	want := NewEffect(e.Epochs)
	same := func(name string, want, found *float64) {
		c.that((want == nil) == (found == nil) && (want == nil || *want == *found), at+name, "is not what follows from the epochs")
	}
	same("difference", want.Difference, e.Difference)
	same("low", want.Low, e.Low)
	same("high", want.High, e.High)
	c.that(want.Absent == e.Absent, at+"absent", "expected %q, found %q", want.Absent, e.Absent)
}

func (c *checker) sampled(at string, v *Verification, s *SampleVerification) {
	seed, err := strconv.ParseUint(s.Seed, 10, 64)
	c.that(err == nil && strconv.FormatUint(seed, 10) == s.Seed, at+"seed", "expected a number of 64 bits in decimal digits, found %q", s.Seed)
	c.that(s.Of >= v.Files, at+"of", "%d files were hashed of %d", v.Files, s.Of)
	if s.Of < 0 || v.Files < 0 || v.Files > s.Of {
		return // said already
	}
	want := NewSample(s.Share, s.Seed, s.Of, v.Files)
	for name, n := range map[string][2]Int{"found_95": {want.Found95, s.Found95}, "found_99": {want.Found99, s.Found99}} {
		c.that(n[0] == n[1], at+name, "%d of %d files hit one of %d damaged ones, found %d", v.Files, s.Of, n[0], n[1])
	}
	for name, x := range map[string][2]float64{"share_95": {want.Share95, s.Share95}, "share_99": {want.Share99, s.Share99}} {
		c.that(x[0] == x[1], at+name, "expected %v percent, found %v", x[0], x[1])
	}
}
