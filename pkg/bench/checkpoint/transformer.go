package checkpoint

import (
	"fmt"
	"strconv"
)

// Transformer is the shape of a transformer: the workload keys of section model.transformer.
type Transformer struct {
	// Vocabulary is model.transformer.vocab_size, Hidden .hidden_size, FFN .ffn_hidden_size, Heads .num_attention_heads and KVHeads
	// .num_kv_heads.
	Vocabulary, Hidden, FFN, Heads, KVHeads int64
}

// kv is the width of keys and of values.
func (t Transformer) kv() int64 { return t.Hidden / t.Heads * t.KVHeads }

// parameters counts the parameters of a transformer of so many layers, as DLIO does: embedding, layers, final norm and head. A layer
// has a norm, the projections to query, key and value, the output projection, another norm, and a gated feed-forward network.
func (t Transformer) parameters(layers int64) int64 {
	h, f, kv := t.Hidden, t.FFN, t.kv()
	return t.Vocabulary*h + layers*(h+h*(h+2*kv)+h*h+h+2*f*h+f*h) + h + t.Vocabulary*h
}

// tensors are the elements of the tensors of one layer on one rank: 0 is the embedding, 1 to layers are the transformer's, then come
// the head and the final norm. They are divided by tensor parallelism, then by the data-parallel ranks that share them, each time
// rounded down.
func (t Transformer) tensors(layer, layers, tensor, shards int) []int64 {
	h, f, kv, tp, s := t.Hidden, t.FFN, t.kv(), int64(tensor), int64(shards)
	switch layer {
	case 0, layers + 1:
		return []int64{h * t.Vocabulary / tp / s}
	case layers + 2:
		return []int64{h / s}
	}
	return []int64{h / s, h * (h + 2*kv) / tp / s, h * h / tp / s, h / s, 2 * h * f / tp / s, h * f / tp / s}
}

// optimizer are the elements of the tensors of the optimizer's state on one rank: three moments, as large as the rank's part of the
// parameters, each followed by one of five times the hidden size.
func (t Transformer) optimizer(part int64) []int64 {
	small := 5 * t.Hidden
	return []int64{part, small, part, small, part, small}
}

// maxSide bounds the sizes that are multiplied with each other, and maxLayers the layers, so that no product leaves 63 bits.
const (
	maxSide   = 1 << 24
	maxLayers = 1 << 16
)

func (t Transformer) check(layers int) error {
	for _, s := range []struct {
		key   string
		value int64
	}{{"vocab_size", t.Vocabulary}, {"hidden_size", t.Hidden}, {"ffn_hidden_size", t.FFN}, {"num_attention_heads", t.Heads}, {"num_kv_heads", t.KVHeads}} {
		if s.value < 1 || s.value > maxSide {
			return fmt.Errorf("model.transformer.%s is %d: expected 1 to %d", s.key, s.value, maxSide)
		}
	}
	if t.Heads > t.Hidden {
		return fmt.Errorf("model.transformer.num_attention_heads is %d for a hidden size of %d: a head would be 0 wide", t.Heads, t.Hidden)
	}
	// In floating point first: the integers could overflow.
	h, f, kv := float64(t.Hidden), float64(t.FFN), float64(t.kv())
	if p := float64(2*t.Vocabulary)*h + float64(layers)*(2*h*h+2*h*kv+3*f*h+2*h); p > 1<<56 || kv > maxSide {
		return fmt.Errorf("model.transformer: %g parameters in %d layers: at most 2^56 are possible", p, layers)
	}
	return nil
}

// layerState is the dictionary of one layer, {"0": tensor, ...}.
func (b *builder) layerState(t Type, sizes []int64) []entry {
	items := make([]entry, len(sizes))
	for i, elements := range sizes {
		items[i] = b.typed(strconv.Itoa(i), t, elements)
	}
	return items
}
