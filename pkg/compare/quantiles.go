package compare

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

const (
	// mostOrdered bounds the rows that are kept in order for percentiles: some 4 MB.
	mostOrdered = 1 << 17
	// fewestBeyond is the number of rows that must lie beyond a percentile, in each run, for an interval.
	fewestBeyond = 10
)

// quantileFigure is a percentile of a record over all steps of all ranks, the excluded ones too.
type quantileFigure struct {
	name     string
	permille int64
	load     bool // of the wait for a batch; else of the whole step
}

func quantileFigures() []quantileFigure {
	return []quantileFigure{
		{"other.step_p50", 500, false}, {"other.step_p99", 990, false}, {"other.load_p50", 500, true}, {"other.load_p99", 990, true},
	}
}

// ordering are the times of all steps of a run in rising order, each with its chunk.
type ordering struct {
	// epochs are how many chunks each epoch has.
	epochs     []int
	step, load []ordered
	// sizes are how many rows each chunk has.
	sizes []int64
	// tooMany: there are more rows than are kept, and none were.
	tooMany bool
	rows    int64

	// Of the epoch being read: the rows of step, by their index, and for each block how many steps it has and where its first row is.
	epoch, block int32
	number       int64
	blocks       []blockRows
}

type ordered struct {
	ns    int64
	chunk int32
}

// blockRows are the rows of a block: the index of the first one, and the index at which each step of it begins.
type blockRows struct{ steps []int }

func (o *ordering) add(row *stats.Step) {
	if o.rows++; o.rows > mostOrdered {
		o.tooMany, o.step, o.load = true, nil, nil
		return
	}
	if row.Epoch != o.epoch {
		o.endEpoch()
		o.epoch, o.block = row.Epoch, 0
	}
	if row.Block != o.block {
		o.block, o.number = row.Block, 0
		o.blocks = append(o.blocks, blockRows{})
	}
	if row.Step != o.number {
		o.number = row.Step
		b := &o.blocks[len(o.blocks)-1]
		b.steps = append(b.steps, len(o.step))
	}
	o.step = append(o.step, ordered{ns: row.Proc + row.Barrier})
	o.load = append(o.load, ordered{ns: row.Load})
}

// endEpoch gives the rows of an epoch their chunks: as cut does.
func (o *ordering) endEpoch() {
	if len(o.blocks) == 0 || o.tooMany {
		return
	}
	n, before := 0, 0
	for _, b := range o.blocks {
		n += len(b.steps)
	}
	for _, e := range o.epochs {
		before += e
	}
	length, chunks := chunkLength(n), 0
	for i, b := range o.blocks {
		end := len(o.step)
		if i+1 < len(o.blocks) {
			end = o.blocks[i+1].steps[0]
		}
		c := max(1, len(b.steps)/length)
		for k := range c {
			from, to := b.steps[k*len(b.steps)/c], end
			if k+1 < c {
				to = b.steps[(k+1)*len(b.steps)/c]
			}
			o.sizes = append(o.sizes, int64(to-from))
			for r := from; r < to; r++ {
				o.step[r].chunk, o.load[r].chunk = int32(before+chunks+k), int32(before+chunks+k)
			}
		}
		chunks += c
	}
	o.epochs = append(o.epochs, chunks)
	o.blocks = nil
}

// end sorts the rows. Ties stay in the order of the file, so that the order is one.
func (o *ordering) end() {
	o.endEpoch()
	byTime := func(x, y ordered) int {
		switch {
		case x.ns < y.ns:
			return -1
		case x.ns > y.ns:
			return 1
		}
		return int(x.chunk) - int(y.chunk)
	}
	slices.SortStableFunc(o.step, byTime)
	slices.SortStableFunc(o.load, byTime)
}

func (o *ordering) of(f *quantileFigure) []ordered {
	if f.load {
		return o.load
	}
	return o.step
}

// quantile is the smallest time that at least so many thousandths of the rows do not exceed, each row counted as often as its chunk was
// drawn. sizes are the rows of each chunk.
func quantile(rows []ordered, sizes []int64, permille int64, times []int64) int64 {
	var total, seen int64
	for i, n := range sizes {
		total += n * times[i]
	}
	target := (permille*total + 999) / 1000
	if permille > 500 { // from the top, which is nearer
		for i := len(rows) - 1; i >= 0; i-- {
			if seen += times[rows[i].chunk]; seen > total-target {
				return rows[i].ns
			}
		}
		return 0
	}
	for i := range rows {
		if seen += times[rows[i].chunk]; seen >= target && seen > 0 {
			return rows[i].ns
		}
	}
	return 0
}

// strata are the numbers of chunks that are drawn from by themselves, as newDrawn has them.
func (o *ordering) strata() []int {
	sum := 0
	for _, e := range o.epochs {
		sum += e
	}
	for _, e := range o.epochs {
		if e < fewestOfEpoch {
			return []int{sum}
		}
	}
	return o.epochs
}

// times draws chunks: how often each one.
func times(draws *rand.PCG, strata []int, into []int64) {
	clear(into)
	at := 0
	for _, n := range strata {
		for range n {
			i, _ := bits.Mul64(draws.Uint64(), uint64(n))
			into[at+int(i)]++
		}
		at += n
	}
}

// quantileRatios are intervals for ratios of percentiles. recorded are the ratios of the records' own values, which come from histograms and
// are up to 0.1 % above the exact ones: the interval is put around them.
func quantileRatios(a, b *ordering, figures []quantileFigure, recorded []float64, o Options) []result {
	o = o.Complete()
	out := make([]result, len(figures))
	fail := func(err error) []result {
		for i := range out {
			out[i].err = err
		}
		return out
	}
	var widths [2]float64
	var counts [2][]int64
	var strata [2][]int
	for i, x := range []*ordering{a, b} {
		if x.tooMany {
			return fail(fmt.Errorf("%w: %d rows, and at most %d are put in order", ErrNothing, x.rows, mostOrdered))
		}
		strata[i] = x.strata()
		k := 0
		for _, n := range strata[i] {
			k += n
		}
		if k < Fewest {
			return fail(fmt.Errorf("%w: %d chunks, expected at least %d", ErrFew, k, Fewest))
		}
		counts[i], widths[i] = make([]int64, k), widening(k, len(strata[i]), o.Confidence)
	}
	seeds := [2]uint64{1, 2}
	if slices.Equal(strata[0], strata[1]) {
		seeds[1] = 1
	}
	draws := [2]*rand.PCG{rand.NewPCG(o.Seed, seeds[0]), rand.NewPCG(o.Seed, seeds[1])}
	logs := make([][]float64, len(figures))
	once := [2][]int64{make([]int64, len(counts[0])), make([]int64, len(counts[1]))}
	for i := range once {
		for k := range once[i] {
			once[i][k] = 1
		}
	}
	logOf := func(f *quantileFigure, times *[2][]int64) float64 {
		x, y := quantile(a.of(f), a.sizes, f.permille, times[0]), quantile(b.of(f), b.sizes, f.permille, times[1])
		if x == 0 || y == 0 {
			return math.NaN()
		}
		return math.Log(float64(y)) - math.Log(float64(x))
	}
	for range o.Resamples {
		times(draws[0], strata[0], counts[0])
		times(draws[1], strata[1], counts[1])
		for i := range figures {
			logs[i] = append(logs[i], logOf(&figures[i], &counts))
		}
	}
	for i := range figures {
		f := &figures[i]
		if beyond := min(a.rows, b.rows) * (1000 - f.permille) / 1000; beyond < fewestBeyond {
			out[i].err = fmt.Errorf("%w of a percentile: %d of them beyond it, expected at least %d", ErrFew, beyond, fewestBeyond)
			continue
		}
		exact := logOf(f, &once)
		e, err := interval(exact, logs[i], max(widths[0], widths[1]), o.Confidence)
		if err == nil {
			shift := recorded[i] / e.Value
			e = Estimate{recorded[i], e.Low * shift, e.High * shift}
		}
		out[i] = result{e, err}
	}
	return out
}
