package checkpoint

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// loop runs DLIO's training loop as its documentation of behaviour tells it, counters and all, and notes the folders it
// makes. It shares no code with Schedule.
func loop(s Schedule, epochs int, steps int64) []Point {
	var points []Point
	nextEpoch := s.AfterEpoch
	for epoch := 1; epoch <= epochs; epoch++ {
		nextStep := s.StepsBetween
		step := int64(1)
		for ; step <= steps; step++ {
			if s.StepsBetween >= 0 && step == nextStep {
				points = append(points, Point{len(points) + 1, epoch, step})
				nextStep += s.StepsBetween
			}
		}
		if s.StepsBetween < 0 && epoch == nextEpoch {
			points = append(points, Point{len(points) + 1, epoch, step})
			nextEpoch += s.EpochsBetween
		}
	}
	return points
}

func TestScheduleIsDLIOsLoop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{
			AfterEpoch:    rapid.IntRange(-2, 9).Draw(t, "after"),
			EpochsBetween: rapid.IntRange(-2, 5).Draw(t, "between"),
			StepsBetween:  rapid.Int64Range(-2, 9).Draw(t, "steps between"),
		}
		epochs, steps := rapid.IntRange(0, 12).Draw(t, "epochs"), rapid.Int64Range(0, 30).Draw(t, "steps")
		want := loop(s, epochs, steps)
		got := slices.Collect(s.Points(epochs, steps))
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: found %v, expected %v", s, got, want)
		}
		if n := s.Count(epochs, steps); n != int64(len(want)) {
			t.Fatalf("%+v: count %d, expected %d", s, n, len(want))
		}
		var asked []Point // as the engine asks
		for epoch := 1; epoch <= epochs; epoch++ {
			for step := int64(1); step <= steps; step++ {
				if p, due := s.DueAfterStep(epoch, step, steps); due {
					asked = append(asked, p)
				}
			}
			if p, due := s.DueAfterEpoch(epoch, steps); due {
				asked = append(asked, p)
			}
		}
		if !slices.Equal(asked, want) {
			t.Fatalf("%+v: asked step by step: found %v, expected %v", s, asked, want)
		}
	})
}

func TestScheduleOfKnownRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		s      Schedule
		epochs int
		steps  int64
		want   []string
	}{
		{"unet3d: one, after the last epoch", Schedule{5, 2, -1}, 5, 24, []string{"global_epoch5_step25"}},
		{"unet3d cut to 2 epochs: none", Schedule{5, 2, -1}, 2, 2, nil},
		{"unet3d of 9 epochs", Schedule{5, 2, -1}, 9, 24, []string{"global_epoch5_step25", "global_epoch7_step25", "global_epoch9_step25"}},
		{"DLIO's run of 16 files, 2 ranks, batches of 2, every 2 steps", Schedule{1, 1, 2}, 2, 4,
			[]string{"global_epoch1_step2", "global_epoch1_step4", "global_epoch2_step2", "global_epoch2_step4"}},
		{"the defaults", Schedule{1, 1, -1}, 2, 3, []string{"global_epoch1_step4", "global_epoch2_step4"}},
		{"step 0 never comes", Schedule{1, 1, 0}, 3, 4, nil},
		{"fewer steps than between", Schedule{1, 1, 5}, 3, 4, nil},
	} {
		var got []string
		for p := range c.s.Points(c.epochs, c.steps) {
			got = append(got, p.Name())
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: found %q, expected %q", c.name, got, c.want)
		}
	}
}

func TestScheduleRefusesMoreThanCanBeNumbered(t *testing.T) {
	s := Schedule{StepsBetween: 1}
	if err := s.Check(1, MaxNumber); err != nil {
		t.Error(err)
	}
	err := s.Check(1, MaxNumber+1)
	if err == nil || !strings.Contains(err.Error(), "steps_between_checkpoints") {
		t.Errorf("found %v, expected an error that names the key", err)
	}
}

func TestScheduleStopsWhenAsked(t *testing.T) {
	n := 0
	for range (Schedule{StepsBetween: 1}).Points(3, 3) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("found %d points, expected 2", n)
	}
}
