package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/record"
)

// TestDrawSample: as many different numbers as are asked for, below the limit, the same for a seed, and each about as often as any other.
func TestDrawSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.Int64Range(1, 300).Draw(t, "of")
		n, seed := rapid.Int64Range(0, of).Draw(t, "n"), rapid.Uint64().Draw(t, "seed")
		a, b := drawSample(seed, of, n), drawSample(seed, of, n)
		if int64(len(a)) != n || len(b) != len(a) {
			t.Fatalf("%d of %d: drew %d and %d", n, of, len(a), len(b))
		}
		for k := range a {
			if k < 0 || k >= of || !b[k] {
				t.Fatalf("drew %d of %d, again %v", k, of, b[k])
			}
		}
	})
	var hits [10]int
	for seed := range uint64(3000) {
		for k := range drawSample(seed, 10, 3) {
			hits[k]++
		}
	}
	for k, n := range hits { // 900 expected, standard deviation 25
		if n < 775 || n > 1025 {
			t.Errorf("%d was drawn %d times of 3000, expected about 900", k, n)
		}
	}
	one, two := newSeed(), newSeed()
	if one == two {
		t.Errorf("drew the seed %s twice", one)
	}
}

// TestAlteredVerificationIsRefused: what a record says of modes inline and sample cannot be other than what follows from the archive.
func TestAlteredVerificationIsRefused(t *testing.T) {
	type alter = map[string]func(v *record.Verification)
	for _, c := range []struct {
		name string
		set  []string
		by   alter
	}{
		{"inline, whole files", []string{"benchpin.verify=inline"}, alter{
			"files":   func(v *record.Verification) { v.Files-- },
			"bytes":   func(v *record.Verification) { v.Bytes-- },
			"samples": func(v *record.Verification) { v.Inline.Samples-- },
			"reads":   func(v *record.Verification) { v.Inline.Reads = "ranges" },
			"hashed":  func(v *record.Verification) { v.Inline.Bytes++ },
			"cores":   func(v *record.Verification) { v.Inline.Cores /= 2 },
			"waited":  func(v *record.Verification) { v.Inline.WaitedSeconds += 1 },
			"confirmed": func(v *record.Verification) {
				v.Inline.Reads, v.Inline.Confirmed = "ranges", &record.InlineConfirmation{Samples: 18}
			},
			"nothing": func(v *record.Verification) { v.Inline = nil },
			"effect": func(v *record.Verification) {
				e := record.NewEffect([]record.EffectEpoch{{Turn: 1, Epoch: 1, With: 50, Without: 50}, {Turn: 1, Epoch: 2, With: 50, Without: 50}})
				v.Inline.Effect = &e
			},
		}},
		{"inline, parts of files", []string{"benchpin.verify=inline", "dataset.format=hdf5"}, alter{
			"files":     func(v *record.Verification) { v.Files-- },
			"confirmed": func(v *record.Verification) { v.Inline.Confirmed.Samples-- },
			"none":      func(v *record.Verification) { v.Inline.Confirmed = nil },
		}},
		{"sample", []string{"benchpin.verify=sample", "benchpin.verify_sample=3"}, alter{
			"seed":  func(v *record.Verification) { v.Sample.Seed = "5" + v.Sample.Seed[:min(len(v.Sample.Seed), 15)] },
			"share": func(v *record.Verification) { v.Sample.Share = "33.4%" },
			"more": func(v *record.Verification) {
				s := record.NewSample(v.Sample.Share, v.Sample.Seed, v.Sample.Of, v.Files+1)
				v.Files, v.Sample = v.Files+1, &s
			},
			"nothing": func(v *record.Verification) { v.Sample = nil },
		}},
		{"before", nil, alter{
			"inline": func(v *record.Verification) {
				v.Mode, v.Inline = "inline", &record.InlineVerification{Reads: "file", Samples: 36, Hashers: 1}
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Sizes that differ, so that another sample has other bytes.
			l, out := gone(t, append(c.set, "workflow.checkpoint=false", "dataset.record_length_bytes_stdev=600")...)
			key, _, err := ownKey(l)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(out.Run, RecordName)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			attested := func(name string) error {
				_, err := Attest(t.Context(), AttestOptions{Run: out.Run, Manifest: l.Manifest(), Archive: filepath.Join(t.TempDir(), "a"), Key: key})
				return err
			}
			if err := attested("good"); err != nil {
				t.Fatal(err)
			}
			for name, by := range c.by {
				r, err := record.Parse(good)
				if err != nil {
					t.Fatal(err)
				}
				by(&r.Dataset.Verification)
				b, err := r.Canonical()
				if err == nil {
					err = os.WriteFile(path, b, 0o666)
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := attested(name); !errors.Is(err, ErrVerification) && !strings.Contains(errorText(err), "contradicts") {
					t.Errorf("%s: attested, or refused for another reason: %v", name, err)
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
