package stats

import (
	"fmt"
	"math"
)

// SchemaName is the value of SchemaKey in the metadata of every file of steps that this package writes.
const SchemaName = "benchpin.steps/v1"

// The keys of the parquet file's own metadata.
const (
	// SchemaKey names the form of the file.
	SchemaKey = "benchpin.schema"
	// DeviceKey holds what the kernel counted for each epoch, as canonical JSON: a list of {"epoch","bytes"} or {"epoch","absent"}.
	DeviceKey = "benchpin.device_bytes"
)

// Step is one step of one rank: one row of steps.parquet. All times are nanoseconds of a monotonic clock; the offsets (…_start_ns,
// …_end_ns) count from one moment that all ranks share, the start of the timed run. Every column is a plain required integer.
//
// Rows are sorted by epoch, step, rank.
type Step struct {
	// Epoch and Step are counted from 1, Step within its epoch; Rank from 0.
	Epoch int32 `parquet:"epoch"`
	Step  int64 `parquet:"step"`
	Rank  int32 `parquet:"rank"`
	// Block is the stretch of steps between two checkpoints that this step belongs to, counted from 1 in each epoch.
	Block int32 `parquet:"block"`
	// BlockStart is when this rank began the block, before its loader started in the first one.
	BlockStart int64 `parquet:"block_start_ns"`
	// BlockEnd is when this rank ended the block, as far as it was known with this row: the end of the step, and in the block's last
	// row the end of the block. The greatest one of a rank's block is therefore its end.
	BlockEnd int64 `parquet:"block_end_ns"`
	// Start is when the rank began to wait for the step's batch.
	Start int64 `parquet:"start_ns"`
	// Load is how long it waited; Compute how long its compute sleep took; Prescribed how long it should have taken; Proc the time
	// from Start to the end of the compute; Barrier the wait for the other ranks after that.
	Load       int64 `parquet:"load_ns"`
	Compute    int64 `parquet:"compute_ns"`
	Prescribed int64 `parquet:"prescribed_compute_ns"`
	Proc       int64 `parquet:"proc_ns"`
	Barrier    int64 `parquet:"barrier_ns"`
	// Open, Read and Decode are what the loader's workers spent on this batch, summed over its samples. They overlap with earlier
	// steps and with each other, and are 0 where the loader does not tell them apart.
	Open   int64 `parquet:"open_ns"`
	Read   int64 `parquet:"read_ns"`
	Decode int64 `parquet:"decode_ns"`
	// Samples and Bytes are the samples of the batch and the bytes that were asked of the store for them.
	Samples int64 `parquet:"samples"`
	Bytes   int64 `parquet:"bytes"`

	// The columns from here on came later: files of earlier versions have none of them (Reader.Waits), and rows read from those have 0.

	// Queue is the part of Load in which nobody had begun the batch; Ready is how long the batch was ready before the rank began to wait
	// for it. At most one of them is above 0.
	Queue int64 `parquet:"queue_ns"`
	Ready int64 `parquet:"ready_ns"`
	// Preprocess is what the loader's workers slept for reader.preprocess_time, summed over the batch's samples.
	Preprocess int64 `parquet:"preprocess_ns"`
	// Hash is how long the rank waited after the compute for what had not been hashed meanwhile (benchpin.verify: inline). It is part of
	// Proc.
	Hash int64 `parquet:"hash_ns"`
}

// waitColumns is the number of columns that files of earlier versions do not have.
const waitColumns = 4

// maxNanoseconds bounds every time in a row: 2^53 ns are 104 days, and sums of thousands of them still fit into 64 bits.
const maxNanoseconds = 1 << 53

// End is when the step ended for this rank: after its barrier.
func (s *Step) End() int64 { return s.Start + s.Proc + s.Barrier }

// check refuses rows that no run can have made. These rules are also what keeps AU at or below 100%: the parts of a step lie in the
// step, and steps lie one after the other in their block.
func (s *Step) check() error {
	for _, v := range [...]struct {
		name     string
		v        int64
		min, max int64
	}{
		{"epoch", int64(s.Epoch), 1, math.MaxInt32},
		{"step", s.Step, 1, math.MaxUint32},
		{"rank", int64(s.Rank), 0, math.MaxInt32},
		{"block", int64(s.Block), 1, math.MaxInt32},
		{"block_start_ns", s.BlockStart, 0, maxNanoseconds},
		{"block_end_ns", s.BlockEnd, 0, maxNanoseconds},
		{"start_ns", s.Start, 0, maxNanoseconds},
		{"load_ns", s.Load, 0, maxNanoseconds},
		{"compute_ns", s.Compute, 0, maxNanoseconds},
		{"prescribed_compute_ns", s.Prescribed, 0, maxNanoseconds},
		{"proc_ns", s.Proc, 0, maxNanoseconds},
		{"barrier_ns", s.Barrier, 0, maxNanoseconds},
		{"open_ns", s.Open, 0, maxNanoseconds},
		{"read_ns", s.Read, 0, maxNanoseconds},
		{"decode_ns", s.Decode, 0, maxNanoseconds},
		{"samples", s.Samples, 0, math.MaxUint32},
		{"bytes", s.Bytes, 0, maxNanoseconds},
		{"queue_ns", s.Queue, 0, maxNanoseconds},
		{"ready_ns", s.Ready, 0, maxNanoseconds},
		{"preprocess_ns", s.Preprocess, 0, maxNanoseconds},
		{"hash_ns", s.Hash, 0, maxNanoseconds},
	} {
		if v.v < v.min || v.v > v.max {
			return s.fault("%s is %d, expected %d to %d", v.name, v.v, v.min, v.max)
		}
	}
	switch {
	case s.Load+s.Compute+s.Hash > s.Proc:
		return s.fault("load_ns %d + compute_ns %d + hash_ns %d is more than proc_ns %d, which contains them", s.Load, s.Compute, s.Hash, s.Proc)
	case s.Queue > s.Load:
		return s.fault("queue_ns %d is more than load_ns %d, which contains it", s.Queue, s.Load)
	case s.Queue > 0 && s.Ready > 0:
		return s.fault("queue_ns %d and ready_ns %d: a batch that was ready before the wait had been begun before it", s.Queue, s.Ready)
	case s.Start < s.BlockStart:
		return s.fault("start_ns %d is before its block began at %d", s.Start, s.BlockStart)
	case s.BlockEnd < s.End():
		return s.fault("block_end_ns %d is before the step ended at %d", s.BlockEnd, s.End())
	}
	return nil
}

// fault is an error about one row, naming the row.
func (s *Step) fault(format string, args ...any) error {
	return fmt.Errorf("%w: epoch %d step %d rank %d: %s", ErrImpossible, s.Epoch, s.Step, s.Rank, fmt.Sprintf(format, args...))
}
