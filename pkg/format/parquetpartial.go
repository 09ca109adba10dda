package format

// AskedBytes is the footer, and the columns that are read of the row group that holds a row: of the larger groups more often. Where pages are
// compressed, columns are taken to shrink alike.
func (f parquetFormat) AskedBytes(sampleBytes int64, samples int, size int64) int64 {
	c := f.GroupCost(sampleBytes, samples, size)
	n := max(1, int64(samples))
	last := n - (c.Groups-1)*c.Rows
	return c.Footer + int64((float64(c.Full)*float64(n-last)+float64(c.Last)*float64(last))/float64(n))
}

// GroupCost has the groups' sizes from their rows, and the footer from what is left of the file.
func (f parquetFormat) GroupCost(sampleBytes int64, samples int, size int64) GroupCost {
	rows := max(1, int64(samples))
	cost := GroupCost{Rows: f.rows, Groups: (rows + f.rows - 1) / f.rows, Kept: parquetGroups, Full: size, Last: size}
	columns := f.columns
	if columns == nil {
		c, err := newParquetColumn("data", DType{Name: "uint8", Descr: "|u1", Size: 1}, sampleBytes)
		if err != nil {
			return cost
		}
		columns = []parquetColumn{c}
	}
	group := func(n int64) (all, read float64) {
		for i := range columns {
			chunk := float64(f.chunkOf(&columns[i], 0, n).size)
			all += chunk
			if !columns[i].skip {
				read += chunk
			}
		}
		return all, read
	}
	fullAll, full := group(min(f.rows, rows))
	lastAll, last := group(rows - (cost.Groups-1)*f.rows)
	data := float64(fullAll*float64(cost.Groups-1)) + lastAll
	if data == 0 {
		return cost
	}
	footer := float64(f.sizeOf(columns, rows)) - float64(len(parquetMagic)) - data
	packed := max(0, float64(size)-float64(len(parquetMagic))-footer) / data
	cost.Footer, cost.Full, cost.Last = int64(footer), int64(float64(full*packed)), int64(float64(last*packed))
	return cost
}

// SelectedBytes is what the columns that are read have of a row.
func (f parquetFormat) SelectedBytes(sampleBytes int64) int64 {
	if f.columns == nil {
		return sampleBytes
	}
	var n int64
	for i := range f.columns {
		if !f.columns[i].skip {
			n += f.columns[i].width
		}
	}
	return n
}
