package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/benchpin/benchpin/pkg/bench/loader"
	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/zeebo/blake3"
)

// The versions of the transcript's form (docs/transcript.md). Another form has another version, so that the digests of those before
// stay what they are.
const (
	// TranscriptVersion is the form of training whose samples are read by number.
	TranscriptVersion = 1
	// TranscriptVersion2 is the form of everything else: evaluation, other samplings, and loaders that read nothing. Its preamble says more.
	TranscriptVersion2 = 2
	// TranscriptVersion3 is the form of runs whose bytes are hashed while they run: entries hold the digest of what was read too.
	TranscriptVersion3 = 3
	// TranscriptVersion4 is the form of runs whose order was drawn with a public value: its preamble has the value's digest. Entries hold the
	// digest of what was read where bytes are hashed while it runs.
	TranscriptVersion4 = 4
)

// EntrySize is the length of an encoded entry in bytes. With the 32 bytes of the chain before it an entry is exactly one block of
// BLAKE3, which makes an entry cost one compression.
const EntrySize = 32

// Entry is one sample that a rank read, as the transcript counts it.
type Entry struct {
	// Epoch and Step are counted from 1; the samples of one step follow each other in batch order.
	Epoch, Step uint32
	// Sample is the sample's number in the epoch's order of the data set, 0 to T'-1.
	Sample uint64
	// File is the index of the file in the data set, Position the sample's position in that file, both from 0.
	File, Position uint32
	// Logical is the size of the sample in bytes: its share of the array, without headers or labels.
	Logical uint64
}

// Encode returns the entry's bytes: the fields in order, big-endian.
func (e Entry) Encode() [EntrySize]byte {
	var b [EntrySize]byte
	e.encode(&b)
	return b
}

func (e *Entry) encode(b *[EntrySize]byte) {
	binary.BigEndian.PutUint32(b[0:], e.Epoch)
	binary.BigEndian.PutUint32(b[4:], e.Step)
	binary.BigEndian.PutUint64(b[8:], e.Sample)
	binary.BigEndian.PutUint32(b[16:], e.File)
	binary.BigEndian.PutUint32(b[20:], e.Position)
	binary.BigEndian.PutUint64(b[24:], e.Logical)
}

// Schedule is what a transcript is a transcript of: the order of samples, for so many epochs of so many steps.
type Schedule struct {
	sampler.Config
	// Epochs is the number of epochs, 1 to 2^31-1.
	Epochs int
	// StepsPerEpoch is the number of steps that each epoch runs, 1 to the order's steps (fewer where total_training_steps caps it).
	StepsPerEpoch int64
	// Idle: samples are handed out and nothing is read, so that each has 0 bytes.
	Idle bool
	// Evaluation: the passes over the files for evaluation, one after epoch AfterEpoch and then after every EpochsBetween-th.
	Evaluation                bool
	AfterEpoch, EpochsBetween int
	// Reads says of which bytes each entry holds the digest too; "" where it holds none.
	Reads loader.Form
	// NotBefore is the public value that the order was drawn with, "" for none. Config has the seed that came of it.
	NotBefore string
}

// due says whether samples are read in, or after, an epoch.
func (s Schedule) due(epoch int) bool {
	return !s.Evaluation || epoch >= s.AfterEpoch && (epoch-s.AfterEpoch)%s.EpochsBetween == 0
}

// version is the form of the schedule's transcript.
func (s Schedule) version() int64 {
	if s.NotBefore != "" {
		return TranscriptVersion4
	}
	if s.Reads != "" {
		return TranscriptVersion3
	}
	if s.Idle || s.Evaluation || s.AfterEpoch != 0 || s.EpochsBetween != 0 || s.Sampling != sampler.Index || s.After != 0 {
		return TranscriptVersion2
	}
	return TranscriptVersion
}

// order checks the schedule and returns its order.
func (s Schedule) order() (*sampler.Order, error) {
	o, err := sampler.New(s.Config)
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	if s.Epochs < 1 || s.Epochs > math.MaxInt32 {
		return nil, fmt.Errorf("transcript: %d epochs: expected 1 to %d", s.Epochs, math.MaxInt32)
	}
	if s.StepsPerEpoch < 1 || s.StepsPerEpoch > o.Steps() || s.StepsPerEpoch > math.MaxUint32 {
		return nil, fmt.Errorf("transcript: %d steps an epoch: expected 1 to %d", s.StepsPerEpoch, min(o.Steps(), math.MaxUint32))
	}
	if s.Evaluation && (s.AfterEpoch < 1 || s.EpochsBetween < 1) {
		return nil, fmt.Errorf("transcript: evaluation after epoch %d and every %d: expected at least 1 of both", s.AfterEpoch, s.EpochsBetween)
	}
	return o, nil
}

// preamble is the text whose digest starts the chain of one rank. It is text so that anyone can hash it with b3sum.
func (s Schedule) preamble(rank int) []byte {
	b := make([]byte, 0, 320)
	line := func(name, value string) {
		b = append(b, name...)
		b = append(b, ' ')
		b = append(b, value...)
		b = append(b, '\n')
	}
	number := func(name string, v int64) { line(name, strconv.FormatInt(v, 10)) }
	number("benchpin transcript", s.version())
	number("accelerators", int64(s.Accelerators))
	number("epochs", int64(s.Epochs))
	number("steps_per_epoch", s.StepsPerEpoch)
	number("batch_size", int64(s.BatchSize))
	number("files", s.Files)
	number("samples_per_file", s.SamplesPerFile)
	line("order", s.Mode)
	number("order_seed", s.Seed)
	line("seed_change_epoch", strconv.FormatBool(s.SeedChangeEpoch))
	line("file_shuffle", strconv.FormatBool(s.FileShuffle))
	line("sample_shuffle", strconv.FormatBool(s.SampleShuffle))
	if s.version() >= TranscriptVersion2 {
		part, sampling := "training", s.Sampling
		if s.Evaluation {
			part = "evaluation"
		}
		if sampling == sampler.Index {
			sampling = "index"
		}
		line("part", part)
		number("after_epoch", int64(s.AfterEpoch))
		number("epochs_between", int64(s.EpochsBetween))
		line("sampling", string(sampling))
		number("lanes", int64(s.Lanes))
		number("shuffle_buffer", s.Buffer)
		number("shuffled_before", s.After)
		line("idle", strconv.FormatBool(s.Idle))
	}
	if s.version() >= TranscriptVersion3 {
		line("reads", cmp.Or(string(s.Reads), readsUnhashed))
	}
	if s.version() == TranscriptVersion4 {
		line("not_before", digestText(blake3.Sum256([]byte(s.NotBefore))))
	}
	number("rank", int64(rank))
	return b
}

// Chain is the transcript of one rank: h(i+1) = BLAKE3(h(i) || entry i), from the digest of the schedule and the rank. It is used by
// one goroutine at a time.
type Chain struct {
	// block is the chain's digest followed by room for an entry and the digest of what was read, so that appending copies nothing.
	block   [32 + EntrySize + 32]byte
	entries int64
}

// NewChain starts the chain of a rank.
func NewChain(s Schedule, rank int) *Chain {
	c := new(Chain)
	h := blake3.Sum256(s.preamble(rank))
	copy(c.block[:32], h[:])
	return c
}

// Append adds one entry. It allocates nothing.
func (c *Chain) Append(e Entry) {
	e.encode((*[EntrySize]byte)(c.block[32:]))
	h := blake3.Sum256(c.block[:32+EntrySize])
	copy(c.block[:32], h[:])
	c.entries++
}

// AppendRead adds one entry with the digest of what was read (version 3). It allocates nothing.
func (c *Chain) AppendRead(e Entry, read [32]byte) {
	e.encode((*[EntrySize]byte)(c.block[32:]))
	copy(c.block[32+EntrySize:], read[:])
	h := blake3.Sum256(c.block[:])
	copy(c.block[:32], h[:])
	c.entries++
}

// Sum is the chain's digest so far.
func (c *Chain) Sum() [32]byte { return [32]byte(c.block[:32]) }

// Entries is the number of entries so far.
func (c *Chain) Entries() int64 { return c.entries }

// Seal makes the transcript of a run from the chains of all ranks, in rank order. Expected is left empty: it is not the run's to say.
func Seal(chains []*Chain) record.Transcript {
	// Recomputable: the digests follow from workload and plan. That a run came to the same ones is what the host says.
	t := record.Transcript{Class: record.Recomputable, Ranks: make([]string, len(chains))}
	var tree manifest.Tree
	for i, c := range chains {
		sum := c.Sum()
		tree.Add(sum[:])
		t.Ranks[i] = digestText(sum)
		t.Entries += record.Int(c.Entries())
	}
	t.Root = digestText(tree.Root())
	return t
}

// SampleSizes tells the logical size of a sample of each file, in bytes. Every sample of one file has the same size.
type SampleSizes interface {
	SampleBytes(file int) int64
}

// ReadDigests tells the digest of what is read of a sample, false where it is not known. SampleSizes of a schedule of version 3 must have it.
type ReadDigests interface {
	ReadDigest(file, position int) ([32]byte, bool)
}

// Expected computes the transcript that a run of the schedule must have, without any data: Root and Expected are the same. It works
// on all cores, one rank at a time each, and returns ctx's error when it is cancelled.
func Expected(ctx context.Context, s Schedule, sizes SampleSizes) (record.Transcript, error) {
	if s.Epochs == 0 && s.Files == 0 {
		return emptyTranscript(s), ctx.Err()
	}
	o, err := s.order()
	if err != nil {
		return record.Transcript{}, err
	}
	chains := make([]*Chain, s.Accelerators)
	for r := range chains {
		chains[r] = NewChain(s, r)
	}
	for e := 1; e <= s.Epochs; e++ {
		if !s.due(e) {
			continue
		}
		eo, err := o.Epoch(e)
		if err != nil {
			return record.Transcript{}, fmt.Errorf("transcript: %w", err)
		}
		if err := expectEpoch(ctx, s, eo, uint32(e), sizes, chains); err != nil {
			return record.Transcript{}, err
		}
	}
	t := Seal(chains)
	t.Expected = t.Root
	return t, nil
}

// emptyTranscript is that of a run that reads no samples: a chain without entries for every rank.
func emptyTranscript(s Schedule) record.Transcript {
	chains := make([]*Chain, s.Accelerators)
	for r := range chains {
		chains[r] = NewChain(s, r)
	}
	t := Seal(chains)
	t.Expected = t.Root
	return t
}

// expectEpoch appends one epoch to every chain, sharing the ranks among all cores.
func expectEpoch(ctx context.Context, s Schedule, eo *sampler.EpochOrder, epoch uint32, sizes SampleSizes, chains []*Chain) error {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		errs = make([]error, min(runtime.GOMAXPROCS(0), len(chains)))
	)
	together := abreast(s, len(chains), len(errs))
	for w := range errs {
		wg.Go(func() {
			for {
				first := together * (int(next.Add(1)) - 1)
				if first >= len(chains) || errs[w] != nil {
					return
				}
				if group := chains[first:min(first+together, len(chains))]; len(group) > 1 {
					errs[w] = expectRanks(ctx, s, eo, epoch, first, sizes, group)
				} else {
					errs[w] = expectRank(ctx, s, eo, epoch, first, sizes, group[0])
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// expectRank appends one epoch of one rank.
func expectRank(ctx context.Context, s Schedule, eo *sampler.EpochOrder, epoch uint32, rank int, sizes SampleSizes, c *Chain) error {
	reads, known := sizes.(ReadDigests)
	if s.Reads != "" && !known {
		return fmt.Errorf("transcript: expected the digests of what is read (%s), found none", s.Reads)
	}
	pos := int64(0)
	for step := int64(1); step <= s.StepsPerEpoch; step++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("transcript: stopped at epoch %d, rank %d: %w", epoch, rank, context.Cause(ctx))
		}
		for range s.BatchSize {
			entry, err := expectedEntry(s, eo, epoch, uint32(step), rank, pos, sizes)
			if err != nil {
				return err
			}
			pos++
			if s.Reads == "" {
				c.Append(entry)
				continue
			}
			digest, ok := reads.ReadDigest(int(entry.File), int(entry.Position))
			if !ok {
				return fmt.Errorf("transcript: the digest of what is read of sample %d of file %d is not known", entry.Position, entry.File)
			}
			c.AppendRead(entry, digest)
		}
	}
	return nil
}

// digestText writes a digest as records do.
func digestText(h [32]byte) string { return "blake3:" + hex.EncodeToString(h[:]) }
