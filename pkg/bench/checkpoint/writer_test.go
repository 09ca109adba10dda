package checkpoint

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/store"
)

func config() Config {
	return Config{Seed: 7, Ranks: 2, Framework: "pytorch", ModelType: "cnn", ModelSizeBytes: 10240}
}

// full has all kinds of files; the first is longer than all buffers together, and no multiple of a piece.
func full() Config {
	c := config()
	c.ModelSizeBytes = 9*pieceSize + 12345
	c.NumLayers, c.LayerParameters = 3, []int64{1000, 77}
	c.OptimizationGroups = []int64{5000, 3, pieceSize}
	return c
}

func plan(t testing.TB, c Config) *Plan {
	t.Helper()
	p, err := NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func folder(t testing.TB) *store.Folder {
	t.Helper()
	f, err := store.NewFolder(t.TempDir(), store.FolderOptions{Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPlanNamesFilesAsDLIO(t *testing.T) {
	p := plan(t, full())
	var names []string
	var size, payload int64
	for _, f := range p.Files(0) {
		names = append(names, f.Name)
		size, payload = size+f.Size, payload+f.Payload
	}
	want := []string{"model_states-0.pt", "zero_pp_rank_0_mp_rank_0_model_states.pt", "zero_pp_rank_0_mp_rank_0_optim_states.pt"}
	if !slices.Equal(names, want) {
		t.Errorf("found %q, expected %q", names, want)
	}
	if p.Files(1) != nil || p.Writes(1) || !p.Writes(0) {
		t.Error("rank 1 writes; without parallelism only rank 0 does")
	}
	if p.BytesPerCheckpoint() != size || p.PayloadPerCheckpoint() != payload {
		t.Errorf("found %d and %d bytes, expected %d and %d", p.BytesPerCheckpoint(), p.PayloadPerCheckpoint(), size, payload)
	}
	if want := full().ModelSizeBytes + 3*1077 + 3*(5000+3+pieceSize); payload != want {
		t.Errorf("payload %d, expected %d", payload, want)
	}
	if got := p.MemoryBytes(); got != pieces*pieceSize {
		t.Errorf("%d bytes of memory, expected %d", got, pieces*pieceSize)
	}
	if p := plan(t, config()); p.BytesPerCheckpoint() != 10987 || p.MemoryBytes() != pieceSize {
		t.Errorf("unet3d: %d bytes, %d of memory", p.BytesPerCheckpoint(), p.MemoryBytes())
	}
}

func TestPlanRefuses(t *testing.T) {
	for key, change := range map[string]func(*Config){
		"ranks":                        func(c *Config) { c.Ranks = 0 },
		"framework":                    func(c *Config) { c.Framework = "jax" },
		"model.parallelism.tensor":     func(c *Config) { c.Tensor = 4 },
		"model.parallelism.pipeline":   func(c *Config) { c.Pipeline = 8 },
		"model.parallelism.zero_stage": func(c *Config) { c.ZeroStage = 4 },
		"model.parallelism.data 3":     func(c *Config) { c.Data = 3 },
		"checkpoint.mode subset":       func(c *Config) { c.Subset = true },
		"data 1 x pipeline 1":          func(c *Config) { c.Subset, c.Data = true, 1 },
		"with zero_stage 3":            func(c *Config) { c.Pipeline, c.ZeroStage = 2, 3 },
		"for model.num_layers 1":       func(c *Config) { c.Pipeline, c.NumLayers, c.LayerParameters = 2, 1, []int64{5} },
		"model.layer_parameters[0] is": func(c *Config) { c.NumLayers, c.LayerParameters = 1, []int64{0} },
		"tensor 1/0 would be empty":    func(c *Config) { c.Tensor, c.NumLayers, c.LayerParameters = 2, 1, []int64{1} },
		"hidden_size is 0":             func(c *Config) { *c = small(c.Ranks); c.Transformer.Hidden = 0 },
		"num_attention_heads is 65":    func(c *Config) { *c = small(c.Ranks); c.Transformer.Heads = 65 },
		"model.model_datatype":         func(c *Config) { *c = small(c.Ranks); c.ModelDatatype = "fp8" },
		"model.optimizer_datatype":     func(c *Config) { *c = small(c.Ranks); c.OptimizerDatatype = "tf32" },
		"model.num_layers 1000000":     func(c *Config) { *c = small(c.Ranks); c.NumLayers = 1000000 },
		"in one file":                  func(c *Config) { *c = small(c.Ranks); c.NumLayers = 6000 },
		"2^56":                         func(c *Config) { *c = small(c.Ranks); c.Transformer.Hidden, c.NumLayers = 1<<24, 1<<16 },
		"model.model_size_bytes -1":    func(c *Config) { c.ModelSizeBytes = -1 },
		"hold nothing":                 func(c *Config) { c.ModelSizeBytes = 0 },
		"model.model_size_bytes 9":     func(c *Config) { c.ModelSizeBytes = 9e18 },
		"model.optimization_groups[1]": func(c *Config) { c.OptimizationGroups = []int64{1, 0} },
		"model.optimization_groups[0]": func(c *Config) { c.OptimizationGroups = []int64{1 << 62} },
		"model.layer_parameters[0]":    func(c *Config) { c.NumLayers, c.LayerParameters = 2, []int64{-5} },
		"model.layer_parameters":       func(c *Config) { c.NumLayers, c.LayerParameters = 1<<30, []int64{1} },
	} {
		c := config()
		change(&c)
		if _, err := NewPlan(c); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: found %v, expected an error that names it", key, err)
		}
	}
}

// TestSaveIsWhatTheSeedGives writes to a real folder and compares files, digests, expectation and verification.
func TestSaveIsWhatTheSeedGives(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]Config{"small": config(), "all kinds": full()} {
		p, st := plan(t, c), folder(t)
		w := NewWriter(p, st)
		seen := map[[32]byte]string{}
		for pt := range (Schedule{AfterEpoch: 1, EpochsBetween: 1, StepsBetween: -1}).Points(2, 4) {
			save, err := w.Save(ctx, pt, 0)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want, err := p.Expect(ctx, pt, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(save.Files) != len(p.Files(0)) || len(want) != len(save.Files) {
				t.Fatalf("%s: found %d files, expected %d", name, len(save.Files), len(p.Files(0)))
			}
			for i, f := range save.Files {
				content, err := os.ReadFile(filepath.Join(st.Root(), f.Path))
				if err != nil {
					t.Fatal(err)
				}
				if f.Path != pt.Name()+"/"+p.Files(0)[i].Name || f.Size != int64(len(content)) || f.Digest != blake3.Sum256(content) {
					t.Errorf("%s: %s: size or digest is not the file's", name, f.Path)
				}
				if want[i] != f.FileSum {
					t.Errorf("%s: found %v, expected %v", name, f.FileSum, want[i])
				}
				if f.Starved < 0 || f.Write <= 0 || f.Write < f.Starved || f.Durable < f.Write || save.Duration < f.Durable {
					t.Errorf("%s: %s: starved %v, write %v, durable %v of %v", name, f.Path, f.Starved, f.Write, f.Durable, save.Duration)
				}
				if other, ok := seen[f.Digest]; ok {
					t.Errorf("%s: %s equals %s", name, f.Path, other)
				}
				seen[f.Digest] = f.Path
				for _, tn := range p.Files(0)[i].Tensors {
					bytesOf := make([]byte, tn.Bytes())
					p.family.Fill(bytesOf, uint64(pt.Number)<<42|uint64(tn.Index), 0)
					if !strings.Contains(string(content), string(bytesOf)) {
						t.Errorf("%s: %s: the content of tensor %s is not there", name, f.Path, tn.Name)
					}
				}
			}
			if err := p.Verify(ctx, st, pt, 0); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if save, err := w.Save(ctx, pt, 1); err != nil || len(save.Files) != 0 || save.Duration != 0 {
				t.Errorf("%s: rank 1: %+v, %v", name, save, err)
			}
		}
		if n := countFiles(t, st.Root()); n != 2*len(p.Files(0)) {
			t.Errorf("%s: %d files in the folder, expected %d", name, n, 2*len(p.Files(0)))
		}
	}
}

func countFiles(t *testing.T, root string) (n int) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGoldenDigests freezes the bytes. These values never change; other bytes are another Version.
func TestGoldenDigests(t *testing.T) {
	for _, g := range []struct {
		c     Config
		pt    Point
		sizes []int64
		sums  []string
	}{
		{config(), Point{1, 5, 25}, []int64{10987}, []string{goldenSmall}},
		{full(), Point{3, 2, 8}, []int64{9450219, 5079, 3162835}, []string{goldenModel, goldenLayers, goldenOptimizer}},
	} {
		sums, err := plan(t, g.c).Expect(context.Background(), g.pt, 0)
		if err != nil || len(sums) != len(g.sums) {
			t.Fatalf("found %d files, %v; expected %d", len(sums), err, len(g.sums))
		}
		for i, s := range sums {
			if got := hex.EncodeToString(s.Digest[:]); got != g.sums[i] || s.Size != g.sizes[i] {
				t.Errorf("%s: found %d bytes, %s; expected %d, %s", s.Path, s.Size, got, g.sizes[i], g.sums[i])
			}
		}
	}
}

// TestGoldenTransformers freezes the bytes of transformers of every type: of each file of rank 1 in checkpoint 2. They never change, as
// those above.
func TestGoldenTransformers(t *testing.T) {
	for _, g := range []struct {
		model, optimizer       string
		tensor, pipeline, zero int
		sums                   []string
	}{
		{"fp16", "fp32", 1, 1, 3, []string{
			"131000 e530975b4784226c89a164152b662a616fc7e5180985ba66f83fa0912d7ff2ec global_epoch1_step2/zero_pp_rank_1_mp_rank_0_model_states.pt",
			"769303 a5c92ddb53e7768fc47e5e17716bbc5d258d875b85e9590a8de3177ae6429c62 global_epoch1_step2/zero_pp_rank_1_mp_rank_0_optim_states.pt",
		}},
		{"bf16", "fp64", 2, 1, 1, []string{
			"131320 8319f7a96cf92408e3f624343f3081791118f4c17a5150b1fe0f3f5a1cda8fd4 global_epoch1_step2/model_1_model_states.pt",
			"1536919 4449142ac541bb3106a8236bb05a275406dd72df338b4423ead017bb8b825160 global_epoch1_step2/zero_pp_rank_0_mp_rank_1_optim_states.pt",
		}},
		{"fp32", "bf16", 1, 2, 2, []string{
			"215191 1b9ca7176a276e1f4df5cdc08cf8037d8d6713cb4643c1aca6b6fd8d0f406a93 global_epoch1_step2/layer_2-model_1_model_states.pt",
			"41707 8292d8307efd7c2e827182b74ebead9a50391ed3dbe1eec4ecdc2538df1facfc global_epoch1_step2/layer_3-model_1_model_states.pt",
			"1003 ce955f70583877c225750f0e5ed584f81c5e3eebea9f4eaec8ea8527dc3373ab global_epoch1_step2/layer_4-model_1_model_states.pt",
			"385495 453036811284a90cbdcfec3c2f2897fccb45bad69ef77ae49ae48c7fd85bd7fe global_epoch1_step2/zero_pp_rank_0_mp_rank_1_optim_states.pt",
		}},
		{"int8", "uint8", 2, 1, 0, []string{
			"67512 aa4f0789274306ebec2b1256b5af479aabfc608ab05d986cfb7aef23a8f439c9 global_epoch1_step2/zero_pp_rank_0_mp_rank_1_model_states.pt",
			"193687 374e34dc7794ba163fadd113238e681b60c80d12044316b1b5cd25410af160e4 global_epoch1_step2/zero_pp_rank_0_mp_rank_1_optim_states.pt",
		}},
	} {
		c := small(2)
		c.NumLayers, c.Tensor, c.Pipeline, c.ZeroStage, c.ModelDatatype, c.OptimizerDatatype = 2, g.tensor, g.pipeline, g.zero, g.model, g.optimizer
		sums, err := plan(t, c).Expect(context.Background(), Point{Number: 2, Epoch: 1, Step: 2}, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range sums {
			got = append(got, fmt.Sprintf("%d %x %s", s.Size, s.Digest[:], s.Path))
		}
		if !slices.Equal(got, g.sums) {
			t.Errorf("%s and %s: found\n%s\nexpected\n%s", g.model, g.optimizer, strings.Join(got, "\n"), strings.Join(g.sums, "\n"))
		}
	}
}

const (
	goldenSmall     = "b809da8e2e85b48303d428e223ddb0aedc9c15d5a34ef50dc88dbd4a03070203"
	goldenModel     = "38fb98e7b83d390b565c08cfce79253e30a7ddab74fd3b6804ad6f1ba9294887"
	goldenLayers    = "7e4633d7103ef594a39767019a94cfcabee8ee6ac738ffd2d5bb270d95cfd057"
	goldenOptimizer = "6ef7ae87b66b3b672254bba497698624de37da8cd7387b24422eaa70a99fca55"
)

// TestContentDependsOnAllOfItsNames: another seed, number, rank or tensor is another stream, and no block repeats
// anywhere.
func TestContentDependsOnAllOfItsNames(t *testing.T) {
	c := full()
	c.Ranks = 3
	other := c
	other.Seed++
	blocks := map[string]string{}
	for _, p := range []*Plan{plan(t, c), plan(t, other)} {
		for _, number := range []int{1, 2, MaxNumber} {
			for _, rank := range []int{0, 1, 2} {
				for i := range p.Files(0) {
					f := &p.Files(0)[i]
					fill := p.content(number, rank, f)
					for k, tn := range f.Tensors {
						buf := make([]byte, min(tn.Bytes(), 8192))
						fill(buf, k, 0)
						for b := 0; b+64 <= len(buf); b += 64 {
							here := fmt.Sprintf("seed %d number %d rank %d tensor %s at %d", p.cfg.Seed, number, rank, tn.Name, b)
							if there, ok := blocks[string(buf[b:b+64])]; ok {
								t.Fatalf("%s equals %s", here, there)
							}
							blocks[string(buf[b:b+64])] = here
						}
					}
				}
			}
		}
	}
}

func TestVerifyFindsEveryAlteration(t *testing.T) {
	ctx, pt := context.Background(), Point{Number: 4, Epoch: 2, Step: 9}
	p, st := plan(t, full()), folder(t)
	if _, err := NewWriter(p, st).Save(ctx, pt, 0); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(p.Files(0)).Draw(t, "file")
		off := rapid.Int64Range(0, f.Size-1).Draw(t, "offset")
		if rapid.Bool().Draw(t, "near an edge") {
			off = min(off%300, f.Size-1)
		}
		path := filepath.Join(st.Root(), pt.Name(), f.Name)
		flip := func() {
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			var b [1]byte
			if _, err := file.ReadAt(b[:], off); err != nil {
				t.Fatal(err)
			}
			b[0] ^= 1 << (off % 8)
			if _, err := file.WriteAt(b[:], off); err != nil {
				t.Fatal(err)
			}
		}
		flip()
		defer flip()
		err := p.Verify(ctx, st, pt, 0)
		var d *DifferError
		if !errors.As(err, &d) || !errors.Is(err, ErrDiffers) || d.Offset != off || d.Path != pt.Name()+"/"+f.Name || d.WrongSize {
			t.Fatalf("byte %d of %s flipped: found %v", off, f.Name, err)
		}
	})
	path := filepath.Join(st.Root(), pt.Name(), p.Files(0)[1].Name)
	for _, c := range []struct {
		what string
		do   func() error
		want func(error) bool
	}{
		{"other seed", func() error { c := full(); c.Seed++; return plan(t, c).Verify(ctx, st, pt, 0) }, differs("tensor model_states")},
		{"other number", func() error { return p.Verify(ctx, st, Point{5, 2, 9}, 0) }, differs("tensor model_states")},
		{"other model size", func() error { c := full(); c.ModelSizeBytes++; return plan(t, c).Verify(ctx, st, pt, 0) }, nil},
		{"truncated", func() error {
			return errors.Join(os.Truncate(path, p.Files(0)[1].Size-1), p.Verify(ctx, st, pt, 0))
		}, differs("bytes, found")},
		{"removed", func() error { return errors.Join(os.Remove(path), p.Verify(ctx, st, pt, 0)) },
			func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"no such rank", func() error { return p.Verify(ctx, st, pt, 2) }, func(err error) bool { return err != nil }},
	} {
		err := c.do()
		if c.want == nil {
			// One byte more moves what follows; whether the padding hides it in the size decides which of the two is
			// reported.
			c.want = func(err error) bool { return errors.Is(err, ErrDiffers) }
		}
		if !c.want(err) {
			t.Errorf("%s: found %v", c.what, err)
		}
	}
}

func differs(text string) func(error) bool {
	return func(err error) bool { return errors.Is(err, ErrDiffers) && strings.Contains(err.Error(), text) }
}

// faulty is a creator that fails at a given byte, or at Create (-1) or Commit (-2), or writes short (short).
type faulty struct {
	at      int64
	short   bool
	onWrite func()
	open    int
	aborted int
	written int64
	largest int
}

var errBroken = errors.New("broken")

func (f *faulty) Create(string, int64) (store.Writer, error) {
	if f.at == -1 {
		return nil, errBroken
	}
	f.open++
	return &faultyFile{f: f}, nil
}

type faultyFile struct{ f *faulty }

func (w *faultyFile) Write(p []byte) (int, error) {
	f := w.f
	if f.onWrite != nil {
		f.onWrite()
	}
	f.largest = max(f.largest, len(p))
	if f.at >= 0 && f.written+int64(len(p)) > f.at {
		if f.short {
			return int(f.at - f.written), nil
		}
		return 0, errBroken
	}
	f.written += int64(len(p))
	return len(p), nil
}

func (w *faultyFile) Commit() error {
	if w.f.at == -2 {
		return errBroken
	}
	w.f.open--
	return nil
}

func (w *faultyFile) Abort() error { w.f.open--; w.f.aborted++; return nil }

func TestSaveStopsAtTheFirstError(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, c := range []struct {
		what    string
		st      *faulty
		want    error
		aborted int
	}{
		{"create", &faulty{at: -1}, errBroken, 0},
		{"first write", &faulty{at: 0}, errBroken, 1},
		{"third write", &faulty{at: 2 * pieceSize}, errBroken, 1},
		{"second file", &faulty{at: plan(t, full()).Files(0)[0].Size}, errBroken, 1},
		{"short write", &faulty{at: 100, short: true}, io.ErrShortWrite, 1},
		{"commit", &faulty{at: -2}, errBroken, 1},
	} {
		_, err := NewWriter(plan(t, full()), c.st).Save(context.Background(), Point{1, 3, 5}, 0)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "global_epoch3_step5") {
			t.Errorf("%s: found %v, expected %v with the checkpoint's name", c.what, err, c.want)
		}
		if c.st.open != 0 || c.st.aborted != c.aborted {
			t.Errorf("%s: %d files left open, %d aborted", c.what, c.st.open, c.st.aborted)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	st := &faulty{at: 1 << 60, onWrite: cancel}
	if _, err := NewWriter(plan(t, full()), st).Save(ctx, Point{1, 1, 1}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: found %v", err)
	}
	if st.written != pieceSize || st.open != 0 {
		t.Errorf("cancelled in the first write: %d bytes written after all, %d files open", st.written, st.open)
	}
	if _, err := plan(t, full()).Expect(ctx, Point{1, 1, 1}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("expect, cancelled: found %v", err)
	}
	for _, pt := range []Point{{0, 1, 1}, {MaxNumber + 1, 1, 1}} {
		if _, err := NewWriter(plan(t, full()), st).Save(context.Background(), pt, 0); err == nil {
			t.Errorf("number %d: no error", pt.Number)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestSaveNeedsFewBuffers: 256 MiB go through what the plan announces, and a second save allocates next to nothing.
func TestSaveNeedsFewBuffers(t *testing.T) {
	c := config()
	c.ModelSizeBytes = 256 << 20
	p, st := plan(t, c), &faulty{at: 1 << 60}
	w := NewWriter(p, st)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := w.Save(context.Background(), Point{1, 1, 1}, 0); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got, limit := int64(after.TotalAlloc-before.TotalAlloc), p.MemoryBytes()+1<<20; got > limit {
		t.Errorf("%d bytes allocated for %d, expected at most %d", got, c.ModelSizeBytes, limit)
	}
	if st.largest != pieceSize || st.written != p.BytesPerCheckpoint() {
		t.Errorf("%d bytes in pieces up to %d, expected %d in pieces of %d", st.written, st.largest, p.BytesPerCheckpoint(), pieceSize)
	}
}

func TestSaveByManyAtOnce(t *testing.T) {
	p, st := plan(t, full()), folder(t)
	w := NewWriter(p, st)
	var wg sync.WaitGroup
	errs := make([]error, 7)
	for i := range errs {
		wg.Go(func() {
			pt := Point{Number: i + 1, Epoch: 1, Step: int64(i + 1)}
			_, err := w.Save(context.Background(), pt, 0)
			errs[i] = errors.Join(err, p.Verify(context.Background(), st, pt, 0))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
