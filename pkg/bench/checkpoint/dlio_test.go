package checkpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// small is a transformer that can be written in a moment.
func small(ranks int) Config {
	return Config{Seed: 7, Ranks: ranks, Framework: "pytorch", ModelType: "transformer", ModelSizeBytes: 10240, NumLayers: 5,
		Transformer:   Transformer{Vocabulary: 160, Hidden: 64, FFN: 224, Heads: 8, KVHeads: 2},
		ModelDatatype: "bf16", OptimizerDatatype: "fp32"}
}

// llama is a model of MLPerf Storage's checkpoint workloads.
func llama(ranks, layers, tensor, pipeline, zero int, t Transformer) Config {
	return Config{Seed: 1, Ranks: ranks, Framework: "pytorch", ModelType: "transformer", ModelSizeBytes: 10240, NumLayers: layers, Transformer: t,
		ModelDatatype: "fp16", OptimizerDatatype: "fp32", Tensor: tensor, Pipeline: pipeline, Data: -1, ZeroStage: zero}
}

func llama8B(ranks int) Config {
	return llama(ranks, 32, 1, 1, 3, Transformer{128256, 4096, 14336, 32, 8})
}

func llama70B(ranks int) Config {
	return llama(ranks, 80, 8, 1, 3, Transformer{128256, 8192, 28672, 128, 8})
}

func llama405B(ranks int) Config {
	return llama(ranks, 126, 8, 32, 1, Transformer{128256, 16384, 53248, 128, 8})
}

func llama1T(ranks int) Config {
	return llama(ranks, 128, 8, 64, 1, Transformer{128256, 25872, 98304, 192, 32})
}

// subset makes the first ranks of a run of so many copies of the model.
func subset(c Config, copies int) Config {
	c.Subset, c.Data = true, copies
	return c
}

// run is some neighbouring ranks that write as many bytes.
type run struct {
	first, last int
	bytes       int64
}

// TestPayloadOfEveryRank compares the planned bytes of every rank with those of DLIO's own models. Nothing is written.
func TestPayloadOfEveryRank(t *testing.T) {
	zero1 := func(c Config, pipeline int) Config { c.Pipeline, c.ZeroStage = pipeline, 1; return c }
	for _, m := range []struct {
		name       string
		c          Config
		parameters int64 // 0: not known from elsewhere
		total      int64
		gib        float64 // to the digits known
		ranks      []run
	}{
		{"llama 8B, 1 x 1 x 8, ZeRO 3", llama8B(8), 8030261248, 16060522496 + 96365101056, 104.7045, []run{{0, 7, 14053202944}}},
		{"llama 70B, 8 x 1 x 8, ZeRO 3", llama70B(64), 69882617856, 978406572032, 911.2121, []run{{0, 63, 15287602688}}},
		{"llama 405B, 8 x 32 x 2, ZeRO 1", llama405B(512), 405853388800, 811764809728 + 4870743982080, 5292.2487, []run{
			{0, 7, 13226441600}, {8, 239, 12701105024}, {240, 247, 11904121728}, {248, 255, 12429491072}, {256, 511, 9513171840}}},
		{"llama 1T, 8 x 64 x 2, ZeRO 1", llama1T(1024), 1183035102480, 16564174094592, 15426.59, []run{
			{0, 7, 19290292860}, {8, 503, 18460733052}, {504, 511, 19290344604}, {512, 1023, 13865244924}}},
		{"llama 7B, 1 x 1 x 8, ZeRO 1", llama(8, 32, 1, 1, 1, Transformer{32000, 4096, 11008, 32, 32}), 0, 0, 87.8608, nil},
		{"llama 70B, 8 x 4 x 2, ZeRO 1", zero1(llama70B(64), 4), 69882617856, 0, 0, []run{
			{0, 7, 17603053056}, {8, 23, 17340384768}, {24, 31, 17603069440}, {32, 63, 13103482368}}},
		{"8 ranks of llama 8B", subset(llama8B(8), 8), 0, 0, 104.7045, []run{{0, 7, 14053202944}}},
		{"8 ranks of llama 70B", subset(llama70B(8), 8), 0, 122300821504, 113.90, []run{{0, 7, 15287602688}}},
		{"8 ranks of llama 405B", subset(llama405B(8), 2), 0, 105811532800, 98.54, []run{{0, 7, 13226441600}}},
		{"8 ranks of llama 1T", subset(llama1T(8), 2), 0, 154322342880, 143.72, []run{{0, 7, 19290292860}}},
	} {
		p := plan(t, m.c)
		if got := m.c.Transformer.parameters(int64(m.c.NumLayers)); m.parameters != 0 && got != m.parameters {
			t.Errorf("%s: %d parameters, expected %d", m.name, got, m.parameters)
		}
		if m.total != 0 && p.PayloadPerCheckpoint() != m.total {
			t.Errorf("%s: %d bytes, expected %d", m.name, p.PayloadPerCheckpoint(), m.total)
		}
		if m.gib != 0 {
			digits := len(strings.SplitN(fmt.Sprint(m.gib), ".", 2)[1])
			if m.name == "8 ranks of llama 70B" {
				digits = 2 // 113.90
			}
			if got := fmt.Sprintf("%.*f", digits, float64(p.PayloadPerCheckpoint())/(1<<30)); got != fmt.Sprintf("%.*f", digits, m.gib) {
				t.Errorf("%s: %s GiB, expected %v", m.name, got, m.gib)
			}
		}
		if p.DLIOBytes() != p.PayloadPerCheckpoint() {
			t.Errorf("%s: DLIO's size %d, expected the payload, %d", m.name, p.DLIOBytes(), p.PayloadPerCheckpoint())
		}
		next := 0
		for _, r := range m.ranks {
			for rank := r.first; rank <= r.last; rank++ {
				var sum int64
				for _, f := range p.Files(rank) {
					sum += f.Payload
				}
				if got := p.RankPayload(rank); got != r.bytes || sum != got {
					t.Errorf("%s: rank %d: %d bytes, %d in its files, expected %d", m.name, rank, got, sum, r.bytes)
				}
				if p.RankBytes(rank) <= r.bytes || p.RankBytes(rank) > r.bytes+1<<20 {
					t.Errorf("%s: rank %d: files of %d bytes for %d", m.name, rank, p.RankBytes(rank), r.bytes)
				}
			}
			next = r.last + 1
		}
		if m.ranks != nil && next != m.c.Ranks {
			t.Fatalf("%s: the table ends at rank %d of %d", m.name, next, m.c.Ranks)
		}
	}
}

// TestMegatron is DLIO's megatron_deepspeed_LLNL: predefined layers and optimizer groups on 32 ranks.
func TestMegatron(t *testing.T) {
	p := plan(t, Config{Ranks: 32, Framework: "pytorch", ModelType: "megatron_deepspeed", ModelSizeBytes: 10240, NumLayers: 40,
		LayerParameters: []int64{52583936, 209715200}, OptimizationGroups: []int64{1009254400, 865075200, 793600},
		Tensor: 4, Pipeline: 8, ZeroStage: 1})
	for rank := range 32 {
		files := p.Files(rank)
		stage := rank / 4
		want := []string{fmt.Sprintf("model_states-%d.pt", rank)}
		for layer := 5*stage + 1; layer <= 5*stage+5; layer++ {
			want = append(want, fmt.Sprintf("layer_%d-model_%d_model_states.pt", layer, rank))
		}
		want = append(want, fmt.Sprintf("zero_pp_rank_0_mp_rank_%d_optim_states.pt", rank))
		var names []string
		for _, f := range files {
			names = append(names, f.Name)
		}
		if !slices.Equal(names, want) {
			t.Fatalf("rank %d: found %q, expected %q", rank, names, want)
		}
		if got := files[0].Payload; got != 10240 {
			t.Errorf("rank %d: model_states of %d bytes", rank, got)
		}
		for _, f := range files[1:6] {
			if f.Payload != 52583936/4+209715200/4 {
				t.Errorf("rank %d: %s: %d bytes", rank, f.Name, f.Payload)
			}
		}
		if got := files[6].Payload; got != 5625369600 {
			t.Errorf("rank %d: optimizer of %d bytes, expected 5625369600", rank, got)
		}
	}
	if p.DLIOBytes() != 10240 { // "0.0000095 GiB"
		t.Errorf("DLIO counts %d bytes, expected 10240", p.DLIOBytes())
	}
}

// TestTreesAreDLIOs compares names and sizes with the checkpoints that DLIO wrote on two ranks, and the sizes that it reported.
func TestTreesAreDLIOs(t *testing.T) {
	base := func(tensor, pipeline, zero int) Config {
		c := llama(2, 8, tensor, pipeline, zero, Transformer{16032, 512, 1792, 8, 2})
		c.ModelDatatype = "bf16"
		return c
	}
	for _, run := range []struct {
		name string
		c    Config
		gib  float64
		tree string
	}{
		{"ZeRO 0", base(1, 1, 0), 0.5696611404418945, `
			87390348 zero_pp_rank_0_mp_rank_0_model_states.pt
			524293783 zero_pp_rank_0_mp_rank_0_optim_states.pt`},
		{"tensor 2, ZeRO 1", base(2, 1, 1), 0.5697059631347656, `
			43710604 model_0_model_states.pt
			43710604 model_1_model_states.pt
			262163095 zero_pp_rank_0_mp_rank_0_optim_states.pt
			262163095 zero_pp_rank_0_mp_rank_1_optim_states.pt`},
		{"pipeline 2, ZeRO 1", base(1, 2, 1), 0.5696897506713867, `
			16417515 layer_0-model_0_model_states.pt
			6819479 layer_1-model_0_model_states.pt
			1771 layer_10-model_1_model_states.pt
			6819479 layer_2-model_0_model_states.pt
			6819479 layer_3-model_0_model_states.pt
			6819479 layer_4-model_0_model_states.pt
			6819479 layer_5-model_1_model_states.pt
			6819479 layer_6-model_1_model_states.pt
			6819479 layer_7-model_1_model_states.pt
			6819479 layer_8-model_1_model_states.pt
			16417515 layer_9-model_1_model_states.pt
			262163095 zero_pp_rank_0_mp_rank_0_optim_states.pt
			262163095 zero_pp_rank_0_mp_rank_1_optim_states.pt`},
		{"ZeRO 3", base(1, 1, 3), 0.5696897506713867, `
			43701900 zero_pp_rank_0_mp_rank_0_model_states.pt
			262163095 zero_pp_rank_0_mp_rank_0_optim_states.pt
			43701900 zero_pp_rank_1_mp_rank_0_model_states.pt
			262163095 zero_pp_rank_1_mp_rank_0_optim_states.pt`},
	} {
		p := plan(t, run.c)
		var found []string
		for rank := range run.c.Ranks {
			for _, f := range p.Files(rank) {
				found = append(found, fmt.Sprint(f.Size, " ", f.Name))
			}
		}
		var want []string
		for line := range strings.Lines(run.tree) {
			if line = strings.TrimSpace(line); line != "" {
				want = append(want, line)
			}
		}
		slices.Sort(found)
		slices.Sort(want)
		if !slices.Equal(found, want) {
			t.Errorf("%s: found\n%s\nexpected\n%s", run.name, strings.Join(found, "\n"), strings.Join(want, "\n"))
		}
		if got := float64(p.DLIOBytes()) / (1 << 30); got != run.gib {
			t.Errorf("%s: %v GiB, DLIO reported %v", run.name, got, run.gib)
		}
	}
}

// TestEveryPartIsWrittenOnce draws parallelisms: no two ranks write the same file, every layer of every tensor-parallel part of one
// copy is written once (under ZeRO 3 by every rank), and what ranks write adds up to what the plan says.
func TestEveryPartIsWrittenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := small(0)
		c.ZeroStage = rapid.IntRange(0, 3).Draw(t, "zero")
		c.Tensor = rapid.IntRange(1, 4).Draw(t, "tensor")
		c.Pipeline = 1
		if c.ZeroStage < 3 {
			c.Pipeline = rapid.IntRange(1, 5).Draw(t, "pipeline")
		}
		c.Ranks = c.Tensor * c.Pipeline * rapid.IntRange(1, 4).Draw(t, "copies")
		c.NumLayers = rapid.IntRange(c.Pipeline, 12).Draw(t, "layers")
		if rapid.Bool().Draw(t, "predefined") {
			c.LayerParameters, c.OptimizationGroups, c.ModelType = []int64{40, 8}, []int64{5, 6}, "megatron"
		}
		p, err := NewPlan(c)
		if err != nil {
			t.Fatal(err)
		}
		names, layers := map[string]int{}, map[string]int{}
		var size, payload int64
		for rank := range c.Ranks {
			index := 0
			for _, f := range p.Files(rank) {
				if other, ok := names[f.Name]; ok {
					t.Fatalf("ranks %d and %d both write %s", other, rank, f.Name)
				}
				names[f.Name] = rank
				size, payload = size+f.Size, payload+f.Payload
				for _, tn := range f.Tensors {
					if tn.Index != index {
						t.Fatalf("rank %d: %s, tensor %s has number %d, expected %d", rank, f.Name, tn.Name, tn.Index, index)
					}
					index++
				}
				if strings.HasPrefix(f.Name, "layer_") {
					layers[strings.SplitN(f.Name, "-", 2)[0][6:]]++
				} else if strings.HasSuffix(f.Name, "_model_states.pt") {
					for _, tn := range f.Tensors {
						if layer, ok := strings.CutSuffix(tn.Name, "/0"); ok {
							layers[layer]++
						}
					}
				}
			}
			if p.Writes(rank) != (index > 0) {
				t.Fatalf("rank %d writes %d tensors, Writes says %v", rank, index, p.Writes(rank))
			}
		}
		if size != p.BytesPerCheckpoint() || payload != p.PayloadPerCheckpoint() {
			t.Fatalf("files of %d bytes and %d of payload, the plan says %d and %d", size, payload, p.BytesPerCheckpoint(), p.PayloadPerCheckpoint())
		}
		times, first, last := c.Tensor, 0, c.NumLayers+2
		if c.ZeroStage == 3 {
			times = c.Ranks
		}
		if c.LayerParameters != nil {
			first, last = 1, c.NumLayers
		}
		for layer := first; layer <= last; layer++ {
			if got := layers[strconv.Itoa(layer)]; got != times {
				t.Fatalf("layer %d is written %d times, expected %d", layer, got, times)
			}
		}
		if len(layers) != last-first+1 {
			t.Fatalf("%d layers are written, expected %d", len(layers), last-first+1)
		}
	})
}
