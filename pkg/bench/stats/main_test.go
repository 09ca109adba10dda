package stats

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/benchpin/benchpin/pkg/record"
)

// TestMain raises the number of cases of every property from rapid's 100 in the long suite, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given && os.Getenv("BENCHPIN_LONG") == "1" {
		if err := flag.Set("rapid.checks", "1000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// peer returns the first of the commands that works. Without one the test is skipped, but in CI it fails: a peer that is missing there
// proves nothing.
func peer(t *testing.T, reason string, commands ...[]string) string {
	t.Helper()
	for _, c := range commands {
		if exec.Command(c[0], c[1:]...).Run() == nil {
			return c[0]
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
	return ""
}

// run is a made-up run: what its steps were, and the plan they belong to.
type run struct {
	p     Params
	rows  []Step
	saves map[int64]bool // steps after which a checkpoint was written
}

// makeRun makes a run as the engine would time it: every rank loads, computes and meets the others; after some steps all write a
// checkpoint, which ends a block.
func makeRun(rng *rand.Rand, p Params) run {
	r := run{p: p, saves: map[int64]bool{}}
	late := rand.New(rand.NewPCG(9, 9))
	if rng.IntN(2) == 0 {
		for s := int64(1); s <= p.StepsPerEpoch; s++ {
			r.saves[s] = rng.IntN(4) == 0
		}
	}
	clock := rng.Int64N(1e6)
	blockStart, blockFirst := make([]int64, p.Accelerators), make([]int, p.Accelerators)
	for e := 1; e <= p.Epochs; e++ {
		block := int32(1)
		fresh := true
		now := clock
		for s := int64(1); s <= p.StepsPerEpoch; s++ {
			first := len(r.rows)
			var last int64
			for k := range p.Accelerators {
				st := Step{Epoch: int32(e), Step: s, Rank: int32(k), Block: block, Load: rng.Int64N(5e6), Prescribed: 3e6,
					Samples: int64(p.BatchSize), Bytes: rng.Int64N(1e6), Open: rng.Int64N(1e3), Read: rng.Int64N(1e4), Decode: rng.Int64N(1e3)}
				// Drawn apart, because figures of these runs were written down before there were such columns.
				if st.Preprocess = late.Int64N(1e3); late.IntN(2) == 0 {
					st.Queue, st.Hash = late.Int64N(st.Load+1), late.Int64N(1e3)
				} else {
					st.Ready = late.Int64N(1e6)
				}
				if fresh {
					blockStart[k], blockFirst[k] = now+rng.Int64N(1e5), first+k
					st.Start = blockStart[k] + rng.Int64N(1e5)
				} else {
					st.Start = now + rng.Int64N(1e4)
				}
				st.BlockStart = blockStart[k]
				st.Compute = st.Prescribed + rng.Int64N(4e5)
				rest := rng.Int64N(1e3)
				st.Proc, st.Hash = st.Load+st.Compute+rest, min(st.Hash, rest)
				last = max(last, st.Start+st.Proc)
				r.rows = append(r.rows, st)
			}
			fresh = false
			for i := first; i < len(r.rows); i++ {
				st := &r.rows[i]
				st.Barrier = last - st.Start - st.Proc + 1
				st.BlockEnd = st.End()
			}
			now = last + 1
			if r.saves[s] || s == p.StepsPerEpoch {
				for i := first; i < len(r.rows); i++ {
					r.rows[i].BlockEnd += rng.Int64N(1e5)
				}
				now += 1e5 + rng.Int64N(1e7)
				block++
				fresh = true
			}
		}
		clock = now + rng.Int64N(1e7)
	}
	return r
}

// file writes rows as a file of steps.
func file(t testing.TB, rows []Step, devices ...Device) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		if err := w.SetDevice(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func summarise(b []byte, p Params) (record.Metrics, error) {
	return SummariseFile(context.Background(), bytes.NewReader(b), int64(len(b)), p)
}

func metricsOf(t testing.TB, r run) record.Metrics {
	t.Helper()
	m, err := summarise(file(t, r.rows), r.p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
