package stats

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every column of a row crosses, whatever it holds, and in the order of the file.
func TestStepCrosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(0, 1<<40)
		s := Step{Epoch: rapid.Int32Range(1, 1<<30).Draw(t, "epoch"), Step: rapid.Int64Range(1, 1<<32-1).Draw(t, "step"),
			Rank: rapid.Int32Range(0, 1<<30).Draw(t, "rank"), Block: rapid.Int32Range(1, 1<<30).Draw(t, "block")}
		v := reflect.ValueOf(&s).Elem()
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).Int() == 0 && name != "Rank" && name != "Queue" && name != "Samples" {
				v.Field(i).SetInt(small.Draw(t, name))
			}
		}
		s.Proc = s.Load + s.Compute + s.Hash
		s.BlockStart = min(s.BlockStart, s.Start)
		s.BlockEnd = s.End()
		b := s.AppendTo([]byte("before"))
		if len(b) != 6+StepBytes {
			t.Fatalf("%d bytes, expected %d", len(b)-6, StepBytes)
		}
		got, err := ParseStep(b[6:])
		if err != nil || got != s {
			t.Fatalf("crossed as %+v, expected %+v: %v", got, s, err)
		}
	})
	if n := reflect.TypeFor[Step]().NumField(); n != stepFields {
		t.Errorf("a row has %d columns, and %d cross", n, stepFields)
	}
	if names := reflect.VisibleFields(reflect.TypeFor[Step]()); !strings.HasPrefix(names[stepFields-1].Tag.Get("parquet"), "hash_ns") {
		t.Errorf("the last column is %s", names[stepFields-1].Tag)
	}
}

// What no run can have made does not cross.
func TestStepRefused(t *testing.T) {
	good := Step{Epoch: 1, Step: 1, Block: 1, Samples: 1}
	for name, b := range map[string][]byte{
		"short": good.AppendTo(nil)[1:],
		"long":  append(good.AppendTo(nil), 0),
		"rank beyond 32 bits": func() []byte {
			b := good.AppendTo(nil)
			b[16] = 1
			return b
		}(),
		"negative time": (&Step{Epoch: 1, Step: 1, Block: 1, Load: -1}).AppendTo(nil),
	} {
		if _, err := ParseStep(b); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseStep(good.AppendTo(nil)); err != nil {
		t.Error(err)
	}
}

// The ranks of a process are numbered as in the whole run.
func TestRecorderOfSomeRanks(t *testing.T) {
	var b strings.Builder
	r, err := NewRecorderOf(&b, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []int{0, 4, 7} {
		if r.Rank(bad) != nil {
			t.Errorf("there is a recorder for rank %d", bad)
		}
	}
	for rank := 6; rank >= 5; rank-- {
		k := r.Rank(rank)
		if err := errors.Join(k.StartBlock(1, 0), k.Add(Step{Step: 1, Proc: 1, Samples: 1}), k.EndBlock(5)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f := strings.NewReader(b.String())
	rows, err := Open(f, f.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ranks []int32
	if err := rows.Each(func(s *Step) error { ranks = append(ranks, s.Rank); return nil }); err != nil || !reflect.DeepEqual(ranks, []int32{5, 6}) {
		t.Errorf("ranks %v: %v", ranks, err)
	}
	for _, c := range [][2]int{{-1, 1}, {0, 0}} {
		if _, err := NewRecorderOf(&b, c[0], c[1]); err == nil {
			t.Errorf("a recorder of %d ranks from %d on", c[1], c[0])
		}
	}
}
