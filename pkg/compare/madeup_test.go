package compare

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// madeUp is what made-up step times are like.
type madeUp struct {
	epochs, ranks int
	steps         int64
	// load is how long the wait for a batch takes, in nanoseconds: drawn for each step and rank.
	load func(rng *rand.Rand, epoch int, step int64) int64
	// save is after how many steps a checkpoint ends a block; 0 is never.
	save int64
}

const prescribed = 3_000_000

// rows are the rows of a run as the engine would time it: ranks load, compute and meet each other.
func (m madeUp) rows(rng *rand.Rand) []stats.Step {
	var rows []stats.Step
	now := int64(1000)
	for e := 1; e <= m.epochs; e++ {
		block, fresh, began := int32(1), true, now
		for s := int64(1); s <= m.steps; s++ {
			if fresh {
				began = now
				now += 100
			}
			first, last := len(rows), int64(0)
			for k := range m.ranks {
				st := stats.Step{Epoch: int32(e), Step: s, Rank: int32(k), Block: block, BlockStart: began, Start: now + rng.Int64N(1000),
					Load: m.load(rng, e, s), Compute: prescribed + rng.Int64N(50_000), Prescribed: prescribed, Samples: 4, Bytes: 4 << 20}
				st.Proc = st.Load + st.Compute + 10
				last = max(last, st.Start+st.Proc)
				rows = append(rows, st)
			}
			for i := first; i < len(rows); i++ {
				st := &rows[i]
				st.Barrier = last - st.Start - st.Proc + 5
				st.BlockEnd = st.End()
			}
			now, fresh = last+5, false
			if m.save > 0 && s%m.save == 0 || s == m.steps {
				now, fresh, block = now+1_000_000, true, block+1
			}
		}
	}
	return rows
}

// series are the rows as a series, without a file in between.
func (m madeUp) series(rng *rand.Rand, w Window) *Series {
	b := &builder{window: w, series: &Series{}}
	rows := m.rows(rng)
	for i := range rows {
		b.series.all.add(&rows[i])
		b.add(&rows[i])
	}
	b.end()
	return b.series
}

func file(t testing.TB, rows []stats.Step) *stats.Reader {
	t.Helper()
	var b bytes.Buffer
	w := stats.NewWriter(&b)
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := stats.Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// spread is a load of mean ns that is drawn evenly from a range around it.
func spread(mean, around int64) func(*rand.Rand, int, int64) int64 {
	return func(rng *rand.Rand, _ int, _ int64) int64 { return mean - around + rng.Int64N(2*around+1) }
}

var background = context.Background()
