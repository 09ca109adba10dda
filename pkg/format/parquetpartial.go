package format

// AskedBytes is the footer, and the columns that are read of the row group that holds a row: of the larger groups more often. Where pages are
// compressed, columns are taken to shrink alike.
func (f parquetFormat) AskedBytes(sampleBytes int64, samples int, size int64) int64 {
	columns := f.columns
	if columns == nil {
		c, err := newParquetColumn("data", DType{Name: "uint8", Descr: "|u1", Size: 1}, sampleBytes)
		if err != nil {
			return size
		}
		columns = []parquetColumn{c}
	}
	rows := max(1, int64(samples))
	var data, read float64
	_ = f.groups(rows, func(_, n int64) error {
		for i := range columns {
			chunk := float64(f.chunkOf(&columns[i], 0, n).size)
			data += chunk
			if !columns[i].skip {
				read += chunk * float64(n)
			}
		}
		return nil
	})
	footer := float64(f.sizeOf(columns, rows)) - float64(len(parquetMagic)) - data
	packed := max(0, float64(size)-float64(len(parquetMagic))-footer)
	if data == 0 {
		return size
	}
	return int64(footer + float64(read/float64(rows))*float64(packed/data))
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
