//go:build hdf5 && cgo

package format

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBoundHolds compares the bound of a build without libhdf5 with what libhdf5 makes of the same chunks, of full and of any sizes.
func TestBoundHolds(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, spec Spec, l Layout, sizes func(most int64) uint64) {
		made, err := New(spec)
		if err != nil {
			t.Errorf("%+v: %v", spec, err)
			return
		}
		f, packed := made.(h5Chunks)
		if !packed {
			f = made.(h5Gzip).h5Chunks
		}
		g, err := f.grid(l)
		if err != nil {
			return // refused by every build
		}
		most := g.bytes
		if f.how.level >= 0 {
			most = h5GzipBound(most)
		}
		bound := f.bound(g, l.Samples, most)
		all := f.equal(g, most)
		full, err := f.sized(g, l.DType, all)
		if err != nil {
			t.Errorf("%+v: %v", spec, err)
			return
		}
		if full > bound {
			t.Errorf("%+v, %v: %d bytes, above the bound of %d", spec, l, full, bound)
		}
		if most > 64<<10 && bound > full+full/8+128<<10 {
			t.Errorf("%+v, %v: %d bytes, and the bound is %d", spec, l, full, bound)
		}
		if !packed {
			return
		}
		for i := range all {
			all[i] = sizes(most)
		}
		if n, err := f.sized(g, l.DType, all); err != nil || n > bound {
			t.Errorf("%+v, %v: %d bytes (%v), above the bound of %d", spec, l, n, err, bound)
		}
	}
	for _, c := range chunkedCases() {
		c.spec.Name = "hdf5"
		for _, d := range dtypes() {
			c.l.DType = d.DType
			k := int64(0)
			check(t, c.spec, c.l, func(most int64) uint64 { k += 7919; return uint64(1 + k%most) })
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		spec := Spec{Name: "hdf5", Datasets: rapid.IntRange(1, 5).Draw(r, "sets")}
		l := Layout{Dims: []int{spec.Datasets * rapid.IntRange(2, 40).Draw(r, "d"), rapid.IntRange(1, 60).Draw(r, "e")},
			Samples: rapid.IntRange(1, 9).Draw(r, "n"), DType: rapid.SampledFrom(dtypes()).Draw(r, "type").DType}
		if rapid.Bool().Draw(r, "chunk") {
			spec.Chunk = []int{rapid.IntRange(1, l.Samples).Draw(r, "c0"), rapid.IntRange(1, l.Dims[0]/spec.Datasets).Draw(r, "c1"),
				rapid.IntRange(1, l.Dims[1]).Draw(r, "c2")}
		}
		if rapid.Bool().Draw(r, "gzip") || spec.Chunk == nil {
			spec.Compression = "gzip"
		}
		check(r, spec, l, func(most int64) uint64 { return uint64(rapid.Int64Range(1, most).Draw(r, "size")) })
	})
}
