package sampler

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestMain raises the number of cases of every property from rapid's 100, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "1000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// The golden orders that DLIO's documentation of numpy's legacy generator gives: shuffle(arange(10)) for three seeds, and a second
// shuffle with the same generator.
func TestShuffleGolden(t *testing.T) {
	for seed, want := range map[uint32][]uint32{
		123: {4, 0, 7, 5, 8, 3, 1, 6, 9, 2},
		124: {6, 8, 3, 5, 4, 0, 9, 2, 7, 1},
		125: {9, 1, 0, 6, 4, 5, 3, 8, 7, 2},
	} {
		var g mt
		g.seed(seed)
		if got := shuffled(&g, 10); !slices.Equal(got, want) {
			t.Errorf("seed %d: shuffle(10) = %v, want %v", seed, got, want)
		}
		if seed == 124 {
			if got, want := shuffled(&g, 4), []uint32{2, 0, 3, 1}; !slices.Equal(got, want) {
				t.Errorf("seed 124, second shuffle: %v, want %v", got, want)
			}
		}
	}
}

func shuffled(g *mt, n int64) []uint32 {
	a := arange(n)
	g.shuffle(a)
	return a
}

// The first outputs of the reference code with init_genrand(5489), its default seed, and output 10,000, which the C++ standard
// requires of mt19937.
func TestGeneratorGolden(t *testing.T) {
	var g mt
	g.seed(5489)
	if a, b := g.uint32(), g.uint32(); a != 3499211612 || b != 581869302 {
		t.Errorf("first outputs %d %d, want 3499211612 581869302", a, b)
	}
	var v uint32
	for range 10000 - 2 {
		v = g.uint32()
	}
	if v != 4123659995 {
		t.Errorf("output 10000 is %d, want 4123659995", v)
	}
}

func drawConfig(t *rapid.T) Config {
	n := rapid.Int64Range(1, 40).Draw(t, "samples per file")
	b := rapid.IntRange(1, 9).Draw(t, "batch")
	r := rapid.IntRange(1, 9).Draw(t, "accelerators")
	// At least one step: no case is thrown away.
	least := (int64(b*r) + n - 1) / n
	return Config{
		Files: rapid.Int64Range(least, least+120).Draw(t, "files"), SamplesPerFile: n, BatchSize: b, Accelerators: r,
		FileShuffle: rapid.Bool().Draw(t, "file shuffle"), SampleShuffle: rapid.Bool().Draw(t, "sample shuffle"),
		Seed: rapid.Int64Range(0, 1<<32-10).Draw(t, "seed"), SeedChangeEpoch: rapid.Bool().Draw(t, "seed change"),
		Mode: rapid.SampledFrom([]string{Numpy, DLIO}).Draw(t, "mode"),
	}
}

// Every sample that an epoch keeps is read exactly once by exactly one rank, and file and position agree with the epoch's order.
func TestEverySampleOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		o, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, o)
		e, err := o.Epoch(rapid.IntRange(1, 4).Draw(t, "epoch"))
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]bool, o.Samples())
		places := map[[2]int64]bool{}
		for r := range c.Accelerators {
			for p := range e.PerRank() {
				g, file, k := e.Sample(r, p)
				if g < 0 || g >= o.Samples() || seen[g] {
					t.Fatalf("rank %d position %d: sample %d is out of range or was read before", r, p, g)
				}
				seen[g] = true
				if file < 0 || file >= o.Files() || k != g%c.SamplesPerFile || places[[2]int64{file, k}] {
					t.Fatalf("rank %d position %d: sample %d at file %d position %d: wrong place or read before", r, p, g, file, k)
				}
				places[[2]int64{file, k}] = true
				if c.Mode == DLIO && (g != int64(r)*e.PerRank()+p || file != g/c.SamplesPerFile) {
					t.Fatalf("order dlio: rank %d position %d is sample %d of file %d", r, p, g, file)
				}
			}
		}
		if i := slices.Index(seen, false); i >= 0 {
			t.Fatalf("sample %d is never read", i)
		}
	})
}

// checkCounts holds the step rule, from its definition.
func checkCounts(t *rapid.T, o *Order) {
	c := o.c
	global := int64(c.BatchSize * c.Accelerators)
	total := c.Files * c.SamplesPerFile
	if o.Samples()%global != 0 || o.Samples() > total || total-o.Samples() >= global {
		t.Fatalf("%d samples kept of %d with %d a step", o.Samples(), total, global)
	}
	if o.Steps()*global != o.Samples() || o.Dropped() != total-o.Samples() {
		t.Fatalf("%d steps, %d dropped", o.Steps(), o.Dropped())
	}
	if o.Files() > c.Files || o.Files()*c.SamplesPerFile < o.Samples() || (o.Files()-1)*c.SamplesPerFile >= o.Samples() {
		t.Fatalf("%d leading files for %d samples of %d a file", o.Files(), o.Samples(), c.SamplesPerFile)
	}
}

// An epoch's order does not depend on which epochs were asked for before, nor by how many goroutines.
func TestEpochsAreIndependentOfHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		o, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		asked := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 5).Draw(t, "epochs")
		got := make([]*EpochOrder, len(asked))
		var wg sync.WaitGroup
		for i, e := range asked {
			wg.Go(func() { got[i], _ = o.Epoch(e) })
		}
		wg.Wait()
		for i, e := range asked {
			fresh, _ := New(c)
			want, err := fresh.Epoch(e)
			if err != nil {
				t.Fatal(err)
			}
			if got[i] == nil || !slices.Equal(got[i].files, want.files) || !slices.Equal(got[i].samples, want.samples) {
				t.Fatalf("epoch %d after %v differs from epoch %d alone", e, asked[:i], e)
			}
		}
	})
}

func TestSeedChangesTheOrder(t *testing.T) {
	c := Config{Files: 64, SamplesPerFile: 1, BatchSize: 1, Accelerators: 1, SampleShuffle: true, Seed: 123, SeedChangeEpoch: true, Mode: Numpy}
	first := epochSamples(t, c, 1)
	if slices.Equal(first, epochSamples(t, c, 2)) {
		t.Error("epochs 1 and 2 have one order although the seed changes")
	}
	c.Seed++
	if slices.Equal(first, epochSamples(t, c, 1)) {
		t.Error("two seeds gave one order")
	}
	c.Seed, c.SeedChangeEpoch = 124, false
	if !slices.Equal(first, epochSamples(t, c, 7)) {
		t.Error("seed 124 that does not change differs from seed 123 + epoch 1")
	}
}

func epochSamples(t *testing.T, c Config, epoch int) []uint32 {
	t.Helper()
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := o.Epoch(epoch)
	if err != nil {
		t.Fatal(err)
	}
	return e.samples
}

func TestOutOfRange(t *testing.T) {
	o, err := New(Config{Files: 8, SamplesPerFile: 1, BatchSize: 2, Accelerators: 2, Mode: Numpy})
	if err != nil {
		t.Fatal(err)
	}
	e, err := o.Epoch(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range [][2]int64{{-1, 0}, {2, 0}, {0, -1}, {0, 4}} {
		if g, f, k := e.Sample(int(at[0]), at[1]); g != -1 || f != -1 || k != -1 {
			t.Errorf("rank %d position %d: sample %d, file %d, position %d; want none", at[0], at[1], g, f, k)
		}
	}
	if _, err := o.Epoch(0); err == nil {
		t.Error("epoch 0 was accepted")
	}
}

func TestRefusals(t *testing.T) {
	good := Config{Files: 28, SamplesPerFile: 1, BatchSize: 7, Accelerators: 2, Mode: Numpy}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no step":         {func(c *Config) { c.Accelerators = 8 }, "0 steps: 28 files x 1 samples < batch 7 x 8 accelerators"},
		"huge product":    {func(c *Config) { c.BatchSize, c.Accelerators = 1<<40, 1<<40 }, "0 steps"},
		"no files":        {func(c *Config) { c.Files = 0 }, "0 files"},
		"too many files":  {func(c *Config) { c.Files = 1<<32 + 1 }, "expected 1 to 4294967296"},
		"too many":        {func(c *Config) { c.Files, c.SamplesPerFile = 1<<31, 3 }, "samples in all"},
		"no samples":      {func(c *Config) { c.SamplesPerFile = 0 }, "samples in all"},
		"no batch":        {func(c *Config) { c.BatchSize = 0 }, "batch size 0"},
		"no accelerators": {func(c *Config) { c.Accelerators = 0 }, "0 accelerators"},
		"mode":            {func(c *Config) { c.Mode = "fast" }, `order "fast": expected "numpy" or "dlio"`},
		"negative seed":   {func(c *Config) { c.Seed = -1 }, "seed -1"},
		"great seed":      {func(c *Config) { c.Seed = 1 << 32 }, "seed 4294967296"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			tc.change(&c)
			if _, err := New(c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	c := good
	c.Seed, c.SeedChangeEpoch, c.SampleShuffle = 1<<32-2, true, true
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Epoch(1); err != nil {
		t.Errorf("seed 2^32-1: %v", err)
	}
	if _, err := o.Epoch(2); err == nil {
		t.Error("seed 2^32 was accepted")
	}
}

// Nothing is kept where nothing is shuffled, and 4 bytes a sample where samples are.
func TestMemory(t *testing.T) {
	c := Config{Files: 1 << 20, SamplesPerFile: 1 << 12, BatchSize: 1, Accelerators: 1, Mode: DLIO, FileShuffle: true, SampleShuffle: true}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Epoch(3); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 || o.MemoryBytes() != 0 {
		t.Errorf("an order over %d samples that shuffles nothing took %d bytes and says %d", o.Samples(), n, o.MemoryBytes())
	}
	c.Mode, c.SamplesPerFile = Numpy, 1
	if o, err = New(c); err != nil {
		t.Fatal(err)
	}
	if got, want := o.MemoryBytes(), int64(8<<20); got != want {
		t.Errorf("MemoryBytes %d, want %d", got, want)
	}
}

func ExampleEpochOrder_Sample() {
	o, err := New(Config{Files: 10, SamplesPerFile: 1, BatchSize: 2, Accelerators: 2, SampleShuffle: true, Seed: 123,
		SeedChangeEpoch: true, Mode: Numpy})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := o.Epoch(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for r := range 2 {
		for p := range e.PerRank() {
			g, file, k := e.Sample(r, p)
			fmt.Printf("rank %d step %d: sample %d = file %d, position %d\n", r, p/2+1, g, file, k)
		}
	}
	fmt.Println(o.Dropped(), "samples dropped")
	// Output:
	// rank 0 step 1: sample 3 = file 3, position 0
	// rank 0 step 1: sample 7 = file 7, position 0
	// rank 0 step 2: sample 0 = file 0, position 0
	// rank 0 step 2: sample 5 = file 5, position 0
	// rank 1 step 1: sample 2 = file 2, position 0
	// rank 1 step 1: sample 1 = file 1, position 0
	// rank 1 step 2: sample 4 = file 4, position 0
	// rank 1 step 2: sample 6 = file 6, position 0
	// 2 samples dropped
}
