package bench

import (
	"context"
	"fmt"

	"github.com/benchpin/benchpin/pkg/bench/sampler"
	"github.com/benchpin/benchpin/pkg/manifest/blake"
)

// abreast is how many chains are computed side by side on each of so many cores: a link of a chain needs the one before, but chains do not need
// each other. 1 where there are too few of them, and where links are of more than a block.
func abreast(s Schedule, ranks, cores int) int {
	if s.Reads != "" {
		return 1
	}
	return max(1, min(blake.Lanes, (ranks+cores-1)/cores))
}

// expectRanks appends one epoch of the ranks from first on, as expectRank does for each: a sample of every rank, then the next of every rank.
func expectRanks(ctx context.Context, s Schedule, eo *sampler.EpochOrder, epoch uint32, first int, sizes SampleSizes, chains []*Chain) error {
	var blocks [blake.Lanes][blake.BlockSize]byte
	var digests [blake.Lanes][32]byte
	for i, c := range chains {
		digests[i] = c.Sum()
	}
	pos := int64(0)
	for step := int64(1); step <= s.StepsPerEpoch; step++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("transcript: stopped at epoch %d, rank %d: %w", epoch, first, context.Cause(ctx))
		}
		for range s.BatchSize {
			for i := range chains {
				entry, err := expectedEntry(s, eo, epoch, uint32(step), first+i, pos, sizes)
				if err != nil {
					return err
				}
				*(*[32]byte)(blocks[i][:]) = digests[i]
				entry.encode((*[EntrySize]byte)(blocks[i][32:]))
			}
			blake.Blocks(&digests, &blocks, len(chains))
			pos++
		}
	}
	for i, c := range chains {
		copy(c.block[:32], digests[i][:])
		c.entries += pos
	}
	return nil
}

// expectedEntry is the entry of a position.
func expectedEntry(s Schedule, eo *sampler.EpochOrder, epoch, step uint32, rank int, pos int64, sizes SampleSizes) (Entry, error) {
	g, file, k := eo.Sample(rank, pos)
	size := int64(0)
	if !s.Idle {
		size = sizes.SampleBytes(int(file))
	}
	if size < 0 {
		return Entry{}, fmt.Errorf("transcript: file %d has samples of %d bytes: expected a size", file, size)
	}
	return Entry{Epoch: epoch, Step: step, Sample: uint64(g), File: uint32(file), Position: uint32(k), Logical: uint64(size)}, nil
}
