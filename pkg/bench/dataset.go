package bench

// Dataset is the training part of a data set: what the plan counts and the engine opens. Files are numbered 0 to Files-1 in
// DLIO's order (the index in the file's name). Its methods must be pure and safe for concurrent use.
type Dataset interface {
	// Files is the number of training files.
	Files() int
	// Path is the path of file i in the store of the data set.
	Path(i int) string
	// Size is the size of file i in bytes, SampleBytes that of one of its samples.
	Size(i int) int64
	SampleBytes(i int) int64
}
