package stats

import "math/bits"

// histogram counts durations in buckets of at most 1/1024 of their value. It is the layout of HdrHistogram with three significant
// digits, written here because a percentile must come out bit-equal on every machine, and the library's count at a percentile
// goes through floating point that compilers may fuse. Values up to 2047 ns have a bucket each.
type histogram struct {
	counts []int64
	n      int64
	max    int64
}

// subBits is the number of leading bits of a value that pick its bucket.
const subBits = 11

// add counts one value; negative ones count as 0.
func (h *histogram) add(v int64) {
	v = max(v, 0)
	i := bucket(v)
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]int64, i+1-len(h.counts))...)
	}
	h.counts[i]++
	h.n++
	h.max = max(h.max, v)
}

// reset forgets all values and keeps the memory.
func (h *histogram) reset() {
	clear(h.counts)
	h.n, h.max = 0, 0
}

// bucket is the index of v's bucket: rising with v, without gaps.
func bucket(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-subBits)
	return shift<<(subBits-1) + int(v>>shift)
}

// upper is the greatest value of bucket i.
func upper(i int) int64 {
	shift := max(0, i>>(subBits-1)-1)
	return int64(i-shift<<(subBits-1)+1)<<shift - 1
}

// quantile returns the greatest value of the bucket that holds the value of rank ceil(n*permille/1000) in rising order, and no more
// than the greatest value seen: never below the exact quantile, and above it by less than 0.1%. ok is false with no values.
func (h *histogram) quantile(permille int64) (v int64, ok bool) {
	if h.n == 0 {
		return 0, false
	}
	// n is below 2^53 rows, so that the product fits.
	rank := max(1, (h.n*permille+999)/1000)
	var seen int64
	for i, c := range h.counts {
		if seen += c; seen >= rank {
			return min(upper(i), h.max), true
		}
	}
	return h.max, true
}
