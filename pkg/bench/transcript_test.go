package bench

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// steppedSizes gives file i samples of first + i*step bytes.
type steppedSizes struct{ First, Step int64 }

func (s steppedSizes) SampleBytes(file int) int64 { return s.First + int64(file)*s.Step }

// ReadDigest makes up what is read of each sample, for version 3.
func (s steppedSizes) ReadDigest(file, position int) ([32]byte, bool) {
	return blake3.Sum256(fmt.Appendf(nil, "sample %d of file %d\n", position, file)), true
}

// transcriptVector is a file of testdata/transcript: a schedule and the transcript that it must always have.
type transcriptVector struct {
	Schedule Schedule
	Sizes    steppedSizes
	Want     struct {
		Ranks   []string
		Root    string
		Entries int64
	}
}

// readVectors returns the golden transcripts by file name.
func readVectors(t *testing.T) map[string]transcriptVector {
	t.Helper()
	files, err := filepath.Glob("testdata/transcript/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden transcripts: %v", err)
	}
	vectors := map[string]transcriptVector{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v transcriptVector
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		vectors[filepath.Base(name)] = v
	}
	return vectors
}

// Golden transcripts never change: another one is another TranscriptVersion.
func TestTranscriptGolden(t *testing.T) {
	for name, v := range readVectors(t) {
		got, err := Expected(t.Context(), v.Schedule, v.Sizes)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Root != v.Want.Root || !slices.Equal(got.Ranks, v.Want.Ranks) || int64(got.Entries) != v.Want.Entries {
			t.Errorf("%s: %d entries, root %s, ranks %q; want %d, %s, %q", name, got.Entries, got.Root, got.Ranks, v.Want.Entries,
				v.Want.Root, v.Want.Ranks)
		}
		if got.Expected != got.Root || got.Class != record.Recomputable {
			t.Errorf("%s: expected %s, class %s", name, got.Expected, got.Class)
		}
	}
}

func TestEntryEncoding(t *testing.T) {
	e := Entry{Epoch: 1, Step: 0x0203, Sample: 0x0405060708090a0b, File: 0x0c0d0e0f, Position: 0x10111213, Logical: 0x1415161718191a1b}
	const want = "00000001" + "00000203" + "0405060708090a0b" + "0c0d0e0f" + "10111213" + "1415161718191a1b"
	if b := e.Encode(); hex.EncodeToString(b[:]) != want {
		t.Errorf("entry %x, want %s", b, want)
	}
}

// The whole of a small transcript, hashed by the reference program: preamble, chain and tree.
func TestTranscriptWithB3sum(t *testing.T) {
	if _, err := exec.LookPath("b3sum"); err != nil {
		const reason = "no b3sum (Debian package b3sum; make deps installs it)"
		if os.Getenv("CI") == "true" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	b3sum := func(parts ...[]byte) []byte {
		cmd := exec.Command("b3sum", "--no-names")
		cmd.Stdin = bytes.NewReader(bytes.Join(parts, nil))
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		h, err := hex.DecodeString(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	v, ok := readVectors(t)["example.json"]
	if !ok {
		t.Fatal("the example of docs/transcript.md is not among the golden transcripts")
	}
	s := v.Schedule
	if s.FileShuffle || s.SampleShuffle {
		t.Fatal("the example must not shuffle: the order is written out below")
	}
	var leaves [][]byte
	for rank := range int64(s.Accelerators) {
		h := b3sum(fmt.Appendf(nil, "benchpin transcript 1\naccelerators %d\nepochs %d\nsteps_per_epoch %d\nbatch_size %d\nfiles %d\n"+
			"samples_per_file %d\norder %s\norder_seed %d\nseed_change_epoch %t\nfile_shuffle false\nsample_shuffle false\nrank %d\n",
			s.Accelerators, s.Epochs, s.StepsPerEpoch, s.BatchSize, s.Files, s.SamplesPerFile, s.Mode, s.Seed, s.SeedChangeEpoch, rank))
		share := s.StepsPerEpoch * int64(s.BatchSize)
		for epoch := range s.Epochs {
			for p := range share {
				g := rank*share + p
				file, k := g/s.SamplesPerFile, g%s.SamplesPerFile
				entry, err := hex.DecodeString(fmt.Sprintf("%08x%08x%016x%08x%08x%016x", epoch+1, p/int64(s.BatchSize)+1, g, file, k,
					v.Sizes.First+file*v.Sizes.Step))
				if err != nil {
					t.Fatal(err)
				}
				h = b3sum(h, entry)
			}
		}
		if got := "blake3:" + hex.EncodeToString(h); got != v.Want.Ranks[rank] {
			t.Errorf("b3sum gives rank %d the digest %s, the vector has %s", rank, got, v.Want.Ranks[rank])
		}
		leaves = append(leaves, b3sum([]byte{0}, h))
	}
	if len(leaves) != 3 {
		t.Fatalf("the example has %d ranks: the tree below is for 3", len(leaves))
	}
	root := b3sum([]byte{1}, b3sum([]byte{1}, leaves[0], leaves[1]), leaves[2])
	if got := "blake3:" + hex.EncodeToString(root); got != v.Want.Root {
		t.Errorf("b3sum gives the root %s, the vector has %s", got, v.Want.Root)
	}
	doc, err := os.ReadFile("../../docs/transcript.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append(v.Want.Ranks, v.Want.Root) {
		if !strings.Contains(string(doc), want) {
			t.Errorf("docs/transcript.md does not have the example's %s", want)
		}
	}
}

// played is one run's reads, for changing one of them.
func played(rt *rapid.T) (Schedule, [][]Entry) {
	s := Schedule{Config: sampler.Config{Files: 20, SamplesPerFile: rapid.Int64Range(1, 3).Draw(rt, "n"), BatchSize: rapid.IntRange(1, 3).Draw(rt, "batch"),
		Accelerators: rapid.IntRange(1, 5).Draw(rt, "ranks"), SampleShuffle: rapid.Bool().Draw(rt, "shuffle"), Seed: 7, Mode: sampler.Numpy},
		Epochs: rapid.IntRange(1, 2).Draw(rt, "epochs"), StepsPerEpoch: 1}
	o, err := s.order()
	if err != nil {
		rt.Fatal(err)
	}
	s.StepsPerEpoch = rapid.Int64Range(1, o.Steps()).Draw(rt, "steps")
	reads := make([][]Entry, s.Accelerators)
	for e := 1; e <= s.Epochs; e++ {
		eo, err := o.Epoch(e)
		if err != nil {
			rt.Fatal(err)
		}
		for r := range reads {
			for p := range s.StepsPerEpoch * int64(s.BatchSize) {
				g, file, k := eo.Sample(r, p)
				reads[r] = append(reads[r], Entry{Epoch: uint32(e), Step: uint32(p/int64(s.BatchSize)) + 1, Sample: uint64(g),
					File: uint32(file), Position: uint32(k), Logical: uint64(100 + file)})
			}
		}
	}
	return s, reads
}

func sealed(s Schedule, reads [][]Entry) record.Transcript {
	chains := make([]*Chain, len(reads))
	for r := range reads {
		chains[r] = NewChain(s, r)
		for _, e := range reads[r] {
			chains[r].Append(e)
		}
	}
	return Seal(chains)
}

// A run that reads as scheduled has the expected transcript. Any other read, one field of one entry, has another, and so have an entry
// left out, read twice or in another place, and ranks that changed places.
func TestAnyChangeChangesTheRoot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, reads := played(rt)
		want, err := Expected(context.Background(), s, steppedSizes{100, 1})
		if err != nil {
			rt.Fatal(err)
		}
		got := sealed(s, reads)
		if got.Expected = want.Expected; !reflect.DeepEqual(got, want) {
			rt.Fatalf("the run has %+v, expected %+v", got, want)
		}
		r := rapid.IntRange(0, len(reads)-1).Draw(rt, "rank")
		i := rapid.IntRange(0, len(reads[r])-1).Draw(rt, "entry")
		e := &reads[r][i]
		field := reflect.ValueOf(e).Elem().Field(rapid.IntRange(0, reflect.TypeFor[Entry]().NumField()-1).Draw(rt, "field"))
		before := field.Uint()
		field.SetUint(before ^ 1<<rapid.IntRange(0, field.Type().Bits()-1).Draw(rt, "bit"))
		if sealed(s, reads).Root == want.Root {
			rt.Fatalf("entry %d of rank %d changed to %+v and the root did not", i, r, *e)
		}
		field.SetUint(before)

		whole := reads[r]
		reads[r] = slices.Delete(slices.Clone(whole), i, i+1)
		if sealed(s, reads).Root == want.Root {
			rt.Fatal("an entry left out does not show")
		}
		reads[r] = slices.Insert(slices.Clone(whole), i, whole[i])
		if sealed(s, reads).Root == want.Root {
			rt.Fatal("an entry read twice does not show")
		}
		if j := rapid.IntRange(0, len(whole)-1).Draw(rt, "other"); j != i {
			reads[r] = slices.Clone(whole)
			reads[r][i], reads[r][j] = whole[j], whole[i]
			if sealed(s, reads).Root == want.Root {
				rt.Fatal("two entries in each other's place do not show")
			}
		}
		reads[r] = whole
		if q := (r + 1) % len(reads); q != r {
			reads[r], reads[q] = reads[q], reads[r]
			if sealed(s, reads).Root == want.Root {
				rt.Fatal("two ranks in each other's place do not show")
			}
		}
	})
}

// Every field of the schedule is in the preamble: another schedule has another transcript even where the reads are the same.
func TestAnyScheduleHasItsOwnRoot(t *testing.T) {
	base := Schedule{Config: sampler.Config{Files: 40, SamplesPerFile: 2, BatchSize: 2, Accelerators: 2, Seed: 1, Mode: sampler.DLIO},
		Epochs: 2, StepsPerEpoch: 3}
	root := func(s Schedule) string {
		t.Helper()
		x, err := Expected(t.Context(), s, digestedSizes{steppedSizes{10, 0}})
		if err != nil {
			t.Fatal(err)
		}
		return x.Root
	}
	roots := map[string]string{root(base): "base"}
	changes := map[string]func(*Schedule){
		"Files": func(s *Schedule) { s.Files++ }, "SamplesPerFile": func(s *Schedule) { s.SamplesPerFile++ },
		"BatchSize": func(s *Schedule) { s.BatchSize++ }, "Accelerators": func(s *Schedule) { s.Accelerators++ },
		"FileShuffle": func(s *Schedule) { s.FileShuffle = true }, "SampleShuffle": func(s *Schedule) { s.SampleShuffle = true },
		"Seed": func(s *Schedule) { s.Seed++ }, "SeedChangeEpoch": func(s *Schedule) { s.SeedChangeEpoch = true },
		"Mode": func(s *Schedule) { s.Mode = sampler.Numpy }, "Epochs": func(s *Schedule) { s.Epochs++ },
		"StepsPerEpoch": func(s *Schedule) { s.StepsPerEpoch++ }, "Idle": func(s *Schedule) { s.Idle = true },
		"Evaluation": func(s *Schedule) { s.Evaluation, s.AfterEpoch, s.EpochsBetween = true, 1, 1 },
		"AfterEpoch": func(s *Schedule) { s.AfterEpoch = 1 }, "EpochsBetween": func(s *Schedule) { s.EpochsBetween = 1 },
		"Sampling": func(s *Schedule) { s.Sampling, s.Lanes = sampler.Iterative, 1 },
		"Lanes":    func(s *Schedule) { s.Sampling, s.Lanes = sampler.Iterative, 2 },
		"Buffer":   func(s *Schedule) { s.Sampling, s.Lanes, s.Buffer = sampler.Stream, 2, 1 },
		"After":    func(s *Schedule) { s.After = 5 },
		"Reads":    func(s *Schedule) { s.Reads = loader.FormFile }, "NotBefore": func(s *Schedule) { s.NotBefore = "a public value" },
	}
	for name, change := range changes {
		s := base
		change(&s)
		if other, taken := roots[root(s)]; taken {
			t.Errorf("with another %s the root is that of %s", name, other)
		}
		roots[root(s)] = name
	}
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Schedule]()) {
		if !f.Anonymous {
			fields = append(fields, f.Name)
		}
	}
	slices.Sort(fields)
	if got := slices.Sorted(maps.Keys(changes)); !slices.Equal(got, fields) {
		t.Errorf("changed %v, but the schedule has %v", got, fields)
	}
}

// digestedSizes has a digest for what is read of every sample.
type digestedSizes struct{ steppedSizes }

func (digestedSizes) ReadDigest(file, k int) ([32]byte, bool) {
	return [32]byte{byte(file), byte(k)}, true
}

// The expected transcript is the same on one core and on many.
func TestExpectedOnAnyNumberOfCores(t *testing.T) {
	s := Schedule{Config: sampler.Config{Files: 500, SamplesPerFile: 3, BatchSize: 3, Accelerators: 37, FileShuffle: true, SampleShuffle: true, Seed: 9,
		SeedChangeEpoch: true, Mode: sampler.Numpy}, Epochs: 3, StepsPerEpoch: 13}
	var roots []string
	for _, n := range []int{1, 2, 7, 64} {
		old := runtime.GOMAXPROCS(n)
		x, err := Expected(t.Context(), s, steppedSizes{10, 3})
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, x.Root)
	}
	if len(slices.Compact(roots)) != 1 {
		t.Errorf("roots %q", roots)
	}
}

func TestExpectedRefusals(t *testing.T) {
	good := Schedule{Config: sampler.Config{Files: 8, SamplesPerFile: 1, BatchSize: 2, Accelerators: 2, Mode: sampler.DLIO}, Epochs: 1, StepsPerEpoch: 2}
	for name, tc := range map[string]struct {
		change func(*Schedule)
		want   string
	}{
		"no epochs":      {func(s *Schedule) { s.Epochs = 0 }, "0 epochs"},
		"no steps":       {func(s *Schedule) { s.StepsPerEpoch = 0 }, "expected 1 to 2"},
		"too many steps": {func(s *Schedule) { s.StepsPerEpoch = 3 }, "expected 1 to 2"},
		"impossible":     {func(s *Schedule) { s.Accelerators = 9 }, "0 steps"},
		"seed": {func(s *Schedule) {
			s.Seed, s.SeedChangeEpoch, s.Mode, s.SampleShuffle = 1<<32-1, true, sampler.Numpy, true
		},
			"range of numpy"},
	} {
		s := good
		tc.change(&s)
		if _, err := Expected(t.Context(), s, steppedSizes{1, 0}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
	if _, err := Expected(t.Context(), good, steppedSizes{0, -1}); err == nil || !strings.Contains(err.Error(), "file 4 has samples of -4 bytes") &&
		!strings.Contains(err.Error(), "file 1 has samples of -1 bytes") {
		t.Errorf("a negative size: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	cancel(reason)
	if _, err := Expected(ctx, good, steppedSizes{1, 0}); !errors.Is(err, reason) {
		t.Errorf("a cancelled computation returned %v", err)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	c := NewChain(Schedule{}, 0)
	e := Entry{Epoch: 1, Step: 1, Logical: 1}
	if a := testing.AllocsPerRun(1000, func() { e.Sample++; c.Append(e) }); a != 0 {
		t.Errorf("%v allocations an entry", a)
	}
	if c.Entries() != 1001 {
		t.Errorf("%d entries", c.Entries())
	}
}

func BenchmarkAppend(b *testing.B) {
	c := NewChain(Schedule{}, 0)
	e := Entry{Epoch: 1, Step: 1, Logical: 1}
	b.ReportAllocs()
	for b.Loop() {
		e.Sample++
		c.Append(e)
	}
	appends := b.Elapsed()
	// The reference: hashing as many blocks, with no chain around them.
	var block [64]byte
	start := time.Now()
	for range b.N {
		block = blake3.Sum512(block[:])
	}
	b.ReportMetric(float64(appends)/float64(time.Since(start)), "x-plain-hash")
	if block == [64]byte{} {
		b.Fatal("nothing was hashed")
	}
}
