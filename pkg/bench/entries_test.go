package bench

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/workload"
)

// planEval is planFiles with the same files for evaluation.
type planEval struct{ planFiles }

func (p planEval) Evaluation() Dataset { return p.planFiles }

// TestReadsAreTheTranscript: the account that people can look at, chained rank by rank, is the expected transcript, evaluation included.
func TestReadsAreTheTranscript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.IntRange(4, 20).Draw(t, "files")
		loader := rapid.SampledFrom([]string{"pytorch", "tensorflow", "dali"}).Draw(t, "loader")
		w := testWorkload(func(w *workload.Workload) {
			w.Dataset.NumFilesTrain, w.Dataset.NumFilesEval, w.Reader.DataLoader = files, files, loader
			w.Benchpin.Accelerators, w.Reader.BatchSize = rapid.IntRange(1, 3).Draw(t, "ranks"), 1
			w.Train.Epochs = rapid.IntRange(1, 3).Draw(t, "epochs")
			w.Reader.FileShuffle = rapid.SampledFrom([]string{"off", "seed"}).Draw(t, "shuffle")
			w.Workflow.Evaluation, w.Reader.BatchSizeEval = rapid.Bool().Draw(t, "evaluation"), 1
			w.Evaluation.EvalAfterEpoch, w.Evaluation.EpochsBetweenEvals = 1, 2
			if loader == "tensorflow" {
				w.Framework = "tensorflow"
			}
		})
		ds := make(planFiles, files)
		for i := range ds {
			ds[i] = int64(1000 + i)
		}
		p, err := NewPlan(w, planEval{ds})
		if err != nil {
			t.Skip(err)
		}
		want, err := ExpectedTranscript(context.Background(), p, planEval{ds})
		if err != nil {
			t.Fatal(err)
		}
		train, eval := make([]*Chain, p.Accelerators), make([]*Chain, p.Accelerators)
		schedule, passes := p.EvaluationSchedule()
		for r := range train {
			train[r] = NewChain(p.Schedule(), r)
			if passes {
				eval[r] = NewChain(schedule, r)
			}
		}
		lastEpoch, lastStep := uint32(0), uint32(0)
		err = EachRead(context.Background(), p, planEval{ds}, Which{Rank: -1}, func(r *Read) error {
			c := train
			if r.Evaluation {
				c = eval
			}
			c[r.Rank].Append(r.Entry)
			if r.Path != ds.Path(int(r.File)) || r.Epoch < lastEpoch || r.Epoch == lastEpoch && r.Step < lastStep && !r.Evaluation {
				t.Fatalf("read %+v after epoch %d, step %d", r, lastEpoch, lastStep)
			}
			lastEpoch, lastStep = r.Epoch, r.Step
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		found := Seal(train)
		found.Expected = want.Expected
		if passes {
			found.Evaluation = want.Evaluation
			if v := Seal(eval); v.Root != want.Evaluation.Root || v.Entries != want.Evaluation.Entries {
				t.Errorf("evaluation: expected %+v, found %+v", want.Evaluation, v)
			}
		}
		if !reflect.DeepEqual(found, want) {
			t.Errorf("expected %+v, found %+v", want, found)
		}
	})
}

// One epoch and one rank are those lines of the whole account, and nothing is yielded after an error.
func TestReadsOfOneRank(t *testing.T) {
	w := testWorkload(func(w *workload.Workload) {
		w.Dataset.NumFilesTrain, w.Benchpin.Accelerators, w.Train.Epochs, w.Reader.FileShuffle = 12, 3, 3, "seed"
	})
	ds := equalFiles(12, 100)
	p, err := NewPlan(w, ds)
	if err != nil {
		t.Fatal(err)
	}
	collect := func(w Which) (all []Read) {
		if err := EachRead(context.Background(), p, ds, w, func(r *Read) error { all = append(all, *r); return nil }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	var want []Read
	for _, r := range collect(Which{Rank: -1}) {
		if r.Epoch == 2 && r.Rank == 1 {
			want = append(want, r)
		}
	}
	if found := collect(Which{Epoch: 2, Rank: 1}); len(want) == 0 || !reflect.DeepEqual(found, want) {
		t.Errorf("expected %v, found %v", want, found)
	}
	for _, w := range []Which{{Epoch: 4, Rank: -1}, {Epoch: -1, Rank: -1}, {Rank: 3}} {
		if err := EachRead(context.Background(), p, ds, w, func(*Read) error { return nil }); err == nil {
			t.Errorf("%+v is in no plan", w)
		}
	}
	stop, calls := errors.New("stop"), 0
	if err := EachRead(context.Background(), p, ds, Which{Rank: -1}, func(*Read) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
