package checkpoint

import (
	"fmt"
	"strconv"
)

// parallelism says where ranks stand: neighbours are tensor-parallel, groups of them follow each other through the pipeline, and data
// parallelism repeats the whole.
type parallelism struct{ tensor, pipeline, data, zero int }

// String names the workload keys.
func (p parallelism) String() string {
	return fmt.Sprintf("model.parallelism.tensor %d x pipeline %d x data %d, zero_stage %d", p.tensor, p.pipeline, p.data, p.zero)
}

// place is where one rank stands: its pipeline stage, its number among the ranks that hold one copy of the model, and the number of
// its copy.
type place struct{ stage, model, replica int }

// width is the number of ranks that hold one copy of the model.
func (p parallelism) width() int { return p.tensor * p.pipeline }

func (p parallelism) of(rank int) place {
	return place{stage: rank / p.tensor % p.pipeline, model: rank % p.width(), replica: rank / p.width()}
}

// shards is the number of ranks among which the model's own tensors are divided beyond tensor and pipeline parallelism.
func (p parallelism) shards() int {
	if p.zero == 3 {
		return p.data
	}
	return 1
}

// savesModel and savesOptimizer say which ranks write. Without ZeRO every copy of the model is whole and the first is saved; stages 1
// and 2 divide the optimizer among the copies, stage 3 everything.
func (p parallelism) savesModel(replica int) bool     { return p.zero == 3 || replica == 0 }
func (p parallelism) savesOptimizer(replica int) bool { return p.zero > 0 || replica == 0 }

// optimizerPart is a rank's part of so many parameters.
func (p parallelism) optimizerPart(parameters int64) int64 {
	if p.zero > 0 {
		return parameters / int64(p.data*p.width())
	}
	return parameters / int64(p.width())
}

// layers are the first and the last of a stage's layers. The first stages take one more where they do not divide evenly; the first
// has the embedding (0) too, the last the head and the final norm (layers+1, layers+2).
func (p parallelism) layers(stage, layers int) (first, last int) {
	share, more := layers/p.pipeline, layers%p.pipeline
	first = 1 + stage*share + min(stage, more)
	last = first + share - 1
	if stage < more {
		last++
	}
	if stage == 0 {
		first = 0
	}
	if stage == p.pipeline-1 {
		last = layers + 2
	}
	return first, last
}

// parallelismOf takes the parallelism from a configuration, or says why there is none. A value of 0 is the default.
func parallelismOf(cfg Config) (parallelism, error) {
	p := parallelism{tensor: max(cfg.Tensor, 1), pipeline: max(cfg.Pipeline, 1), data: cfg.Data, zero: cfg.ZeroStage}
	switch {
	case p.tensor > MaxRanks:
		return p, fmt.Errorf("model.parallelism.tensor %d: at most %d are possible", p.tensor, MaxRanks)
	case p.pipeline > MaxRanks:
		return p, fmt.Errorf("model.parallelism.pipeline %d: at most %d are possible", p.pipeline, MaxRanks)
	case p.data > MaxRanks:
		return p, fmt.Errorf("model.parallelism.data %d: at most %d are possible", p.data, MaxRanks)
	case p.zero < 0 || p.zero > 3:
		return p, fmt.Errorf("model.parallelism.zero_stage %d: expected 0, 1, 2 or 3", p.zero)
	case p.zero == 3 && p.pipeline > 1:
		return p, fmt.Errorf("model.parallelism.pipeline %d with zero_stage 3: ZeRO 3 divides every layer among all ranks and has no pipeline; "+
			"set one of the two to 1", p.pipeline)
	case cfg.NumLayers > 0 && cfg.NumLayers < p.pipeline:
		return p, fmt.Errorf("model.parallelism.pipeline %d for model.num_layers %d: every stage needs a layer", p.pipeline, cfg.NumLayers)
	}
	width := p.width()
	if cfg.Subset {
		switch {
		case p.data < 1:
			return p, fmt.Errorf("checkpoint.mode subset without model.parallelism.data: these %d ranks are some of a larger run, and how large it is "+
				"must be said; give its ranks / (tensor x pipeline)", cfg.Ranks)
		case p.data*width < cfg.Ranks:
			return p, fmt.Errorf("checkpoint.mode subset: %d ranks of a run of data %d x pipeline %d x tensor %d = %d ranks", cfg.Ranks, p.data,
				p.pipeline, p.tensor, p.data*width)
		}
		return p, nil
	}
	if cfg.Ranks%width != 0 {
		return p, fmt.Errorf("%d ranks with model.parallelism.tensor %d and model.parallelism.pipeline %d: expected a multiple of %d ranks "+
			"(benchpin.accelerators), or checkpoint.mode subset with model.parallelism.data", cfg.Ranks, p.tensor, p.pipeline, width)
	}
	if derived := cfg.Ranks / width; p.data < 1 {
		p.data = derived
	} else if p.data != derived {
		return p, fmt.Errorf("model.parallelism.data %d: %d ranks of tensor %d x pipeline %d make it %d; remove it, or set checkpoint.mode to "+
			"subset", p.data, cfg.Ranks, p.tensor, p.pipeline, derived)
	}
	return p, nil
}

// kind is what a file holds, for its name.
type kind int

const (
	fixedState kind = iota // the tensor of model_size_bytes
	wholeModel             // all layers of a rank
	oneLayer
	optimizerState
)

// name is DLIO's name of a file, without what follows from its form.
func (p parallelism) name(k kind, layer, rank int) string {
	at := p.of(rank)
	zero := "zero_pp_rank_" + strconv.Itoa(at.replica) + "_mp_rank_" + strconv.Itoa(at.model)
	switch {
	case k == fixedState:
		return "model_states-" + strconv.Itoa(rank)
	case k == oneLayer:
		return "layer_" + strconv.Itoa(layer) + "-model_" + strconv.Itoa(at.model) + "_model_states"
	case k == optimizerState:
		return zero + "_optim_states"
	case p.zero == 1 || p.zero == 2:
		return "model_" + strconv.Itoa(at.model) + "_model_states"
	default:
		return zero + "_model_states"
	}
}

// layerFiles says whether every layer has a file of its own.
func (p parallelism) layerFiles() bool { return p.pipeline > 1 && (p.zero == 1 || p.zero == 2) }
