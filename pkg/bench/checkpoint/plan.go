// Package checkpoint writes the model state of a simulated training run and reads it back: when it is due, which rank
// writes which files, and the bytes in them. The files are PyTorch's own archives, or TensorFlow's bundles, named as
// DLIO names them. Each byte is a pure function of seed, checkpoint number, rank and tensor, so that anyone can
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
	// Framework is "pytorch" or "tensorflow".
	Framework string
	// Bundles is true for files in TensorFlow's form, false for PyTorch's.
	Bundles bool
	// ModelType is model.type. "transformer" turns the model_states tensor off.
	ModelType string
	// ModelSizeBytes is model.model_size_bytes: the size of the int8 tensor "model_states". 0 leaves it out.
	ModelSizeBytes int64
	// NumLayers is model.num_layers. Above 0 there are layers: of the int8 tensors of so many elements each that
	// LayerParameters (model.layer_parameters) lists, or else those of the Transformer (model.transformer).
	NumLayers       int
	LayerParameters []int64
	Transformer     Transformer
	// OptimizationGroups is model.optimization_groups: for each group two int8 tensors "a" and "b" of that length, and
	// one tensor "combined" as long as all groups together. Without them the optimizer is the transformer's, where the
	// layers are.
	OptimizationGroups []int64
	// ModelDatatype and OptimizerDatatype are the element types of a transformer's tensors (ParseType).
	ModelDatatype, OptimizerDatatype string
	// Tensor, Pipeline, Data and ZeroStage are model.parallelism.tensor, .pipeline, .data and .zero_stage. 0 is the
	// default of each; Data may be -1, too.
	Tensor, Pipeline, Data, ZeroStage int
	// Subset is true for checkpoint.mode subset: the ranks are the first ones of a larger run.
	Subset bool
}

// transformer says whether the layers are a transformer's.
func (c *Config) transformer() bool { return c.NumLayers > 0 && len(c.LayerParameters) == 0 }

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
	par    parallelism
	shares []share // two for each pipeline stage: of the first copy of the model, and of all others
	family *stream.Seeded
	// bytes and payload are over all ranks, dlio is the payload as DLIO counts it.
	bytes, payload, dlio int64
}

// NewPlan lays out the checkpoints of a run without writing anything. States that cannot be are refused with the name
// of the workload key and the numbers.
func NewPlan(cfg Config) (*Plan, error) {
	p, err := newPlan(cfg)
	if err != nil {
		return nil, fmt.Errorf("checkpoint plan: %w", err)
	}
	return p, nil
}

func newPlan(cfg Config) (*Plan, error) {
	if err := check(cfg); err != nil {
		return nil, err
	}
	par, err := parallelismOf(cfg)
	if err != nil {
		return nil, err
	}
	p := &Plan{cfg: cfg, par: par, family: stream.New(Domain, Version, cfg.Seed)}
	if err := p.share(); err != nil {
		return nil, err
	}
	return p, p.total()
}

// check refuses sizes that cannot be.
func check(cfg Config) error {
	switch {
	case cfg.Ranks < 1 || cfg.Ranks > MaxRanks:
		return fmt.Errorf("%d ranks: from 1 to %d are possible", cfg.Ranks, MaxRanks)
	case cfg.Framework != "pytorch" && cfg.Framework != "tensorflow":
		return fmt.Errorf("framework %q: expected pytorch or tensorflow, or workflow.checkpoint false", cfg.Framework)
	case cfg.ModelSizeBytes < 0 || cfg.ModelSizeBytes > maxState:
		return fmt.Errorf("model.model_size_bytes %d: expected 0 to 2^61", cfg.ModelSizeBytes)
	case cfg.NumLayers > maxLayers && len(cfg.LayerParameters) == 0:
		return fmt.Errorf("model.num_layers %d: at most %d are possible", cfg.NumLayers, maxLayers)
	}
	if cfg.transformer() {
		if err := cfg.Transformer.check(cfg.NumLayers); err != nil {
			return err
		}
	}
	total, tensors := cfg.ModelSizeBytes, int64(1)
	add := func(key string, sizes []int64, times int64) error {
		for i, n := range sizes {
			if n < 1 {
				return fmt.Errorf("%s[%d] is %d: expected 1 or more elements", key, i, n)
			}
			hi, lo := bits.Mul64(uint64(n), uint64(times))
			if total += int64(lo); hi != 0 || lo > maxState || total > maxState {
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
	if tensors > maxLayers*8 {
		return fmt.Errorf("%d tensors: at most %d are possible; check model.num_layers and model.layer_parameters", tensors, maxLayers*8)
	}
	return nil
}

const (
	// maxTensors keeps the layout of a file small beside its buffers, and within the 16-bit count of a zip directory.
	maxTensors = 1 << 15
	// maxState bounds the state of a rank, and of all ranks.
	maxState = math.MaxInt64 / 4
)

// Writes reports whether a rank writes anything. Ranks that hold a copy of what others save do not.
func (p *Plan) Writes(rank int) bool { return len(p.shareOf(rank).files) > 0 }

// Files are the files that a rank writes, in order; none for a rank that writes nothing. The caller may not change
// their tensors.
func (p *Plan) Files(rank int) []File {
	s := p.shareOf(rank)
	if len(s.files) == 0 {
		return nil
	}
	files := make([]File, len(s.files))
	for i := range s.files {
		f := &s.files[i]
		files[i] = File{Name: p.par.name(f.kind, f.layer, rank) + f.suffix, Size: f.arc.size, Payload: f.payload, Tensors: f.tensors, arc: f.arc}
	}
	return files
}

// RankBytes is the size of the files that a rank writes, and RankPayload that of their tensors.
func (p *Plan) RankBytes(rank int) int64 { return p.shareOf(rank).size }

// RankPayload is the size of the tensors that a rank writes.
func (p *Plan) RankPayload(rank int) int64 { return p.shareOf(rank).payload }

// BytesPerCheckpoint is the size of all files of one checkpoint, over all ranks.
func (p *Plan) BytesPerCheckpoint() int64 { return p.bytes }

// PayloadPerCheckpoint is the size of all tensors of one checkpoint, over all ranks.
func (p *Plan) PayloadPerCheckpoint() int64 { return p.payload }

// DLIOBytes is what DLIO takes for the size of one checkpoint (its checkpoint_size_GB, and what it divides by the duration). It
// leaves out tensors of model.layer_parameters and model.optimization_groups, counts a model_states tensor once however many ranks
// write it, and under ZeRO 2 counts the copies of the model that are not written.
func (p *Plan) DLIOBytes() int64 { return p.dlio }

// LoadMemoryBytes is the buffer memory of one load.
func (p *Plan) LoadMemoryBytes() int64 { return p.MemoryBytes() + pieceSize }

// MemoryBytes is the buffer memory of one save.
func (p *Plan) MemoryBytes() int64 {
	var largest int64
	for _, s := range p.shares {
		for i := range s.files {
			largest = max(largest, s.files[i].arc.size)
		}
	}
	return min(pieces, (largest+pieceSize-1)/pieceSize) * pieceSize
}

// content gives the bytes of the tensors of one file of one checkpoint.
func (p *Plan) content(number, rank int, f *File) filler {
	base := uint64(number)<<(rankBits+tensorBits) | uint64(rank)<<tensorBits
	return func(dst []byte, tensor int, off int64) {
		t := &f.Tensors[tensor]
		index := base | uint64(t.Index)
		t.Type.fill(dst, off, func(dst []byte, off int64) { p.family.Fill(dst, index, uint64(off)) })
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
