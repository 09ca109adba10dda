package certify

import (
	"math"
	"math/bits"

	"github.com/benchpin/benchpin/pkg/certificate"
)

// distinct counts the different ones among hashes, in bounded memory: all of them while they fit, and then those whose hashes end in so
// many zero bits that they do. Which ones that are does not depend on the order in which they come: the level is the least at which all of
// that level fit. It is for one goroutine at a time.
type distinct struct {
	count int64
	table []uint64 // open addressing; 0 is free
	used  int
	limit int  // the most that are held
	level uint // only hashes that end in so many zero bits are
}

// tableBits bounds the table: 2^23 places of 8 bytes, of which 3/4 are used.
const tableBits = 23

// newDistinct holds at most limit hashes.
func newDistinct(limit int) *distinct {
	return &distinct{table: make([]uint64, 1<<10), limit: limit}
}

// defaultLimit is what fits into a table of 64 MiB.
const defaultLimit = 3 << (tableBits - 2)

func (d *distinct) add(h uint64) {
	d.count++
	if uint(bits.TrailingZeros64(h)) < d.level {
		return
	}
	if h == 0 {
		h = 1 << 63 // 0 marks free places
	}
	if !d.insert(h) {
		return
	}
	switch {
	case d.used > d.limit:
		for d.used > d.limit {
			d.level++
			d.rebuild(len(d.table))
		}
	case d.used > len(d.table)/4*3:
		d.rebuild(2 * len(d.table))
	}
}

// insert reports whether h was not there.
func (d *distinct) insert(h uint64) bool {
	mask := uint64(len(d.table) - 1)
	// The low bits of hashes that are held are zeros: others choose the place.
	for i := h * 0x9e3779b97f4a7c15 >> 20; ; i++ {
		switch place := &d.table[i&mask]; *place {
		case h:
			return false
		case 0:
			*place = h
			d.used++
			return true
		}
	}
}

// rebuild makes the table anew, with what is of the level.
func (d *distinct) rebuild(size int) {
	old := d.table
	d.table, d.used = make([]uint64, size), 0
	for _, h := range old {
		if h != 0 && uint(bits.TrailingZeros64(h)) >= d.level {
			d.insert(h)
		}
	}
}

// result is what was counted, or estimated: each hash is of level l with probability 2^-l, so that the number of different ones is about
// used 2^l, with a relative standard error of sqrt((1 - 2^-l) / used).
func (d *distinct) result() certificate.Distinct {
	r := certificate.Distinct{Count: certificate.Int(d.count), Exact: d.level == 0, Distinct: certificate.Int(d.used)}
	if !r.Exact {
		n := math.Ldexp(float64(d.used), int(d.level))
		r.Distinct = certificate.Int(min(float64(d.count), n))
		relative := math.Sqrt((1 - math.Ldexp(1, -int(d.level))) / float64(max(1, d.used)))
		r.Error = certificate.Round(min(1, float64(r.Distinct)/float64(d.count)*relative), 6)
	}
	r.Share = certificate.Share(r.Count, r.Distinct)
	return r
}
