package format

// Partial is a Format that reads a sample and not the file it is in. A Format without it reads the whole file for one sample, as
// numpy and image decoders do: plans count bytes accordingly, and loaders that keep files open ask for nothing a second time.
type Partial interface {
	// AskedBytes returns how many bytes reading one sample asks for, companions included, in a file of the given size in bytes that
	// holds so many samples of sampleBytes each: the mean where samples differ, an estimate where content decides.
	AskedBytes(sampleBytes int64, samples int, size int64) int64
}

// SampleCost is the number of bytes that reading one sample asks for: what a Partial says, else the size of the file.
func SampleCost(f Format, sampleBytes int64, samples int, size int64) int64 {
	if p, ok := f.(Partial); ok {
		return p.AskedBytes(sampleBytes, samples, size)
	}
	return size
}

// Selective is a Format that reads a part of each sample only, such as some columns of a row.
type Selective interface {
	// SelectedBytes returns how many bytes of a sample of sampleBytes are read: the Logical of what ReadSample returns.
	SelectedBytes(sampleBytes int64) int64
}

// Selected is the number of bytes of a sample that the framework gets to see.
func Selected(f Format, sampleBytes int64) int64 {
	if s, ok := f.(Selective); ok {
		return s.SelectedBytes(sampleBytes)
	}
	return sampleBytes
}
