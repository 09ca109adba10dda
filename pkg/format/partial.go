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

// Grouped is a Remembering whose readers keep groups of samples: what is asked of a file then depends on which samples follow each other.
type Grouped interface {
	// GroupCost says what a file of the given size in bytes with so many samples of sampleBytes costs; an estimate where content decides.
	GroupCost(sampleBytes int64, samples int, size int64) GroupCost
}

// GroupCost is what a reader that remembers asks of one file.
type GroupCost struct {
	// Rows are the samples of a group; the last group may have fewer.
	Rows int64
	// Footer is asked for when the reader comes from another file, Full for each group that it does not have, Last for the last one.
	Footer, Full, Last int64
	// Groups is the number of groups of the file, Kept the number that a reader keeps: those that it used last.
	Groups int64
	Kept   int
}
