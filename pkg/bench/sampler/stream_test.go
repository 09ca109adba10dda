package sampler

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawSampling draws a configuration of any sampling.
func drawSampling(t *rapid.T) Config {
	c := drawConfig(t)
	c.Sampling = rapid.SampledFrom([]Sampling{Index, Iterative, Stream}).Draw(t, "sampling")
	if c.Sampling != Index {
		c.Lanes = rapid.IntRange(1, 9).Draw(t, "lanes")
	}
	if c.Sampling == Stream {
		c.Buffer = rapid.Int64Range(0, 200).Draw(t, "buffer")
		if rapid.Bool().Draw(t, "few files") { // fewer files than ranks is rare otherwise
			c.Files, c.Accelerators = rapid.Int64Range(1, 4).Draw(t, "files"), rapid.IntRange(1, 9).Draw(t, "accelerators")
			c.SamplesPerFile = rapid.Int64Range(int64(c.BatchSize*c.Accelerators), 90).Draw(t, "samples per file")
		}
	}
	c.After = rapid.Int64Range(0, 50).Draw(t, "shuffled before")
	return c
}

// Whatever the sampling, no place of a file is read twice in an epoch, and as many are read as the step rule says. What a rank consumes is
// what it reads: all of it, or its part where all read everything, and never before it is read.
func TestEveryPlaceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawSampling(t)
		o, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		e, err := o.Epoch(rapid.IntRange(1, 3).Draw(t, "epoch"))
		if err != nil {
			t.Fatal(err)
		}
		places := map[[2]int64]bool{}
		for r := range c.Accelerators {
			at := map[[2]int64]int64{}
			for i := range e.Reads() {
				if c.Sampling != Stream {
					break
				}
				g, file, k, lane := e.Read(r, i)
				if g < 0 || file < 0 || file >= o.Files() || k != g%c.SamplesPerFile || lane < 0 || lane >= int64(c.Lanes) {
					t.Fatalf("rank %d, read %d: sample %d, file %d, position %d, lane %d", r, i, g, file, k, lane)
				}
				if _, twice := at[[2]int64{file, k}]; twice {
					t.Fatalf("rank %d, read %d: position %d of file %d was read before", r, i, k, file)
				}
				at[[2]int64{file, k}] = i
			}
			for p := range e.PerRank() {
				g, file, k := e.Sample(r, p)
				place := [2]int64{file, k}
				if g < 0 || k != g%c.SamplesPerFile || places[place] {
					t.Fatalf("rank %d position %d: sample %d at file %d position %d: wrong, or read before", r, p, g, file, k)
				}
				places[place] = true
				if c.Sampling != Stream {
					continue
				}
				i, read := at[place]
				if ahead := o.ReadAhead(r, p+1); !read || i >= ahead || ahead > e.Reads() {
					t.Fatalf("rank %d position %d: consumed after %d reads, it is read %d (%v)", r, p, ahead, i, read)
				}
			}
		}
		if int64(len(places)) != o.Samples() {
			t.Fatalf("%d places are read, expected %d", len(places), o.Samples())
		}
	})
}

// The buffer that a loader runs with the draws gives the samples in the order that the order itself says.
func TestShufflerAgreesWithOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawSampling(t)
		c.Sampling, c.Lanes, c.SampleShuffle = Stream, 3, true
		c.Buffer = rapid.Int64Range(0, 90).Draw(t, "buffer")
		o, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		e, err := o.Epoch(1)
		if err != nil {
			t.Fatal(err)
		}
		d := e.Shuffle()
		var held []int64
		next := int64(0)
		for ; next < min(d.Buffer(), e.Reads()); next++ {
			held = append(held, next)
		}
		for i := range e.Reads() {
			at := d.Place()
			got := held[at]
			if next < e.Reads() {
				held[at] = next
				next++
			} else {
				held[at] = held[len(held)-1]
				held = held[:len(held)-1]
			}
			if e.Stride() == 1 {
				if want := e.delivered(0, i); got != want {
					t.Fatalf("sample %d that leaves the buffer is read %d, the order has %d", i, got, want)
				}
			} else if rank := int(i % e.Stride()); e.delivered(rank, i/e.Stride()) != got {
				t.Fatalf("sample %d that leaves the buffer is read %d, the order of rank %d has %d", i, got, rank, e.delivered(rank, i/e.Stride()))
			}
		}
	})
}

// places lists what a rank consumes as file*100 + position.
func places(t *testing.T, c Config, rank int) []int64 {
	t.Helper()
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := o.Epoch(1)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for p := range e.PerRank() {
		_, file, k := e.Sample(rank, p)
		got = append(got, 100*file+k)
	}
	return got
}

// Orders by hand, without shuffling.
func TestKnownOrders(t *testing.T) {
	stream := func(files, n int64, batch, ranks, lanes int) Config {
		return Config{Files: files, SamplesPerFile: n, BatchSize: batch, Accelerators: ranks, Lanes: lanes, Sampling: Stream, Mode: DLIO}
	}
	for name, tc := range map[string]struct {
		c    Config
		rank int
		want []int64
	}{
		// Two lanes take files 0 and 1 in turn, then 2 and 3, then 4 alone.
		"interleave":            {stream(5, 2, 1, 1, 2), 0, []int64{0, 100, 1, 101, 200, 300, 201, 301, 400, 401}},
		"one lane":              {stream(2, 3, 2, 1, 1), 0, []int64{0, 1, 2, 100, 101, 102}},
		"more lanes than files": {stream(2, 3, 2, 1, 8), 0, []int64{0, 100, 1, 101, 2, 102}},
		// Rank r has the files r, r+2, ...
		"files of rank 0": {stream(4, 2, 1, 2, 2), 0, []int64{0, 200, 1, 201}},
		"files of rank 1": {stream(4, 2, 1, 2, 2), 1, []int64{100, 300, 101, 301}},
		// 3 files of 4 for 2 ranks: 6 samples each. Rank 0 has files 0 and 2, rank 1 has file 1 and what rank 0 leaves.
		"rest of rank 0":  {stream(3, 4, 2, 2, 1), 0, []int64{0, 1, 2, 3, 200, 201}},
		"rank 1 goes on":  {stream(3, 4, 2, 2, 1), 1, []int64{100, 101, 102, 103, 202, 203}},
		"samples of all":  {stream(1, 9, 1, 4, 1), 1, []int64{1, 5}},
		"samples of last": {stream(1, 9, 1, 4, 1), 3, []int64{3, 7}},
		// 7 batches of 2 for 3 threads: threads have the batches 0-2, 3-4, 5-6.
		"iterative": {Config{Files: 14, SamplesPerFile: 1, BatchSize: 2, Accelerators: 1, Lanes: 3, Sampling: Iterative, Mode: DLIO}, 0,
			[]int64{0, 100, 600, 700, 1000, 1100, 200, 300, 800, 900, 1200, 1300, 400, 500}},
		"iterative, rank 1": {Config{Files: 8, SamplesPerFile: 1, BatchSize: 1, Accelerators: 2, Lanes: 2, Sampling: Iterative, Mode: DLIO}, 1,
			[]int64{400, 600, 500, 700}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := places(t, tc.c, tc.rank); !slices.Equal(got, tc.want) {
				t.Errorf("found %v, expected %v", got, tc.want)
			}
		})
	}
}

// A sample leaves the buffer at most as much earlier as the buffer is large, the order is another one in another epoch, and order
// dlio shuffles in the buffer but not the files.
func TestBufferShuffles(t *testing.T) {
	c := Config{Files: 100, SamplesPerFile: 1, BatchSize: 1, Accelerators: 1, Lanes: 1, Sampling: Stream, Buffer: 10, SampleShuffle: true,
		FileShuffle: true, Mode: DLIO, Seed: 3, SeedChangeEpoch: true}
	got := places(t, c, 0)
	moved := 0
	for i, p := range got {
		if p/100 > int64(i)+9 {
			t.Errorf("place %d: sample %d cannot have been in a buffer of 10", i, p/100)
		}
		if p/100 != int64(i) {
			moved++
		}
	}
	if moved < 50 {
		t.Errorf("%d of 100 samples moved", moved)
	}
	c.Seed++
	if slices.Equal(got, places(t, c, 0)) {
		t.Error("two seeds gave one order")
	}
	c.Buffer = 1
	if !slices.IsSorted(places(t, c, 0)) {
		t.Error("a buffer of one sample shuffled")
	}
	c.Mode = Numpy
	if slices.IsSorted(places(t, c, 0)) {
		t.Error("order numpy did not shuffle the files")
	}
}

func TestSamplingRefusals(t *testing.T) {
	good := Config{Files: 28, SamplesPerFile: 1, BatchSize: 7, Accelerators: 2, Mode: Numpy}
	for want, change := range map[string]func(*Config){
		"2 lanes, buffer 0":            func(c *Config) { c.Lanes = 2 },
		"0 lanes, buffer 2":            func(c *Config) { c.Buffer = 2 },
		`sampling "other"`:             func(c *Config) { c.Sampling, c.Lanes = "other", 1 },
		"0 lanes: expected":            func(c *Config) { c.Sampling = Stream },
		"shuffle buffer of -1 samples": func(c *Config) { c.Sampling, c.Lanes, c.Buffer = Stream, 1, -1 },
		"shuffle buffer of 3 samples":  func(c *Config) { c.Sampling, c.Lanes, c.Buffer = Iterative, 1, 3 },
		"a list of -1":                 func(c *Config) { c.Sampling, c.Lanes, c.After = Iterative, 1, -1 },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
