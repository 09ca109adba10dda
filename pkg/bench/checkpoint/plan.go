// Package checkpoint writes the model state of a simulated training run and reads it back: when it is due, which rank
// writes which files, and the bytes in them. The files are PyTorch's own archives, named as DLIO names them, and
// torch.load opens them. Each byte is a pure function of seed, checkpoint number, rank and tensor, so that anyone can
// compute the digest of every file without the storage that was measured, and so that no two checkpoints hold the same
// blocks.
//
// The package never chooses when to run, never keeps a model in memory (a save needs a few buffers, whatever the size
// of the state), never decides whether data is durable (the store does, on Commit), and executes nothing that it reads.
package checkpoint

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/benchpin/benchpin/pkg/stream"
)

const (
	// Domain is the domain of the stream that all states come from.
	Domain = "benchpin/checkpoint"
	// Version is the version of the content and of its addressing (docs/checkpoint.md).
	Version = 1

	// Bounds of the three numbers that together address a tensor's stream, in 64 bits.
	numberBits, rankBits, tensorBits = 22, 21, 21

	// MaxNumber is the highest checkpoint number, MaxRanks the highest number of ranks.
	MaxNumber = 1<<numberBits - 1
	MaxRanks  = 1 << rankBits
)

// Config is the part of a workload that decides what a checkpoint holds. Fields are the workload keys named beside
// them.
type Config struct {
	// Seed is the seed of the content (benchpin.seed).
	Seed uint64
	// Ranks is the number of accelerators.
	Ranks int
	// Framework is "pytorch"; DLIO's TensorFlow files are another form.
	Framework string
	// ModelType is model.type. "transformer" turns the model_states tensor off.
	ModelType string
	// ModelSizeBytes is model.model_size_bytes: the size of the int8 tensor "model_states". 0 leaves it out.
	ModelSizeBytes int64
	// NumLayers is model.num_layers, LayerParameters is model.layer_parameters: with both, layers 1 to NumLayers hold
	// int8 tensors of so many elements each.
	NumLayers       int
	LayerParameters []int64
	// OptimizationGroups is model.optimization_groups: for each group two int8 tensors "a" and "b" of that length, and
	// one tensor "combined" as long as all groups together.
	OptimizationGroups []int64
	// Tensor, Pipeline and ZeroStage are model.parallelism.tensor, .pipeline and .zero_stage.
	Tensor, Pipeline, ZeroStage int
	// Subset is true for checkpoint.mode subset.
	Subset bool
}

// Type is the element type of a tensor.
type Type struct {
	// Name is DLIO's name of the type.
	Name string
	// Size is in bytes.
	Size    int64
	storage string // PyTorch's storage class
}

// Int8 is the type of every tensor of fixed size.
func Int8() Type { return Type{Name: "int8", Size: 1, storage: "CharStorage"} }

// Tensor is one tensor in a file.
type Tensor struct {
	// Name is the path of its keys in the file's dictionary, joined by "/".
	Name string
	Type Type
	// Elements is at least 1.
	Elements int64
	// Index counts the tensors of a rank, over its files in order, from 0. It addresses the content.
	Index int
}

// Bytes is the size of the content.
func (t Tensor) Bytes() int64 { return t.Elements * t.Type.Size }

// File is one file of a checkpoint.
type File struct {
	// Name is the name in the checkpoint's folder.
	Name string
	// Size is that of the whole file, Payload that of its tensors, in bytes.
	Size, Payload int64
	Tensors       []Tensor
	arc           *archive
}

// Plan is what every checkpoint of a run consists of. It is immutable and safe for concurrent use.
type Plan struct {
	cfg    Config
	files  []File // of the one rank that writes
	family *stream.Seeded
}

// NewPlan lays out the checkpoints of a run without writing anything. States that this version cannot write are refused
// with the name of the workload key.
func NewPlan(cfg Config) (*Plan, error) {
	if err := check(cfg); err != nil {
		return nil, fmt.Errorf("checkpoint plan: %w", err)
	}
	p := &Plan{cfg: cfg, family: stream.New(Domain, Version, cfg.Seed)}
	if cfg.ModelSizeBytes > 0 {
		b := &builder{}
		p.add("model_states-0.pt", []entry{b.tensor("model_states", cfg.ModelSizeBytes)}, b)
	}
	// Without parallelism, tensor and pipeline rank are 0, and so is the data-parallel rank of the one writer.
	if len(cfg.LayerParameters) > 0 && cfg.NumLayers > 0 {
		b := &builder{}
		p.add("zero_pp_rank_0_mp_rank_0_model_states.pt", b.layers(cfg.NumLayers, cfg.LayerParameters), b)
	}
	if len(cfg.OptimizationGroups) > 0 {
		b := &builder{}
		p.add("zero_pp_rank_0_mp_rank_0_optim_states.pt", b.groups(cfg.OptimizationGroups), b)
	}
	if len(p.files) == 0 {
		return nil, fmt.Errorf("checkpoint plan: a checkpoint would hold nothing: model.model_size_bytes is 0 and there are no " +
			"model.layer_parameters or model.optimization_groups; give one of them or set workflow.checkpoint to false")
	}
	return p, nil
}

// check refuses what cannot be planned.
func check(cfg Config) error {
	switch {
	case cfg.Ranks < 1 || cfg.Ranks > MaxRanks:
		return fmt.Errorf("%d ranks: from 1 to %d are possible", cfg.Ranks, MaxRanks)
	case cfg.Framework != "pytorch":
		return fmt.Errorf("framework %q: checkpoints are written in PyTorch's form only; set framework to pytorch or "+
			"workflow.checkpoint to false", cfg.Framework)
	case cfg.ModelType == "transformer":
		return fmt.Errorf("model.type transformer: checkpoints of transformers are not written by this version; only states of fixed " +
			"size are (model.model_size_bytes, model.layer_parameters, model.optimization_groups)")
	case cfg.NumLayers > 0 && len(cfg.LayerParameters) == 0:
		return fmt.Errorf("model.num_layers %d without model.layer_parameters: the layers would be a transformer's, which this "+
			"version does not write", cfg.NumLayers)
	case cfg.Tensor > 1:
		return fmt.Errorf("model.parallelism.tensor %d: this version writes checkpoints without parallelism only (1)", cfg.Tensor)
	case cfg.Pipeline > 1:
		return fmt.Errorf("model.parallelism.pipeline %d: this version writes checkpoints without parallelism only (1)", cfg.Pipeline)
	case cfg.ZeroStage != 0:
		return fmt.Errorf("model.parallelism.zero_stage %d: this version writes checkpoints without sharding only (0)", cfg.ZeroStage)
	case cfg.Subset:
		return fmt.Errorf("checkpoint.mode subset: this version writes whole checkpoints only (default)")
	case cfg.ModelSizeBytes < 0:
		return fmt.Errorf("model.model_size_bytes %d: expected 0 or more", cfg.ModelSizeBytes)
	}
	total, tensors := cfg.ModelSizeBytes, int64(1)
	add := func(key string, sizes []int64, times int64) error {
		for i, n := range sizes {
			if n < 1 {
				return fmt.Errorf("%s[%d] is %d: expected 1 or more elements", key, i, n)
			}
			hi, lo := bits.Mul64(uint64(n), uint64(times))
			if total += int64(lo); hi != 0 || lo > math.MaxInt64/4 || total > math.MaxInt64/4 {
				return fmt.Errorf("%s[%d] is %d: the state would exceed 2^61 bytes", key, i, n)
			}
		}
		tensors += int64(len(sizes)) * times
		return nil
	}
	// Layers repeat; every group has a and b, and its share of the combined tensor.
	if err := add("model.layer_parameters", cfg.LayerParameters, int64(max(cfg.NumLayers, 0))); err != nil {
		return err
	}
	if err := add("model.optimization_groups", cfg.OptimizationGroups, 3); err != nil {
		return err
	}
	if total > math.MaxInt64/4 {
		return fmt.Errorf("model.model_size_bytes %d: the state would exceed 2^61 bytes", cfg.ModelSizeBytes)
	}
	if tensors >= maxTensors {
		return fmt.Errorf("%d tensors: at most %d are possible; check model.num_layers and model.layer_parameters", tensors, maxTensors)
	}
	return nil
}

// maxTensors keeps the layout of a file small beside its buffers, and within the 16-bit count of a zip directory.
const maxTensors = 1 << 15

// add appends a file, and numbers its tensors after those of the files before.
func (p *Plan) add(name string, state []entry, b *builder) {
	base := 0
	for _, f := range p.files {
		base += len(f.Tensors)
	}
	f := File{Name: name, Tensors: b.tensors}
	for i := range f.Tensors {
		f.Tensors[i].Index = base + i
		f.Payload += f.Tensors[i].Bytes()
	}
	f.arc = newArchive(state, f.Tensors)
	f.Size = f.arc.size
	p.files = append(p.files, f)
}

// Writes reports whether a rank writes anything. Without parallelism all ranks hold the same state, and rank 0 alone
// saves it.
func (p *Plan) Writes(rank int) bool { return rank == 0 }

// Files are the files that a rank writes, in order; none for a rank that writes nothing. The caller may not change
// them.
func (p *Plan) Files(rank int) []File {
	if !p.Writes(rank) {
		return nil
	}
	return p.files
}

// BytesPerCheckpoint is the size of all files of one checkpoint, over all ranks.
func (p *Plan) BytesPerCheckpoint() int64 {
	var n int64
	for _, f := range p.files {
		n += f.Size
	}
	return n
}

// PayloadPerCheckpoint is the size of all tensors of one checkpoint, over all ranks: what DLIO divides by the duration.
func (p *Plan) PayloadPerCheckpoint() int64 {
	var n int64
	for _, f := range p.files {
		n += f.Payload
	}
	return n
}

// MemoryBytes is the buffer memory of one save.
func (p *Plan) MemoryBytes() int64 {
	var largest int64
	for _, f := range p.files {
		largest = max(largest, f.Size)
	}
	return min(pieces, (largest+pieceSize-1)/pieceSize) * pieceSize
}

// content gives the bytes of the tensors of one file of one checkpoint.
func (p *Plan) content(number, rank int, f *File) filler {
	base := uint64(number)<<(rankBits+tensorBits) | uint64(rank)<<tensorBits
	return func(dst []byte, tensor int, off int64) {
		p.family.Fill(dst, base|uint64(f.Tensors[tensor].Index), uint64(off))
	}
}

// checkPoint refuses what the addressing cannot hold.
func (p *Plan) checkPoint(pt Point, rank int) error {
	switch {
	case pt.Number < 1 || pt.Number > MaxNumber:
		return fmt.Errorf("checkpoint number %d: from 1 to %d are possible", pt.Number, MaxNumber)
	case rank < 0 || rank >= p.cfg.Ranks:
		return fmt.Errorf("checkpoint %s: rank %d of %d ranks", pt.Name(), rank, p.cfg.Ranks)
	}
	return nil
}
