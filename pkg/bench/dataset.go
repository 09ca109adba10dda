package bench

// Dataset is a part of a data set, the training files unless it says otherwise: what the plan counts and the engine opens. Files are
// numbered 0 to Files-1 in DLIO's order (the index in the file's name). Its methods must be pure and safe for concurrent use.
type Dataset interface {
	// Files is the number of training files.
	Files() int
	// Path is the path of file i in the store of the data set.
	Path(i int) string
	// Size is the size of file i in bytes, SampleBytes that of one of its samples.
	Size(i int) int64
	SampleBytes(i int) int64
}

// Evaluated is a Dataset that has files for evaluation beside those for training.
type Evaluated interface {
	// Evaluation is the part for evaluation. It may have no files.
	Evaluation() Dataset
}

// Foreign is a Dataset of files that nobody generated: what is known of their samples is what the manifest and the workload say. The
// logical size of a sample is its file's size divided by the samples of a file, rounded down, whatever the container: it needs no look
// into the file. SampleBytes returns it.
type Foreign interface {
	// Companions is true where each file has the companions that its container knows; where a container can do without, false.
	Companions() bool
}

// foreign returns the data set as a Foreign, nil if its recipe says what is in its files.
func foreign(ds Dataset) Foreign {
	f, _ := ds.(Foreign)
	return f
}

// evaluationOf is the part of a data set for evaluation, nil if it has none.
func evaluationOf(ds Dataset) Dataset {
	if e, ok := ds.(Evaluated); ok {
		return e.Evaluation()
	}
	return nil
}

// FileID names a file of a data set as the engine counts it.
type FileID struct {
	// Evaluation: the file is one for evaluation, else for training.
	Evaluation bool
	// Index is the number of the data file in its part.
	Index int
	// Companion is 0 for the data file itself, else the number of its companion in the order of format.Companioned, from 1.
	Companion int
}
