// Package record is the result document of one run: its types, its one canonical byte form, its schema and the classes of
// its figures. It never measures, prints or signs anything; it imports nothing of benchpin but the embedded schemas.
package record

import "encoding/json"

// SchemaName is the value of the field "schema" of every record that this package writes.
const SchemaName = "benchpin.record/v1"

// MediaType is the media type of a record as a layer of an archive.
const MediaType = "application/vnd.benchpin.record.v1+json"

// Class says who can know that a figure is true (docs/record.md).
type Class string

// The classes of figures.
const (
	// Recomputable figures follow from the archive alone: anyone can compute them again.
	Recomputable Class = "C"
	// Witnessed figures were seen by a third party, such as a time-stamp authority.
	Witnessed Class = "W"
	// HostOnly figures are known only from the host that ran the benchmark.
	HostOnly Class = "H"
)

// The states of a record.
const (
	// StatusComplete: every planned step was run and every check that belongs to the run passed.
	StatusComplete = "complete"
	// StatusIncomplete: the run was interrupted or failed; its figures cover what was run and are no result.
	StatusIncomplete = "incomplete"
)

// FewSteps is the number of steps in the window of an epoch below which the figures of the window say little: one batch or two that were
// prefetched before it weigh too much.
const FewSteps = 5

// Record is the result document of one run.
type Record struct {
	Schema string `json:"schema"`
	// ID names the run: UTC start time and random bits, e.g. "20261130T141500Z-3f9c2a".
	ID     string `json:"id"`
	Status string `json:"status"`
	// Reason says why the record is incomplete; absent in a complete one.
	Reason string `json:"reason,omitempty"`
	// Started and Finished are the host's wall clock, RFC 3339 in UTC with nanoseconds (class H).
	Started     string      `json:"started"`
	Finished    string      `json:"finished"`
	Tool        Tool        `json:"tool"`
	Workload    Workload    `json:"workload"`
	Dataset     Dataset     `json:"dataset"`
	Plan        Plan        `json:"plan"`
	Transcript  Transcript  `json:"transcript"`
	Checkpoints Checkpoints `json:"checkpoints"`
	Environment Environment `json:"environment"`
	// Cluster says on which processes and hosts; absent where one process carried all accelerators.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Journal is where this run stands among all attempts that were journalled; absent where no journal was kept.
	Journal *Journal `json:"journal,omitempty"`
	// ReplayOf is the result that this run repeats; absent where it repeats none.
	ReplayOf *ReplayOf `json:"replay_of,omitempty"`
	// Preregistration is what was signed before the run about what it would be judged by; absent where nothing was.
	Preregistration *Preregistration `json:"preregistration,omitempty"`
	// NotBefore is a public value that the order of samples was drawn with; absent where none was.
	NotBefore *NotBefore `json:"not_before,omitempty"`
	Metrics   Metrics    `json:"metrics"`
	// Files are the files that stand beside the record in the run folder and belong to it, sorted by name.
	Files []File `json:"files"`
}

// Tool identifies the program that made the record.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Commit is the revision of the source the binary was built from, "" where the build did not know it.
	Commit string `json:"commit"`
	// Modified is true when the source had uncommitted changes.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Binary is the BLAKE3 digest of the running executable.
	Binary string `json:"binary"`
	// Modules are the module digests linked into the binary, sorted by path.
	Modules []Module `json:"modules"`
}

// Module is one Go module linked into the binary, with its go.sum digest ("h1:...").
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum"`
}

// Workload is the resolved workload of the run.
type Workload struct {
	Name string `json:"name"`
	// Digest is the BLAKE3 digest of Canonical's bytes, as written here.
	Digest string `json:"digest"`
	// Source is the BLAKE3 digest of the workload file as it was read, before overrides.
	Source string `json:"source"`
	// Overrides are the overrides as they were given, in order.
	Overrides []string `json:"overrides"`
	// Canonical is the canonical form of the resolved workload (pkg/workload).
	Canonical json.RawMessage `json:"canonical"`
}

// Dataset says which bytes were there to be read, and how that is known.
type Dataset struct {
	Class Class `json:"class"`
	// Root is the manifest's root, "blake3:<hex>"; scripts look for it here.
	Root string `json:"root"`
	// Manifest is the BLAKE3 digest of the manifest's header (manifest.json).
	Manifest string `json:"manifest"`
	Files    Int    `json:"files"`
	Bytes    Int    `json:"bytes"`
	// Generated is true when the manifest carries the recipe that determines every byte.
	Generated bool `json:"generated"`
	// Seed is the seed of the recipe; absent for data that nobody generated.
	Seed string `json:"seed,omitempty"`
	// Format is the container as which the files of a data set are read that nobody generated; absent for others, whose recipe says it.
	Format       string       `json:"format,omitempty"`
	Verification Verification `json:"verification"`
}

// Verification says how the data set was compared with its manifest (design: before, after, none).
type Verification struct {
	Class Class  `json:"class"`
	Mode  string `json:"mode"`
	// Files and Bytes were hashed and found equal to the manifest.
	Files Int `json:"files"`
	Bytes Int `json:"bytes"`
	// Seconds is the wall time of the verification.
	Seconds float64 `json:"seconds"`
	// ResidentBefore and ResidentAfter are bytes of the data set in the page cache before and after verifying; absent when the
	// host could not tell.
	ResidentBefore *Int `json:"resident_bytes_before,omitempty"`
	ResidentAfter  *Int `json:"resident_bytes_after,omitempty"`
	// IdentityRechecked is the number of times that a file's identity (size, mtime, ctime, inode) was compared again when the
	// run opened it.
	IdentityRechecked Int `json:"identity_rechecked"`
	// Inline is there with mode inline alone, Sample with mode sample.
	Inline *InlineVerification `json:"inline,omitempty"`
	Sample *SampleVerification `json:"sample,omitempty"`
}

// Plan is what the run set out to do, computed before anything ran. All of it follows from workload, accelerators and manifest.
type Plan struct {
	Class          Class `json:"class"`
	Accelerators   int   `json:"accelerators"`
	Epochs         int   `json:"epochs"`
	Files          Int   `json:"files"`
	SamplesPerFile Int   `json:"samples_per_file"`
	Samples        Int   `json:"samples"`
	BatchSize      int   `json:"batch_size"`
	StepsPerEpoch  Int   `json:"steps_per_epoch"`
	// SamplesPerEpoch are read by all accelerators in one epoch; SamplesDropped are left out by the step rule.
	SamplesPerEpoch Int `json:"samples_per_epoch"`
	SamplesDropped  Int `json:"samples_dropped"`
	// BytesPerEpoch are the file bytes asked of the store in one epoch, exact when every epoch reads the same samples, else the
	// mean; BytesTotal is over all epochs and exact.
	BytesPerEpoch Int `json:"bytes_per_epoch"`
	BytesTotal    Int `json:"bytes_total"`
	// ComputeSeconds is the mean compute time of a step.
	ComputeSeconds float64 `json:"compute_seconds"`
	// ExpectedSeconds is the duration of the timed run when the store always keeps up.
	ExpectedSeconds float64 `json:"expected_seconds"`
	// AUThreshold is metric.au as a percentage. RequiredBytesPerSecond and RequiredFilesPerSecond are what the store must deliver
	// to all accelerators together for AU to reach it; 0 compute time requires no rate and both are absent.
	AUThreshold            float64  `json:"au_threshold"`
	RequiredBytesPerSecond *float64 `json:"required_bytes_per_second,omitempty"`
	RequiredFilesPerSecond *float64 `json:"required_files_per_second,omitempty"`
	ReadThreads            int      `json:"read_threads"`
	PrefetchFactor         int      `json:"prefetch_factor"`
	// Loader is the data loader emulated, absent for pytorch. ReadThreads are its threads for one accelerator; PrefetchFactor is the
	// factor for each worker (pytorch), the batches ready ahead (tensorflow; with tfrecord those in computation_threads too), or the depth
	// of the queue (dali, native_dali).
	Loader string `json:"loader,omitempty"`
	// Order is the order in which samples are read, "numpy" or "dlio"; OrderSeed its seed (train.seed).
	Order     string `json:"order"`
	OrderSeed Int    `json:"order_seed"`
	// Checkpoints counts the checkpoints written; CheckpointBytes is the payload of one, over all ranks.
	Checkpoints     int `json:"checkpoints"`
	CheckpointBytes Int `json:"checkpoint_bytes"`
	// CheckpointForm is "tensorflow" where checkpoints are TensorFlow's bundles, absent where they are PyTorch's files, and where there are none.
	CheckpointForm string `json:"checkpoint_form,omitempty"`
	// CheckpointReads counts the checkpoints read back, in a run that does nothing but write and read them.
	CheckpointReads int `json:"checkpoint_reads,omitempty"`
	// MemoryBytes is the buffer memory that the run needs at most.
	MemoryBytes Int `json:"memory_bytes"`
	// Evaluation is absent where there is none.
	Evaluation *PlanEvaluation `json:"evaluation,omitempty"`
	// Direct: files are read past the page cache (reader.odirect, or storage.storage_type direct_fs), and a file system that cannot do that
	// fails the run. Absent where they are not, and in records of earlier versions, which read through the page cache then.
	Direct bool `json:"direct,omitempty"`
}

// PlanEvaluation are the passes over the files for evaluation. They come after training epochs and are no part of the other figures
// of the plan.
type PlanEvaluation struct {
	// AfterEpoch is the first epoch that a pass follows, EpochsBetween the number of epochs from one pass to the next.
	AfterEpoch    int `json:"after_epoch"`
	EpochsBetween int `json:"epochs_between"`
	Passes        int `json:"passes"`
	Files         Int `json:"files"`
	Samples       Int `json:"samples"`
	BatchSize     int `json:"batch_size"`
	// Steps are those of a pass; SamplesPerPass are read by all accelerators in one, SamplesDropped are left out by the step rule.
	Steps          Int `json:"steps"`
	SamplesPerPass Int `json:"samples_per_pass"`
	SamplesDropped Int `json:"samples_dropped"`
	// BytesTotal are the bytes asked of the store in all passes.
	BytesTotal Int `json:"bytes_total"`
	// ComputeSeconds is the mean compute time of a step.
	ComputeSeconds float64 `json:"compute_seconds"`
}

// Transcript is the account of what was read in the timed run.
type Transcript struct {
	Class Class `json:"class"`
	// Root is the RFC 6962 BLAKE3 root over the rank digests, "blake3:<hex>"; scripts look for it here.
	Root string `json:"root"`
	// Ranks are the final chain digests, in rank order.
	Ranks   []string `json:"ranks"`
	Entries Int      `json:"entries"`
	// Expected is the root computed from recipe, workload and plan without data; a complete record has it equal to Root.
	Expected string `json:"expected"`
	// Evaluation is the account of the passes over the files for evaluation; absent where there are none.
	Evaluation *EvaluationTranscript `json:"evaluation,omitempty"`
}

// EvaluationTranscript is the account of what was read in the passes over the files for evaluation. Its fields are those of
// Transcript.
type EvaluationTranscript struct {
	Root     string   `json:"root"`
	Ranks    []string `json:"ranks"`
	Entries  Int      `json:"entries"`
	Expected string   `json:"expected"`
}

// Checkpoints says which model state was written and read back during the run.
type Checkpoints struct {
	Class Class        `json:"class"`
	Fsync bool         `json:"fsync"`
	Saves []Checkpoint `json:"saves"`
	// Eviction says what was done between the writes and the reads; absent where nothing was.
	Eviction *Eviction `json:"eviction,omitempty"`
	// Loads are the checkpoints that were read back; absent where none were.
	Loads []CheckpointLoad `json:"loads,omitempty"`
}

// Checkpoint is one write of the model state by all ranks. Its times are class H.
type Checkpoint struct {
	// Name is DLIO's folder name, "global_epoch{E}_step{S}".
	Name  string `json:"name"`
	Epoch int    `json:"epoch"`
	Step  Int    `json:"step"`
	// Bytes is the size of all files of this checkpoint; Digest the manifest-style root over them.
	Bytes  Int    `json:"bytes"`
	Digest string `json:"digest"`
	// Start is when the first rank began, in seconds after the record's "started".
	Start *float64 `json:"start_seconds,omitempty"`
	// Seconds holds the duration of every rank's write, in rank order: until the store had committed its files, and with
	// checkpoint.rank_sync until all ranks had.
	Seconds []float64 `json:"seconds"`
	// WriteSeconds is the part of Seconds until the last byte of each file was handed over, before it was committed.
	WriteSeconds []float64 `json:"write_seconds,omitempty"`
	// StarvedSeconds is the part of WriteSeconds in which writing waited for content to be produced: the benchmark's own cost.
	StarvedSeconds []float64 `json:"starved_seconds,omitempty"`
}

// CheckpointLoad is one read of the model state by all ranks. Its times are class H.
type CheckpointLoad struct {
	// Name, Epoch and Step are those of the checkpoint that was read.
	Name  string `json:"name"`
	Epoch int    `json:"epoch"`
	Step  Int    `json:"step"`
	// Bytes were read by all ranks together.
	Bytes Int `json:"bytes"`
	// Verified is true when every byte was compared with what the seed gives, and was that.
	Verified bool `json:"verified"`
	// Start is when the first rank began, in seconds after the record's "started".
	Start float64 `json:"start_seconds"`
	// Seconds holds the duration of every rank's read, in rank order, and with checkpoint.rank_sync until all ranks had read.
	Seconds []float64 `json:"seconds"`
	// WaitedSeconds is the part of Seconds in which reading waited for bytes to be compared: the benchmark's own cost.
	WaitedSeconds []float64 `json:"waited_seconds"`
	// DeviceBytes came from a block device meanwhile, as the kernel counted them for this process; absent where it does not.
	DeviceBytes *Int `json:"device_bytes,omitempty"`
}

// Eviction is how checkpoints were dropped from the page cache before they were read back.
type Eviction struct {
	// Files and Bytes are those of the checkpoints to be read.
	Files Int `json:"files"`
	Bytes Int `json:"bytes"`
	// ResidentBefore and ResidentAfter are how much of them was in the page cache; absent when the host could not tell.
	ResidentBefore *Int `json:"resident_bytes_before,omitempty"`
	ResidentAfter  *Int `json:"resident_bytes_after,omitempty"`
}

// Metrics are the figures of the run. A figure that could not be computed is absent with a reason, never 0.
type Metrics struct {
	// AU is accelerator utilisation in percent, corrected (docs/decisions.md), over all epochs; Met compares it with the threshold.
	AU        Figure `json:"au"`
	Threshold Figure `json:"au_threshold"`
	Met       *bool  `json:"au_met,omitempty"`
	// SamplesPerSecond and BytesPerSecond are over all accelerators.
	SamplesPerSecond Figure `json:"samples_per_second"`
	BytesPerSecond   Figure `json:"bytes_per_second"`
	// Epochs are the figures of each epoch, in order.
	Epochs []EpochMetrics `json:"epochs"`
	// Evaluation are the figures of the passes over the files for evaluation; absent where there are none.
	Evaluation *EvaluationMetrics `json:"evaluation,omitempty"`
	// DLIO holds the figures as DLIO computes them, under DLIO's field names (summary.json's "metric").
	DLIO map[string]any `json:"dlio"`
	// Other named figures: percentiles of load, step and compute times, oversleep, barrier time, and so on.
	Other map[string]Figure `json:"other"`
}

// EvaluationMetrics are the figures of the passes over the files for evaluation, over all of them and of each in order.
type EvaluationMetrics struct {
	AU               Figure `json:"au"`
	SamplesPerSecond Figure `json:"samples_per_second"`
	BytesPerSecond   Figure `json:"bytes_per_second"`
	// Passes are named by the epoch that they followed.
	Passes []EpochMetrics `json:"passes"`
}

// NoMetrics are the metrics of a run that ended before it had any: every figure is absent for the given reason. threshold is
// Plan.AUThreshold.
func NoMetrics(threshold float64, reason string) Metrics {
	none := func(unit string) Figure { return Figure{Unit: unit, Class: HostOnly, Absent: reason} }
	return Metrics{
		AU: none("%"), Threshold: Figure{Value: &threshold, Unit: "%", Class: Recomputable}, SamplesPerSecond: none("samples/s"),
		BytesPerSecond: none("B/s"), Epochs: []EpochMetrics{}, DLIO: map[string]any{}, Other: map[string]Figure{},
	}
}

// EpochMetrics are the figures of one epoch.
type EpochMetrics struct {
	Epoch            int    `json:"epoch"`
	Steps            Int    `json:"steps"`
	Seconds          Figure `json:"seconds"`
	AU               Figure `json:"au"`
	SamplesPerSecond Figure `json:"samples_per_second"`
	BytesPerSecond   Figure `json:"bytes_per_second"`
	// BytesAsked were asked of the store; BytesDevice came from a block device, as the kernel counted them for this process.
	BytesAsked  Figure `json:"bytes_asked"`
	BytesDevice Figure `json:"bytes_device"`
	// Storage says where the bytes came from, Waits what the waiting consisted of; absent in records of earlier versions, and where the
	// host was not asked.
	Storage *Storage `json:"storage,omitempty"`
	Waits   *Waits   `json:"waits,omitempty"`
}

// Figure is one number with its unit and class.
type Figure struct {
	// Value is absent when the figure could not be computed; Absent then says why.
	Value  *float64 `json:"value,omitempty"`
	Unit   string   `json:"unit"`
	Class  Class    `json:"class"`
	Absent string   `json:"absent,omitempty"`
}

// File is a file beside the record.
type File struct {
	Name   string `json:"name"`
	Size   Int    `json:"size"`
	Blake3 string `json:"blake3"`
}
