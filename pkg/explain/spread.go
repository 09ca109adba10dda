package explain

import (
	"context"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/bench/stats"
)

// times are what a row says of one kind of time, in nanoseconds.
var errKind = fmt.Errorf("%w: no such time", ErrNoFigure)

// valueOf returns the column, or the sum of columns, that a name stands for, and how that is said.
func valueOf(name string) (func(s *stats.Step) int64, string, error) {
	switch name {
	case "load":
		return func(s *stats.Step) int64 { return s.Load }, "load_ns", nil
	case "compute":
		return func(s *stats.Step) int64 { return s.Compute }, "compute_ns", nil
	case "oversleep":
		return func(s *stats.Step) int64 { return max(s.Compute-s.Prescribed, 0) }, "max(compute_ns - prescribed_compute_ns, 0)", nil
	case "barrier":
		return func(s *stats.Step) int64 { return s.Barrier }, "barrier_ns", nil
	case "step":
		return func(s *stats.Step) int64 { return s.Proc + s.Barrier }, "proc_ns + barrier_ns", nil
	case "queue":
		return func(s *stats.Step) int64 { return s.Queue }, "queue_ns", nil
	case "ready":
		return func(s *stats.Step) int64 { return s.Ready }, "ready_ns", nil
	case "open":
		return func(s *stats.Step) int64 { return s.Open }, "open_ns", nil
	case "read":
		return func(s *stats.Step) int64 { return s.Read }, "read_ns", nil
	case "decode":
		return func(s *stats.Step) int64 { return s.Decode }, "decode_ns", nil
	case "preprocess":
		return func(s *stats.Step) int64 { return s.Preprocess }, "preprocess_ns", nil
	case "hash":
		return func(s *stats.Step) int64 { return s.Hash }, "hash_ns", nil
	case "wait_queue":
		return func(s *stats.Step) int64 { return s.Queue }, "queue_ns", nil
	case "wait_open":
		return func(s *stats.Step) int64 { return shareOf(s, s.Open) }, shareText("open_ns"), nil
	case "wait_read":
		return func(s *stats.Step) int64 { return shareOf(s, s.Read) }, shareText("read_ns"), nil
	case "wait_decode":
		return func(s *stats.Step) int64 { return shareOf(s, s.Decode) }, shareText("decode_ns"), nil
	case "wait_other":
		return func(s *stats.Step) int64 {
			return s.Load - s.Queue - shareOf(s, s.Open) - shareOf(s, s.Read) - shareOf(s, s.Decode)
		}, "load_ns - queue_ns - the shares of open, read and decode", nil
	}
	return nil, "", errKind
}

func shareText(column string) string {
	return "floor((load_ns - queue_ns) x " + column + " / (open_ns + read_ns + decode_ns + preprocess_ns))"
}

// shareOf is the part of a wait for a batch in the making that some work on the batch is said to account for.
func shareOf(s *stats.Step, of int64) int64 {
	work := s.Open + s.Read + s.Decode + s.Preprocess
	if work == 0 {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(s.Load-s.Queue), big.NewInt(of))
	return n.Div(n, big.NewInt(work)).Int64()
}

// permilles are the percentiles by their names.
var permilles = map[string]int64{"p50": 500, "p90": 900, "p99": 990, "p99_9": 999, "max": 1000}

// percentile is the value of rank ceil(n x permille / 1000) in rising order, and what a record says of it: the greatest value that begins
// with the same 11 binary digits, but no more than the greatest of all.
func percentile(sorted []int64, permille int64) (rank int, exact, said int64) {
	n := int64(len(sorted))
	rank = int((n*permille + 999) / 1000)
	exact = sorted[rank-1]
	const digits = 11
	drop := max(bits.Len64(uint64(exact))-digits, 0)
	said = (exact>>drop+1)<<drop - 1
	return rank, exact, min(said, sorted[n-1])
}

// quantile explains a percentile of values.
func (x *Explanation) quantile(values []int64, name, what string) error {
	permille, ok := permilles[name]
	if !ok {
		return errKind
	}
	x.Formula = fmt.Sprintf("the value of rank ceil(n x %d / 1000) in rising order; of all values with the same first 11 binary digits the greatest, at "+
		"most the greatest of all; / 10^9", permille)
	x.input("n", int64(len(values)), what, "")
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	rank, exact, said := percentile(values, permille)
	x.input("rank", int64(rank), "", "")
	x.input("value of that rank", exact, "ns", "")
	x.input("greatest with the same 11 digits", said, "ns", "never below the exact value, above it by less than 0.1 %")
	x.input("least and greatest of all", fmt.Sprintf("%d, %d", values[0], values[len(values)-1]), "ns", "")
	x.Computed = float64(said) / 1e9
	return nil
}

// other explains metrics.other.
func (s *Source) other(ctx context.Context, x *Explanation, name string) error {
	if strings.HasPrefix(name, "save_checkpoint_") || strings.HasPrefix(name, "load_checkpoint_") {
		return s.checkpointFigure(x, name)
	}
	p := s.training()
	if rest, ok := strings.CutPrefix(name, "eval_"); ok {
		p, name = s.evaluation(), rest
	}
	switch {
	case name == "bytes_asked":
		return s.bytesAsked(ctx, x, p, 0)
	case name == "au_prescribed":
		return s.window(ctx, x, p, 0, name)
	case name == "excluded_barrier_total":
		return s.total(ctx, x, p, "barrier_ns", "waited for other accelerators in the steps outside of the window", func(s *stats.Step) int64 {
			if p.inWindow(s) {
				return 0
			}
			return s.Barrier
		})
	}
	if kind, ok := strings.CutSuffix(name, "_total"); ok {
		f, column, err := valueOf(kind)
		if err != nil {
			return err
		}
		return s.total(ctx, x, p, column, "all accelerators together: "+meaningOf(kind), f)
	}
	for q := range permilles {
		kind, ok := strings.CutSuffix(name, "_"+q)
		if !ok {
			continue
		}
		f, column, err := valueOf(kind)
		if err != nil {
			continue // p99 is the end of load_p99 and no end of load_p99_9
		}
		var values []int64
		err = p.each(ctx, 0, func(s *stats.Step) { values = append(values, f(s)) })
		x.Meaning = "spread over all steps of all accelerators: " + meaningOf(kind)
		x.Source = fmt.Sprintf("%s of the rows of %s", column, fileName(p))
		if err != nil {
			return err
		}
		return x.quantile(values, q, "steps of all accelerators")
	}
	return errKind
}

// meaningOf says what a kind of time is.
func meaningOf(kind string) string {
	switch kind {
	case "load":
		return "the wait for a batch"
	case "compute":
		return "the compute sleep, as measured"
	case "oversleep":
		return "what the compute sleep took longer than prescribed"
	case "barrier":
		return "the wait for the other accelerators after computing"
	case "step":
		return "a whole step"
	case "queue", "wait_queue":
		return "the part of the wait for a batch in which nobody had begun it"
	case "ready":
		return "how long a batch was ready before it was waited for"
	case "open", "read", "decode":
		return "what the loader's workers spent on " + kind + " for a batch, partly behind the computing"
	case "preprocess":
		return "what the loader's workers slept for preprocessing"
	case "hash":
		return "the wait after computing for what was not hashed meanwhile"
	case "wait_open", "wait_read", "wait_decode":
		return "the part of the wait for a batch that work on it accounts for: " + strings.TrimPrefix(kind, "wait_")
	case "wait_other":
		return "the part of the wait for a batch that is left, such as preprocessing and handing it over"
	}
	return kind
}

// total explains a sum over all rows.
func (s *Source) total(ctx context.Context, x *Explanation, p *part, column, meaning string, f func(*stats.Step) int64) error {
	by := map[int32]int64{}
	var sum int64
	err := p.each(ctx, 0, func(s *stats.Step) {
		by[s.Epoch] += f(s)
		sum += f(s)
	})
	x.Meaning, x.Source, x.Formula = meaning, fileName(p)+", all rows", "sum of "+column+" / 10^9"
	x.input("sum", sum, "ns", "")
	x.Table = &Table{Columns: []string{p.what, "ns"}}
	for _, k := range keysOf(by) {
		x.Table.add(int64(k), by[k])
	}
	x.Computed = float64(sum) / 1e9
	return err
}

// waits explains what the waiting of an epoch consisted of.
func (s *Source) waits(ctx context.Context, x *Explanation, p *part, epoch int, path []string) error {
	x.Unit = "s"
	kind := path[len(path)-2]
	if path[0] == "ranks" {
		kind = path[len(path)-1]
	}
	column := kind
	switch kind {
	case "queue", "open", "read", "decode", "other":
		column = "wait_" + kind
	}
	f, text, err := valueOf(column)
	if err != nil {
		return err
	}
	var values []int64
	byRank := map[int32]int64{}
	var sum int64
	err = p.each(ctx, epoch, func(s *stats.Step) {
		v := f(s)
		values = append(values, v)
		byRank[s.Rank] += v
		sum += v
	})
	if err != nil {
		return err
	}
	x.Source = fmt.Sprintf("%s of the rows of %s %d in %s", text, p.what, epoch, fileName(p))
	x.Meaning = meaningOf(column)
	switch {
	case path[0] == "ranks":
		var rank int32
		if _, err := fmt.Sscan(path[1], &rank); err != nil {
			return err
		}
		x.Meaning += "; of one accelerator in all steps"
		x.Formula = "sum over the accelerator's steps / 10^9"
		x.input("sum", byRank[rank], "ns", "accelerator "+path[1])
		x.Computed = float64(byRank[rank]) / 1e9
		return nil
	case path[2] == "total":
		x.Meaning += "; of all accelerators together"
		x.Formula = "sum / 10^9"
		x.input("sum", sum, "ns", "")
		x.Table = &Table{Columns: []string{"accelerator", "ns"}}
		for _, k := range keysOf(byRank) {
			x.Table.add(int64(k), byRank[k])
		}
		x.Computed = float64(sum) / 1e9
		return nil
	case path[0] == "steps":
		x.Meaning += "; spread over the steps of all accelerators"
		return x.quantile(values, path[2], "steps of all accelerators")
	}
	x.Meaning += "; spread over the accelerators, of each of which the sum counts"
	values = values[:0]
	for rank := range int32(s.Record.Plan.Accelerators) {
		values = append(values, byRank[rank])
	}
	return x.quantile(values, path[2], "accelerators")
}
