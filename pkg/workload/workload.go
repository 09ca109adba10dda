package workload

// Workload is one resolved workload: every key of DLIO's workload files and of the section "benchpin", with its
// default filled in. A field carries the name of its key; what each key means, its range and its default stand in one
// place, the key table (Keys, docs/workload.md). Lengths and sizes are in bytes, times in seconds.
type Workload struct {
	Model Model
	// Framework is "tensorflow" or "pytorch".
	Framework  string
	Workflow   Workflow
	Dataset    Dataset
	Reader     Reader
	Train      Train
	Evaluation Evaluation
	Metric     Metric
	Checkpoint Checkpoint
	Output     Output
	Storage    Storage
	Profiling  Profiling
	Benchpin   Benchpin
}

// Model is the section "model": the label of the workload and the shape of the state that a checkpoint writes.
type Model struct {
	Name string
	// Type is "" where it is not given; "transformer" is the only one with a meaning.
	Type               string
	ModelSizeBytes     int64
	OptimizationGroups []int64
	// NumLayers > 0 turns on the transformer's checkpoint model; -1 is the default.
	NumLayers         int
	LayerParameters   []int64
	ModelDatatype     string
	OptimizerDatatype string
	Parallelism       Parallelism
	Transformer       Transformer
}

// Parallelism is the section "model.parallelism".
type Parallelism struct {
	Tensor   int
	Pipeline int
	// Data is -1 where it follows from the ranks.
	Data      int
	ZeroStage int
}

// Transformer is the section "model.transformer".
type Transformer struct {
	VocabSize         int64
	HiddenSize        int64
	FFNHiddenSize     int64
	NumAttentionHeads int64
	NumKVHeads        int64
}

// Workflow is the section "workflow": which phases DLIO would run.
type Workflow struct {
	GenerateData bool
	Train        bool
	Evaluation   bool
	Checkpoint   bool
	Profiling    bool
	Query        string
}

// Dataset is the section "dataset": what the files look like and where they are.
type Dataset struct {
	// RecordLengthBytes is the size of one sample; shipped files give fractions of a byte (114660.07).
	RecordLengthBytes         float64
	RecordLengthBytesStdev    float64
	RecordLengthBytesResize   int64
	NumFilesTrain             int
	NumFilesEval              int
	NumSamplesPerFile         int
	DataFolder                string
	NumSubfoldersTrain        int
	NumSubfoldersEval         int
	FilePrefix                string
	Format                    string
	Compression               string
	CompressionLevel          int
	EnableChunking            bool
	ChunkSize                 int64
	GenerationBufferSize      int64
	KeepFiles                 bool
	RecordDims                []int
	RecordElementType         string
	RecordElementBytes        int
	HDF5                      HDF5
	JPEG                      JPEG
	Parquet                   Parquet
	DataGenMethod             string
	SkipListing               bool
	ListingValidationInterval int
	NumFilesGenerated         int
}

// HDF5 is the section "dataset.hdf5".
type HDF5 struct {
	ChunkDims        []int
	NumDsetPerRecord int
	MaxShape         []int
}

// JPEG is the section "dataset.jpeg", which DLIO does not have. It is about png as well.
type JPEG struct {
	// Sizing is SizingExact or SizingEncoded.
	Sizing string
}

// Parquet is the section "dataset.parquet" of the MLCommons fork.
type Parquet struct {
	Columns             []Column
	RowGroupSize        int
	ReadMode            string
	PartitionBy         string
	GenerationBatchSize int
	UseS3dlioGen        bool
}

// Column is one element of "dataset.parquet.columns".
type Column struct {
	Name  string
	DType string
	// Size is the number of elements in one row.
	Size int
	// Read is false for a column that is generated and never read.
	Read bool
}

// Reader is the section "reader", or "data_reader": how samples are read and batched.
type Reader struct {
	DataLoader                   string
	DataLoaderClassname          string
	DataLoaderSampler            string
	ReaderClassname              string
	MultiprocessingContext       string
	BatchSize                    int
	BatchSizeEval                int
	ReadThreads                  int
	ComputationThreads           int
	WriteThreads                 int
	PrefetchSize                 int
	ShuffleSize                  int
	FileShuffle                  string
	SampleShuffle                string
	ReadType                     string
	FileAccess                   string
	TransferSize                 int64
	ODirect                      bool
	DontUseMmap                  bool
	PinMemory                    bool
	PreprocessTime               Time
	TransformedRecordDims        []int
	TransformedRecordElementType string
}

// Train is the section "train".
type Train struct {
	Epochs int
	// TotalTrainingSteps caps the steps of each epoch; -1 does not.
	TotalTrainingSteps int64
	ComputationTime    Time
	// Seed is the seed of the order of samples and of drawn times, in [0, 2^32).
	Seed            int64
	SeedChangeEpoch bool
}

// Evaluation is the section "evaluation".
type Evaluation struct {
	EvalTime           Time
	EvalAfterEpoch     int
	EpochsBetweenEvals int
}

// Metric is the section "metric".
type Metric struct {
	// AU is the threshold of accelerator utilisation, as a fraction of 1.
	AU float64
}

// Checkpoint is the section "checkpoint".
type Checkpoint struct {
	CheckpointFolder             string
	CheckpointAfterEpoch         int
	EpochsBetweenCheckpoints     int
	StepsBetweenCheckpoints      int64
	Type                         string
	Mode                         string
	CheckpointMechanismClassname string
	Fsync                        bool
	TimeBetweenCheckpoints       float64
	NumCheckpointsWrite          int
	NumCheckpointsRead           int
	RecoveryRankShift            bool
	RankSync                     bool
	RandomizeTensor              bool
	KSM                          KSM
}

// KSM is the section "checkpoint.ksm", kernel same-page merging.
type KSM struct {
	// Enabled is true when the section is there.
	Enabled         bool
	MadvMergeableID int
	HighRAMTrigger  float64
	LowRAMExit      float64
	AwaitTime       float64
}

// Output is the section "output".
type Output struct {
	Folder  string
	LogFile string
	Metric  OutputMetric
}

// OutputMetric is the section "output.metric": the steps of a block that do not count for AU.
type OutputMetric struct {
	ExcludeStartSteps int
	ExcludeEndSteps   int
}

// Storage is the section "storage".
type Storage struct {
	StorageType                 string
	StorageRoot                 string
	StorageLibrary              string
	PostGenerationSettleSeconds float64
	StorageOptions              StorageOptions
}

// StorageOptions is the section "storage.storage_options". AccessKeyID and SecretAccessKey never appear in the
// canonical form.
type StorageOptions struct {
	EndpointURL      string
	Region           string
	AccessKeyID      string
	SecretAccessKey  string
	S3ForcePathStyle bool
	S3MaxAttempts    int
	StorageLibrary   string
	URIScheme        string
	PrefetchWindow   int
	PrefetchWorkers  int
	SimulateIO       bool
}

// Profiling is the section "profiling".
type Profiling struct {
	Profiler      string
	IostatDevices []string
}

// Benchpin is the section "benchpin": what DLIO has no key for.
type Benchpin struct {
	// Seed is the seed of the data set. It is a string of decimal digits in the canonical form.
	Seed uint64
	// Verify says when the data set is compared with its manifest: VerifyBefore, VerifyInline, VerifyAfter, VerifySample or VerifyNone.
	Verify string
	// VerifySample is how much of the data set VerifySample hashes: a number of files, or a percentage of them such as "5%".
	VerifySample string
	// Accelerators is the number of simulated accelerators, DLIO's number of MPI ranks.
	Accelerators int
	// AcceleratorsPerProcess is how many of them each process carries, where several carry a run together; 0: they are dealt out evenly.
	AcceleratorsPerProcess int
	// ColdCache says when the data set's pages leave the page cache: ColdNone, ColdStart, ColdEpoch or ColdAll.
	ColdCache string
	// Order is the order in which samples are read: OrderNumpy or OrderDLIO.
	Order      string
	Thresholds Thresholds
}

// Thresholds is the section "benchpin.thresholds": least rates over all accelerators, beside metric.au. 0 asks for
// nothing.
type Thresholds struct {
	SamplesPerSecond float64
	BytesPerSecond   float64
}

// The words of reader.file_shuffle and reader.sample_shuffle.
const (
	ShuffleOff    = "off"
	ShuffleSeed   = "seed"
	ShuffleRandom = "random"
)

// The words of dataset.jpeg.sizing.
const (
	// SizingExact makes image files of exactly the record length.
	SizingExact = "exact"
	// SizingEncoded makes images of the record's pixels, and files of whatever size they have encoded.
	SizingEncoded = "encoded"
)

// The words of benchpin.verify.
const (
	// VerifyBefore hashes every file that the run will read before the clock starts.
	VerifyBefore = "before"
	// VerifyInline hashes what was read while the accelerators sleep.
	VerifyInline = "inline"
	// VerifyAfter hashes them after the run.
	VerifyAfter = "after"
	// VerifySample hashes some of them, drawn at random, before the clock starts.
	VerifySample = "sample"
	// VerifyNone hashes nothing; the default policy refuses such a result.
	VerifyNone = "none"
)

// The words of benchpin.cold_cache.
const (
	// ColdNone leaves the page cache alone.
	ColdNone = "none"
	// ColdStart drops the data set's pages before the first epoch.
	ColdStart = "start"
	// ColdEpoch drops them before every epoch.
	ColdEpoch = "epoch"
	// ColdAll drops all that is in the machine's page cache before every epoch, which takes the superuser.
	ColdAll = "all"
)

// The words of benchpin.order.
const (
	// OrderNumpy shuffles as numpy's legacy generator does, which DLIO means to use.
	OrderNumpy = "numpy"
	// OrderDLIO is the order in which DLIO really reads.
	OrderDLIO = "dlio"
)
