package format

import "slices"

// rotations sorts the rotations of a text (the Burrows-Wheeler transform), by doubling prefixes (Larsson and Sadakane). Numbers need two
// rounds, since they hardly repeat; a text that does takes a round for each doubling of what is repeated, and none beyond its period.
// What is computed is defined by the text alone, but for the choice among equal rotations: it is the last one.
type rotations struct {
	order []int32 // the rotations, sorted as far as they are told apart; a negative number -n: the next n are done
	rank  []int32 // of each rotation: the last place of those that are not told apart from it
	count []int32
	keys  []uint64 // of one group, to be sorted
}

// maxSortKeys bounds the numbers that the first symbols make.
const maxSortKeys = 1 << 18

// column returns, for the sorted rotations of text, the byte before each, in memory like out, and the place of the text itself.
func (r *rotations) column(text, out []byte) ([]byte, int) {
	n := len(text)
	if cap(r.order) < n {
		r.order, r.rank = make([]int32, max(n, bzipBlock)), make([]int32, max(n, bzipBlock))
	}
	r.order, r.rank = r.order[:n], r.rank[:n]
	for depth := r.first(text); depth < n && r.double(depth); depth *= 2 {
	}
	out = slices.Grow(out[:0], n)[:n]
	// Equal rotations have the same byte before them.
	for i, at := range r.rank {
		before := i - 1
		if i == 0 {
			before = n - 1
		}
		out[at] = text[before]
	}
	for a := 0; a < n; {
		if r.order[a] < 0 {
			a -= int(r.order[a])
			continue
		}
		end := int(r.rank[r.order[a]])
		for ; a < end; a++ {
			out[a] = out[end]
		}
		a++
	}
	return out, int(r.rank[0])
}

// first sorts by the first symbols, as many as have less than maxSortKeys values together, and returns their number.
func (r *rotations) first(text []byte) int {
	n := len(text)
	var number [256]int32
	for _, b := range text {
		number[b] = 1
	}
	symbols := int32(0)
	for b, there := range number {
		number[b] = symbols
		symbols += there
	}
	symbols = max(symbols, 2)
	depth, values := 1, symbols
	for values*symbols <= maxSortKeys {
		values *= symbols
		depth++
	}
	if r.count == nil {
		r.count = make([]int32, maxSortKeys+1)
	}
	count := r.count[:values+1]
	clear(count)
	// The key of a rotation follows from that of the next one.
	key, top := int32(0), values/symbols
	for i := depth - 1; i >= 0; i-- {
		key = key/symbols + number[text[i%n]]*top
	}
	for i := n - 1; i >= 0; i-- {
		key = key/symbols + number[text[i]]*top
		r.rank[i] = key
		count[key+1]++
	}
	for k := range values {
		count[k+1] += count[k]
	}
	for i, key := range r.rank {
		r.order[count[key]] = int32(i)
		count[key]++ // in the end, where the next key begins
	}
	for i, key := range r.rank {
		r.rank[i] = count[key] - 1
	}
	return depth
}

// double sorts, by the next depth symbols, what is equal in the first depth ones. It reports whether anything is left that was told apart.
func (r *rotations) double(depth int) bool {
	n := len(r.order)
	split, left := false, false
	done := 0 // places just before a that are done
	for a := 0; a < n; {
		if v := r.order[a]; v < 0 {
			done -= int(v)
			a -= int(v)
			continue
		}
		end := int(r.rank[r.order[a]]) + 1
		if end-a == 1 {
			done++
			a++
			continue
		}
		if done > 0 {
			r.order[a-done] = int32(-done)
			done = 0
		}
		if r.group(a, end, depth) {
			split = true
		}
		left = true
		a = end
	}
	if done > 0 {
		r.order[n-done] = int32(-done)
	}
	return split && left
}

// group sorts order[a:end], and reports whether it was divided.
func (r *rotations) group(a, end, depth int) bool {
	n, order := len(r.order), r.order[a:end]
	keys := r.keys[:0]
	for _, i := range order {
		next := int(i) + depth
		if next >= n {
			next -= n
		}
		keys = append(keys, uint64(r.rank[next])<<32|uint64(i))
	}
	r.keys = keys
	if len(keys) > 12 {
		slices.Sort(keys)
	} else {
		for i := 1; i < len(keys); i++ {
			k, j := keys[i], i
			for ; j > 0 && keys[j-1] > k; j-- {
				keys[j] = keys[j-1]
			}
			keys[j] = k
		}
	}
	if keys[0]>>32 == keys[len(keys)-1]>>32 {
		return false
	}
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to]>>32 == keys[from]>>32 {
			to++
		}
		for ; from < to; from++ {
			i := int32(uint32(keys[from]))
			order[from] = i
			r.rank[i] = int32(a + to - 1)
		}
	}
	return true
}
