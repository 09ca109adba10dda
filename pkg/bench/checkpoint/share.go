package checkpoint

import (
	"errors"
	"fmt"
	"strconv"
)

// share is what a rank writes. Ranks at the same stage of the pipeline write files that differ in name and content only.
type share struct {
	files         []shareFile
	size, payload int64
}

type shareFile struct {
	kind    kind
	layer   int
	suffix  string // of the name
	tensors []Tensor
	payload int64
	arc     *archive
}

func (p *Plan) shareOf(rank int) *share {
	at := p.par.of(rank)
	if at.replica > 0 {
		return &p.shares[2*at.stage+1]
	}
	return &p.shares[2*at.stage]
}

// share lays out what every stage writes.
func (p *Plan) share() error {
	p.shares = make([]share, 2*p.par.pipeline)
	for i := range p.shares {
		if i > 0 && p.par.pipeline == 1 && p.par.zero == 3 {
			p.shares[i] = p.shares[i-1] // all ranks write the same
			continue
		}
		if i%2 == 1 && p.cfg.Ranks <= p.par.width() {
			continue // nobody is there
		}
		if err := p.layOut(&p.shares[i], i/2, i%2); err != nil {
			return err
		}
	}
	if p.shares[0].files == nil {
		return errors.New("a checkpoint would hold nothing: model.model_size_bytes is 0, or model.type is transformer, and there are no " +
			"layers (model.num_layers) or model.optimization_groups; give one of them or set workflow.checkpoint to false")
	}
	return nil
}

// layOut lays out the share of a stage. Its order, and with it the numbers of the tensors, is part of the content's version: the
// tensor of fixed size, the layers, the optimizer.
func (p *Plan) layOut(s *share, stage, replica int) error {
	cfg := &p.cfg
	model, optimizer := p.par.savesModel(replica), p.par.savesOptimizer(replica)
	if cfg.ModelSizeBytes > 0 && cfg.ModelType != "transformer" && (model || optimizer) {
		b, key := &builder{}, "model_states"
		if cfg.Bundles {
			key = "a" // as DLIO has it
		}
		if err := s.add(shareFile{kind: fixedState}, []entry{b.tensor(key, cfg.ModelSizeBytes)}, b, p); err != nil {
			return err
		}
	}
	if model && cfg.NumLayers > 0 {
		if err := p.layOutLayers(s, stage); err != nil {
			return err
		}
	}
	if !optimizer {
		return nil
	}
	b := &builder{}
	switch {
	case len(cfg.OptimizationGroups) > 0:
		return s.add(shareFile{kind: optimizerState}, b.groups(cfg.OptimizationGroups), b, p)
	case cfg.transformer():
		t, err := ParseType(cfg.OptimizerDatatype)
		if err != nil {
			return fmt.Errorf("model.optimizer_datatype: %w", err)
		}
		part := p.par.optimizerPart(cfg.Transformer.parameters(int64(cfg.NumLayers)))
		return s.add(shareFile{kind: optimizerState}, b.layerState(t, cfg.Transformer.optimizer(part)), b, p)
	}
	return nil
}

// layOutLayers adds the layers of a stage: one file of all, or one for each.
func (p *Plan) layOutLayers(s *share, stage int) error {
	cfg, t := &p.cfg, Int8()
	first, last := p.par.layers(stage, cfg.NumLayers)
	if cfg.transformer() {
		var err error
		if t, err = ParseType(cfg.ModelDatatype); err != nil {
			return fmt.Errorf("model.model_datatype: %w", err)
		}
	} else {
		first, last = max(first, 1), min(last, cfg.NumLayers) // embedding, head and final norm are a transformer's
	}
	sizes := func(layer int) []int64 {
		if cfg.transformer() {
			return cfg.Transformer.tensors(layer, cfg.NumLayers, p.par.tensor, p.par.shards())
		}
		out := make([]int64, len(cfg.LayerParameters))
		for i, n := range cfg.LayerParameters {
			out[i] = n / int64(p.par.tensor)
		}
		return out
	}
	if p.par.layerFiles() {
		for layer := first; layer <= last; layer++ {
			b := &builder{}
			if err := s.add(shareFile{kind: oneLayer, layer: layer}, b.layerState(t, sizes(layer)), b, p); err != nil {
				return fmt.Errorf("layer %d: %w", layer, err)
			}
		}
		return nil
	}
	b := &builder{}
	state := make([]entry, 0, last-first+1)
	for layer := first; layer <= last; layer++ {
		state = append(state, b.nested(strconv.Itoa(layer), func() []entry { return b.layerState(t, sizes(layer)) }))
		if len(b.tensors) >= maxTensors {
			return tooMany(len(b.tensors))
		}
	}
	return s.add(shareFile{kind: wholeModel}, state, b, p)
}

func tooMany(n int) error {
	return fmt.Errorf("%d tensors in one file: fewer than %d are possible; check model.num_layers and model.layer_parameters", n, maxTensors)
}

// add appends a file, or the two of a bundle, and numbers its tensors after those of the files before.
func (s *share) add(f shareFile, state []entry, b *builder, p *Plan) error {
	if len(b.tensors) >= maxTensors {
		return tooMany(len(b.tensors))
	}
	base := 0
	for i := range s.files {
		base += len(s.files[i].tensors)
	}
	f.tensors = b.tensors
	for i := range f.tensors {
		t := &f.tensors[i]
		if t.Index = base + i; t.Index >= 1<<tensorBits {
			return tooMany(t.Index)
		}
		if t.Elements < 1 {
			return fmt.Errorf("tensor %s would be empty on a rank: the model is too small for %s", t.Name, p.par)
		}
		if f.payload += t.Bytes(); t.Elements > maxState/t.Type.Size || f.payload > maxState {
			return fmt.Errorf("tensor %s of %d elements: the state would exceed 2^61 bytes", t.Name, t.Elements)
		}
	}
	s.payload += f.payload
	if p.cfg.Bundles {
		index := shareFile{kind: f.kind, layer: f.layer, suffix: ".pb" + bundleIndex}
		f.arc, index.arc = newBundle(state, f.tensors)
		f.suffix = ".pb" + bundleData
		s.files = append(s.files, f, index)
		s.size += f.arc.size + index.arc.size
	} else {
		f.arc, f.suffix = newArchive(state, f.tensors), ".pt"
		s.files = append(s.files, f)
		s.size += f.arc.size
	}
	if s.size > maxState {
		return errors.New("the state of a rank would exceed 2^61 bytes")
	}
	return nil
}

// total adds up what all ranks write.
func (p *Plan) total() error {
	computed := p.cfg.transformer()
	for rank := range p.cfg.Ranks {
		s := p.shareOf(rank)
		if p.bytes, p.payload = p.bytes+s.size, p.payload+s.payload; p.bytes > maxState {
			return fmt.Errorf("a checkpoint of %d ranks would exceed 2^61 bytes", p.cfg.Ranks)
		}
		at := p.par.of(rank)
		counted := s
		if p.par.zero == 2 {
			counted = &p.shares[2*at.stage]
		}
		for i := range counted.files {
			f := &counted.files[i]
			switch {
			case f.kind == optimizerState && computed && len(p.cfg.OptimizationGroups) == 0,
				f.kind != optimizerState && f.kind != fixedState && computed && p.cfg.ModelType == "transformer":
				p.dlio += f.payload
			}
		}
	}
	if p.cfg.ModelType != "transformer" {
		p.dlio += p.cfg.ModelSizeBytes
	}
	return nil
}
