package format

import (
	"io"
	"sort"
)

// parquetGroups is how many row groups a reader keeps, as the MLCommons fork of DLIO does by default.
const parquetGroups = 4

// parquetMemory is a reader that keeps the last file's footer and the last row groups.
type parquetMemory struct {
	table  parquetFormat
	r      parquetReader
	file   int64 // whose footer is kept
	size   int64 // of that file, -1 if none is kept
	groups [parquetGroups]parquetGroup
	clock  uint64
	// slot is the group of the last sample; kept is true if it was there before.
	slot int
	kept bool
}

// parquetGroup is a row group that was read.
type parquetGroup struct {
	file, first, rows, logical int64
	used                       uint64 // when, 0 if never
}

// Remember returns a reader that keeps the footer of the file it read last and the four row groups that it used last: their rows
// ask for nothing. Of the row groups only their place is kept, and not the numbers.
func (f parquetFormat) Remember() SampleReader {
	return &parquetMemory{table: f, r: parquetReader{reader: reader{format: "parquet"}, remember: true}, size: -1}
}

func (m *parquetMemory) Forget() { m.size, m.groups = -1, [parquetGroups]parquetGroup{} }

func (m *parquetMemory) ReadSampleOf(file int64, f io.ReaderAt, size int64, k int, buf []byte) (Sample, error) {
	m.clock++
	row, oldest, slot := int64(k), &m.groups[0], 0
	for i := range m.groups {
		g := &m.groups[i]
		if g.used > 0 && g.file == file && row >= g.first && row-g.first < g.rows {
			g.used = m.clock
			m.slot, m.kept = i, true
			return Sample{Logical: g.logical}, nil
		}
		if g.used < oldest.used {
			oldest, slot = g, i
		}
	}
	r := &m.r
	defer r.release()
	r.reset(f, size, buf)
	r.table, r.row, r.asked = m.table, row, 0
	if m.size != size || m.file != file || row < 0 || row >= r.rows {
		m.size = -1
		if err := r.footer(size); err != nil {
			return Sample{}, err
		}
		m.file, m.size = file, size
	}
	// The last group that begins at the row or before it. A group without rows before it begins there as well.
	i := sort.Search(len(r.firsts), func(i int) bool { return r.firsts[i] > row }) - 1
	end := r.rows
	if i+1 < len(r.firsts) {
		end = r.firsts[i+1]
	}
	first := r.firsts[i]
	r.groupRows = end - first
	n := len(r.all) / len(r.firsts)
	logical, err := r.chunks(r.all[i*n : (i+1)*n])
	if err != nil {
		m.size = -1
		return Sample{}, err
	}
	*oldest = parquetGroup{file: file, first: first, rows: r.groupRows, logical: logical, used: m.clock}
	m.slot, m.kept = slot, false
	return Sample{Logical: logical, Asked: r.asked}, nil
}

// Covered has the rows of the last sample's group: see Covering. It is the group that was used last already.
func (m *parquetMemory) Covered() (from, to int) {
	g := &m.groups[m.slot]
	return int(g.first), int(g.first + g.rows)
}

// Recalled tells of the last sample: see Recalling.
func (m *parquetMemory) Recalled() (slot int, kept bool, footer int64) {
	return m.slot, m.kept, m.r.footerAt
}
