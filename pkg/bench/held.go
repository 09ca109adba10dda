package bench

import (
	"fmt"
	"math/bits"

	"github.com/benchpin/benchpin/pkg/bench/loader"
)

const (
	// captureBytes is the memory of what says whose bytes are held, for a sample.
	captureBytes = 320
	// mostHeld bounds what a plan may hold: more is no machine's memory, and sums of it stay exact.
	mostHeld = 1 << 48
)

// heldMemory is the memory of a run that hashes what it reads: the bytes of the batches in flight and of those that are not hashed yet, their
// accounts, and the digests that are kept. 0 where nothing is hashed. Bytes are as exact as the plan's bytes are.
func (p *Plan) heldMemory(ds Dataset) (int64, error) {
	form := p.Inline()
	if form == "" || form == loader.FormNone {
		return 0, nil
	}
	held, err := p.heldBytes(ds, p.order.Config().Files, int64(p.BatchSize), int64(p.StepsPerEpoch), p.order.Config().Buffer)
	if err != nil {
		return 0, err
	}
	files := int64(ds.Files())
	if v := p.eval; v != nil {
		eval := evaluationOf(ds)
		more, err := p.heldBytes(eval, v.order.Config().Files, int64(v.batch), v.steps, v.order.Config().Buffer)
		if err != nil {
			return 0, err
		}
		held += more
		files += int64(eval.Files())
	}
	if form != loader.FormFile {
		files *= int64(p.SamplesPerFile)
	}
	return held + files*(digestBytes+4), nil
}

// blockBytes is the size of the blocks that hold what was read: of read buffers, or less where streams ask for smaller pieces.
func (p *Plan) blockBytes() int {
	if p.reading.streamed == nil {
		return p.BufferBytes
	}
	const page = 4096
	return min(p.BufferBytes, (p.reading.transfer+page-1)/page*page)
}

// heldBytes is what all accelerators hold at most of one part of the data set.
func (p *Plan) heldBytes(ds Dataset, files, batch, steps, buffer int64) (int64, error) {
	rd := &p.reading
	var sample int64
	cost := rd.cost(ds)
	if rd.streamed != nil {
		// Pieces are asked for, and each is held in blocks of its own.
		piece, block := int64(rd.transfer), int64(p.blockBytes())
		up := func(n int64) int64 { return (n + block - 1) / block * block }
		cost = func(i int) int64 {
			size := ds.Size(i)
			return (size/piece*up(piece) + up(size%piece) + rd.samples - 1) / rd.samples
		}
	}
	for i := range files {
		sample = max(sample, cost(int(i)))
	}
	// A batch is held from its first read on, as long as the loader has it, and then until it is hashed.
	batches := rd.slots(steps) + hashBacklog + 1
	samples := batches * batch
	each := int64(p.blockBytes()) * batches * rd.workers()
	if rd.streamed != nil {
		// A stream's pieces hold several samples, and what is read first fills the shuffle buffer.
		samples += max(1, buffer) + 2*rd.workers()
		each = 2 * rd.workers() * (int64(rd.transfer) + int64(p.blockBytes()))
	}
	hi, lo := bits.Mul64(uint64(samples), uint64(sample+captureBytes+loader.AccountBytes))
	if r := uint64(p.Accelerators); hi > 0 || lo > mostHeld || lo+uint64(each) > mostHeld/r {
		return 0, fmt.Errorf("%w: benchpin.verify is inline: %s in flight of %d samples of up to %d bytes each are held for every one of %s until they are "+
			"hashed, more than any memory; lower reader.prefetch_size, reader.read_threads or reader.batch_size, or set benchpin.verify=before",
			ErrImpossible, fmt.Sprintf("%d batches", batches), batch, sample, counted(p.Accelerators, "accelerator"))
	}
	return int64(p.Accelerators) * (int64(lo) + each), nil
}
