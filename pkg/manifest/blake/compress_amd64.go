package blake

import (
	"golang.org/x/sys/cpu"
	"lukechampine.com/blake3/guts"
)

//go:generate go run gen.go compress_amd64.s

// compress16 compresses 16 inputs of the same number of blocks, stride bytes apart, and stores their chaining values. The counter of
// input i is high<<32 | low + step*i, which must not carry. first and last are flags of the first and of the last block only.
//
//go:noescape
func compress16(out *[lanes]CV, in *byte, stride, blocks uintptr, key *[8]uint32, low, high, step, flags, first, last uint32)

// wide reports whether compress16 can be called: vectors of 16 words.
func wide() bool { return cpu.X86.HasAVX512F }

// chunks16 computes the chaining values of the 16 chunks in p, the first of which has that number in its file. A number whose
// lower 32 bits carry within them comes with chunks only that nobody looks at: subtrees begin at multiples of their size.
func chunks16(out *[lanes]CV, p *[lanes * chunkSize]byte, number uint64) {
	compress16(out, &p[0], chunkSize, chunkSize/guts.BlockSize, &guts.IV, uint32(number), uint32(number>>32), 1,
		0, guts.FlagChunkStart, guts.FlagChunkEnd)
}

// parents16 computes the chaining values of 16 parents from those of their children, which lie in pairs.
func parents16(out *[lanes]CV, in *[2 * lanes]CV) {
	compress16(out, &in[0][0], guts.BlockSize, 1, &guts.IV, 0, 0, 0, guts.FlagParent, 0, 0)
}

// blocks16 computes the digests of 16 inputs of one block.
func blocks16(out *[lanes]CV, in *[lanes][guts.BlockSize]byte) {
	compress16(out, &in[0][0], guts.BlockSize, 1, &guts.IV, 0, 0, 0, 0, guts.FlagChunkStart, guts.FlagChunkEnd|guts.FlagRoot)
}
