package checkpoint

import (
	"fmt"
	"iter"
)

// Schedule says after which steps and epochs the model state is saved. Its fields are the workload keys of the same
// names; the rules are those of DLIO's training loop.
type Schedule struct {
	// AfterEpoch is checkpoint.checkpoint_after_epoch: the first epoch that ends with a checkpoint. Below 1, no epoch
	// ever does.
	AfterEpoch int
	// EpochsBetween is checkpoint.epochs_between_checkpoints. Below 1, there is no other checkpoint after the first.
	EpochsBetween int
	// StepsBetween is checkpoint.steps_between_checkpoints. Below 0, checkpoints follow epochs. From 0 on they follow
	// steps, counted anew in each epoch, and the two keys above say nothing; 0 itself is a step that never comes.
	StepsBetween int64
}

// Point is one moment of a run at which every rank saves its state.
type Point struct {
	// Number counts the checkpoints of the run, from 1. The content of a checkpoint depends on it, so that no two are
	// equal.
	Number int
	// Epoch counts from 1.
	Epoch int
	// Step is the step that DLIO puts into the name: the step just done when checkpoints follow steps, and one more
	// than the last step of the epoch when they follow epochs (DLIO's counter has moved on by then).
	Step int64
}

// Name is the folder of the checkpoint, "global_epoch{E}_step{S}".
func (p Point) Name() string { return fmt.Sprintf("global_epoch%d_step%d", p.Epoch, p.Step) }

// BySteps reports whether checkpoints follow steps rather than epochs.
func (s Schedule) BySteps() bool { return s.StepsBetween >= 0 }

// DueAfterStep tells whether a checkpoint follows step number step (from 1) of an epoch (from 1) of stepsPerEpoch
// steps, and which.
func (s Schedule) DueAfterStep(epoch int, step, stepsPerEpoch int64) (Point, bool) {
	if s.StepsBetween <= 0 || epoch < 1 || step < 1 || step > stepsPerEpoch || step%s.StepsBetween != 0 {
		return Point{}, false
	}
	number := int64(epoch-1)*(stepsPerEpoch/s.StepsBetween) + step/s.StepsBetween
	return Point{Number: int(number), Epoch: epoch, Step: step}, true
}

// DueAfterEpoch tells whether a checkpoint follows the last of the stepsPerEpoch steps of an epoch (from 1), and which.
func (s Schedule) DueAfterEpoch(epoch int, stepsPerEpoch int64) (Point, bool) {
	if s.BySteps() || s.AfterEpoch < 1 || epoch < s.AfterEpoch {
		return Point{}, false
	}
	number, since := 1, epoch-s.AfterEpoch
	if since > 0 {
		if s.EpochsBetween < 1 || since%s.EpochsBetween != 0 {
			return Point{}, false
		}
		number += since / s.EpochsBetween
	}
	return Point{Number: number, Epoch: epoch, Step: stepsPerEpoch + 1}, true
}

// Count is the number of checkpoints in a run of so many epochs and steps an epoch.
func (s Schedule) Count(epochs int, stepsPerEpoch int64) int64 {
	switch {
	case epochs < 1 || s.StepsBetween == 0:
		return 0
	case s.BySteps():
		return int64(epochs) * (max(stepsPerEpoch, 0) / s.StepsBetween)
	case s.AfterEpoch < 1 || epochs < s.AfterEpoch:
		return 0
	case s.EpochsBetween < 1:
		return 1
	}
	return 1 + int64((epochs-s.AfterEpoch)/s.EpochsBetween)
}

// Points yields the checkpoints of a run in order.
func (s Schedule) Points(epochs int, stepsPerEpoch int64) iter.Seq[Point] {
	return func(yield func(Point) bool) {
		for epoch := 1; epoch <= epochs; epoch++ {
			if s.StepsBetween > 0 {
				for step := s.StepsBetween; step <= stepsPerEpoch; step += s.StepsBetween {
					if p, due := s.DueAfterStep(epoch, step, stepsPerEpoch); due && !yield(p) {
						return
					}
				}
			}
			if p, due := s.DueAfterEpoch(epoch, stepsPerEpoch); due && !yield(p) {
				return
			}
		}
	}
}

// Check refuses a run with more checkpoints than can be numbered.
func (s Schedule) Check(epochs int, stepsPerEpoch int64) error {
	if n := s.Count(epochs, stepsPerEpoch); n > MaxNumber {
		return fmt.Errorf("checkpoint schedule: %d checkpoints in %d epochs of %d steps: at most %d are possible; raise "+
			"checkpoint.steps_between_checkpoints (%d) or checkpoint.epochs_between_checkpoints (%d)",
			n, epochs, stepsPerEpoch, MaxNumber, s.StepsBetween, s.EpochsBetween)
	}
	return nil
}
