package record

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// missed is the exact probability that a sample of n of N misses all of D damaged files: C(N-D, n) / C(N, n).
func missed(of, n, d int64) *big.Rat {
	if of-d < n {
		return new(big.Rat)
	}
	return new(big.Rat).SetFrac(new(big.Int).Binomial(of-d, n), new(big.Int).Binomial(of, n))
}

// TestSampleFinds compares with exact binomial coefficients: D is enough, and one less is not.
func TestSampleFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.Int64Range(1, 400).Draw(t, "of")
		n := rapid.Int64Range(0, of).Draw(t, "n")
		miss := rapid.SampledFrom([]float64{0.05, 0.01}).Draw(t, "miss")
		limit := new(big.Rat).SetFloat64(miss)
		d := int64(SampleFinds(Int(of), Int(n), miss))
		if n == 0 {
			if d != of+1 {
				t.Fatalf("an empty sample hits one of %d damaged files", d)
			}
			return
		}
		// The last digit of a product of floats may fall on either side of a limit that is met exactly.
		slack := big.NewRat(1, 1e12)
		if p := missed(of, n, d); p.Cmp(new(big.Rat).Add(limit, slack)) > 0 {
			t.Fatalf("%d of %d: %d damaged files are missed with %v", n, of, d, p.FloatString(6))
		}
		if p := missed(of, n, d-1); d > 1 && p.Cmp(new(big.Rat).Sub(limit, slack)) <= 0 {
			t.Fatalf("%d of %d: %d damaged files would do: missed with %v", n, of, d-1, p.FloatString(6))
		}
	})
	// 300 of 10^7: one per cent of damage with 95 %.
	if d := SampleFinds(1e7, 300, 0.05); d < 99_000 || d > 100_000 {
		t.Errorf("found %d", d)
	}
}

// TestStudent integrates the density: the quantile is never below what it should be, and less than 2 % above.
func TestStudent(t *testing.T) {
	for degrees := 1; degrees <= 130; degrees++ {
		q := student(degrees)
		v := float64(degrees)
		lg := func(x float64) float64 { l, _ := math.Lgamma(x); return l }
		c := math.Exp(lg((v+1)/2)-lg(v/2)) / math.Sqrt(v*math.Pi)
		at := func(q float64) float64 { // P(T <= q), by Simpson's rule
			const steps = 20000
			h, sum := q/steps, 0.0
			for i := range steps + 1 {
				x := float64(i) * h
				f := c * math.Pow(1+x*x/v, -(v+1)/2)
				switch {
				case i == 0 || i == steps:
					sum += f
				case i%2 == 1:
					sum += 4 * f
				default:
					sum += 2 * f
				}
			}
			return 0.5 + sum*h/3
		}
		if p := at(q); p < 0.975-1e-9 {
			t.Errorf("%d degrees: P(T <= %v) is %v", degrees, q, p)
		}
		if p := at(q / 1.02); p > 0.975 {
			t.Errorf("%d degrees: %v is more than 2 %% too large", degrees, q)
		}
	}
}

// TestEffect: differences by hand, and none of one pair.
func TestEffect(t *testing.T) {
	e := NewEffect([]EffectEpoch{{1, 1, 90, 91}, {1, 2, 92, 92}, {2, 1, 89, 91}, {2, 2, 93, 92}})
	// Differences -1, 0, -2, 1: mean -0.5, s^2 = (0.25 + 0.25 + 2.25 + 2.25) / 3, half = 3.183 s / 2.
	half := 3.183 * math.Sqrt(5.0/3) / 2
	if *e.Difference != -0.5 || math.Abs(*e.Low+0.5+half) > 1e-12 || math.Abs(*e.High+0.5-half) > 1e-12 || e.Absent != "" {
		t.Errorf("found %v, %v to %v", *e.Difference, *e.Low, *e.High)
	}
	for _, few := range [][]EffectEpoch{nil, {{1, 1, 90, 91}}} {
		if e := NewEffect(few); e.Difference != nil || e.Low != nil || e.High != nil || e.Absent == "" || e.Epochs == nil {
			t.Errorf("found %+v", e)
		}
	}
}

// TestCheckVerification finds what modes inline and sample cannot say.
func TestCheckVerification(t *testing.T) {
	inline := func(change func(*Verification)) *Record {
		r := sample()
		v := &r.Dataset.Verification
		v.Mode, v.Inline = "inline", &InlineVerification{Reads: "ranges", Samples: 3, Bytes: 10, Hashers: 1, HashCPUSeconds: 1, Cores: 0.1,
			Confirmed: &InlineConfirmation{Samples: 3, Seconds: 1}}
		effect := NewEffect([]EffectEpoch{{1, 1, 90, 91}, {1, 2, 92, 92}})
		v.Inline.Effect = &effect
		change(v)
		return r
	}
	sampled := func(change func(*Verification)) *Record {
		r := sample()
		v := &r.Dataset.Verification
		s := NewSample("5%", "18446744073709551615", r.Dataset.Files, v.Files)
		v.Mode, v.Sample = "sample", &s
		change(v)
		return r
	}
	nothing := func(*Verification) {}
	for _, r := range []*Record{inline(nothing), sampled(nothing)} {
		if p := r.Check(); len(p) > 0 {
			t.Errorf("a sound record: %v", p)
		}
		if err := ValidateSchema(mustCanonical(t, r)); err != nil {
			t.Error(err)
		}
	}
	other := 0.5
	for field, r := range map[string]*Record{
		"verification.inline:":           sampled(func(v *Verification) { v.Inline = &InlineVerification{Reads: "file", Hashers: 1} }),
		"verification.sample:":           inline(func(v *Verification) { v.Sample = &SampleVerification{Seed: "1"} }),
		"inline.reads":                   inline(func(v *Verification) { v.Inline.Reads = "all" }),
		"inline.bytes":                   inline(func(v *Verification) { v.Inline.Reads = "none" }),
		"inline.samples":                 inline(func(v *Verification) { v.Inline.Samples = -1 }),
		"inline.hashers":                 inline(func(v *Verification) { v.Inline.Hashers = 0 }),
		"inline.cores":                   inline(func(v *Verification) { v.Inline.Cores = -1 }),
		"inline.waited_seconds":          inline(func(v *Verification) { v.Inline.WaitedSeconds = -1 }),
		"inline.confirmed:":              inline(func(v *Verification) { v.Inline.Reads = "file" }),
		"inline.confirmed.seconds":       inline(func(v *Verification) { v.Inline.Confirmed.Seconds = -1 }),
		"observer_effect.difference":     inline(func(v *Verification) { v.Inline.Effect.Difference = &other }),
		"observer_effect.high":           inline(func(v *Verification) { v.Inline.Effect.High = nil }),
		"observer_effect.absent":         inline(func(v *Verification) { v.Inline.Effect.Absent = "no" }),
		"observer_effect.epochs[0].with": inline(func(v *Verification) { v.Inline.Effect.Epochs[0].With = 101 }),
		"observer_effect.epochs[1].turn": inline(func(v *Verification) { v.Inline.Effect.Epochs[1].Turn = 0 }),
		"sample.seed":                    sampled(func(v *Verification) { v.Sample.Seed = "01" }),
		"sample.of":                      sampled(func(v *Verification) { v.Sample.Of = v.Files - 1 }),
		"sample.found_95":                sampled(func(v *Verification) { v.Sample.Found95++ }),
		"sample.found_99":                sampled(func(v *Verification) { v.Sample.Found99-- }),
		"sample.share_95":                sampled(func(v *Verification) { v.Sample.Share95 /= 2 }),
	} {
		found := false
		for _, p := range r.Check() {
			found = found || strings.Contains(p.Field+":", field)
		}
		if !found {
			t.Errorf("%s: found %v", field, r.Check())
		}
	}
}

// TestCheckCompared: what the mode says was done is what the figures beside it say.
func TestCheckCompared(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*Record)
		field  string // "" where nothing is wrong
	}{
		"before":             {func(*Record) {}, ""},
		"after":              {func(r *Record) { r.Dataset.Verification.Mode = "after" }, ""},
		"none called before": {func(r *Record) { r.Dataset.Verification = Verification{Class: HostOnly, Mode: "before"} }, "verification.files"},
		"files left out":     {func(r *Record) { r.Dataset.Verification.Files-- }, "verification.files"},
		"bytes left out":     {func(r *Record) { r.Dataset.Verification.Bytes = 1 }, "verification.files"},
		"no time":            {func(r *Record) { r.Dataset.Verification.Seconds = 0 }, "verification.seconds"},
		"no identity":        {func(r *Record) { r.Dataset.Verification.IdentityRechecked = 0 }, "verification.identity_rechecked"},
		"identity of nothing": {func(r *Record) {
			r.Dataset.Verification = Verification{Class: HostOnly, Mode: "none", IdentityRechecked: 1}
		}, "verification.identity_rechecked"},
		"none with a duration": {func(r *Record) { r.Dataset.Verification = Verification{Class: HostOnly, Mode: "none", Seconds: 1} }, "verification.bytes"},
		"none":                 {func(r *Record) { r.Dataset.Verification = Verification{Class: HostOnly, Mode: "none"} }, ""},
		"redacted":             {func(r *Record) { r.Environment.Redacted = true }, "environment.host.name"},
		"after, and interrupted": {func(r *Record) {
			r.Status, r.Reason = StatusIncomplete, "interrupted"
			r.Dataset.Verification = Verification{Class: HostOnly, Mode: "after"}
		}, ""},
	} {
		r := sample()
		c.change(r)
		var found []string
		for _, p := range r.Check() {
			found = append(found, p.Field)
		}
		if all := strings.Join(found, " "); (c.field == "") != (all == "") || !strings.Contains(all, c.field) {
			t.Errorf("%s: expected %q, found %q", what, c.field, all)
		}
	}
}
