package bench

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/workload"
	"github.com/zeebo/blake3"
)

// The derivation of the seed, and the preamble, never change: values of b3sum --derive-key.
func TestNotBeforeGolden(t *testing.T) {
	for _, c := range []struct {
		seed  int64
		value string
		want  int64
	}{{123, "", 123}, {123, "beacon 4711", 1709917793}, {124, "beacon 4711", 1771808730}, {123, "beacon 4712", 1189319896}} {
		if got := seedAfter(c.seed, c.value); got != c.want {
			t.Errorf("seed %d, %q: expected %d, found %d", c.seed, c.value, c.want, got)
		}
	}
	s := Schedule{Config: sampler.Config{Files: 7, SamplesPerFile: 2, BatchSize: 2, Accelerators: 3, Seed: 5, Mode: sampler.DLIO}, Epochs: 2, StepsPerEpoch: 2, NotBefore: "beacon 4711"}
	digest := blake3.Sum256([]byte("beacon 4711"))
	want := "benchpin transcript 4\naccelerators 3\nepochs 2\nsteps_per_epoch 2\nbatch_size 2\nfiles 7\nsamples_per_file 2\norder dlio\norder_seed 5\nseed_change_epoch false\n" +
		"file_shuffle false\nsample_shuffle false\npart training\nafter_epoch 0\nepochs_between 0\nsampling index\nlanes 0\nshuffle_buffer 0\nshuffled_before 0\nidle false\n" +
		"reads unhashed\nnot_before blake3:" + hex.EncodeToString(digest[:]) + "\nrank 1\n"
	if got := string(s.preamble(1)); got != want {
		t.Errorf("the preamble is\n%s\nexpected\n%s", got, want)
	}
	s.Reads = loader.Form("file")
	if got := string(s.preamble(1)); got != strings.Replace(want, "reads unhashed", "reads file", 1) {
		t.Errorf("the preamble with hashes is\n%s", got)
	}
}

// shuffled is a workload that shuffles, and its data set.
func shuffled() (*workload.Workload, Dataset) {
	return testWorkload(func(w *workload.Workload) {
		w.Dataset.Format, w.Dataset.NumFilesTrain, w.Reader.BatchSize = "npz", 28, 7
		w.Reader.FileShuffle, w.Reader.SampleShuffle, w.Benchpin.Accelerators = "seed", "seed", 2
	}), equalFiles(28, 1000)
}

// Another value is another order and another transcript, with every order; without one nothing is other than before.
func TestNotBeforeChangesTheTranscript(t *testing.T) {
	w, ds := shuffled()
	for _, order := range []string{"numpy", "dlio"} {
		w.Benchpin.Order = order
		seen := map[string]string{}
		for _, value := range []string{"", "a", "b"} {
			p, err := NewPlanAfter(w, ds, value)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ExpectedTranscriptOf(t.Context(), p, ds, nil)
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[got.Root]; ok {
				t.Errorf("%s: %q and %q have one transcript", order, value, other)
			}
			seen[got.Root] = value
			if plain, err := NewPlan(w, ds); err != nil || fmt.Sprint(plain.Plan) != fmt.Sprint(p.Plan) {
				t.Errorf("%s, %q: the record's plan is another: %v", order, value, err)
			}
			if order == "numpy" && (p.Schedule().Seed == w.Train.Seed) != (value == "") {
				t.Errorf("%q: the seed of the order is %d", value, p.Schedule().Seed)
			}
		}
	}
}

func TestCheckNotBefore(t *testing.T) {
	for value, good := range map[string]bool{
		"x": true, "round 12, 0xabc": true, strings.Repeat("x", MaxNotBefore): true, "grüße": true,
		"": false, " x": false, "x\n": false, "a\nb": false, "\x1b[2J": false, "\xff": false, "a\u202eb": false, strings.Repeat("x", MaxNotBefore+1): false,
	} {
		if err := CheckNotBefore(value); (err == nil) != good || (err != nil && !errors.Is(err, ErrImpossible)) {
			t.Errorf("%.20q: %v", value, err)
		}
	}
	w, ds := shuffled()
	if _, err := NewPlanAfter(w, ds, "a\nb"); !errors.Is(err, ErrImpossible) {
		t.Errorf("a value of two lines: %v", err)
	}
	if _, err := NewPlanAfter(checkpointWorkload(func(*workload.Workload) {}), nil, "x"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a run without data: %v", err)
	}
}
