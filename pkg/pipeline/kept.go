package pipeline

import (
	"unsafe"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// keptOf is the memory for what a run keeps of so many entries of a manifest, beside the order of samples: the number of each, what is known of
// it when the file was verified or looked at, twice where both are done, and the digest where one is compared in the run. named are the bytes for paths
// and sizes, where no recipe says them.
func keptOf(w *workload.Workload, entries int, named int64) int64 {
	each := int64(unsafe.Sizeof(int32(0)))
	identity := int64(unsafe.Sizeof(store.Info{}))
	switch w.Benchpin.Verify {
	case workload.VerifyBefore:
		each += identity
	case workload.VerifyInline:
		each += identity + int64(unsafe.Sizeof([32]byte{}))
	case workload.VerifyAfter, workload.VerifySample:
		each += 2 * identity
	}
	return int64(entries)*each + named
}

// named is the memory for paths and sizes that are kept of both parts.
func (d *pinnedFiles) named() int64 {
	var n int64
	for _, p := range []pinnedPart{d.pinnedPart, d.valid} {
		n += int64(len(p.sizes)) * int64(unsafe.Sizeof(int64(0)))
		for _, path := range p.paths {
			n += int64(unsafe.Sizeof("")) + int64(len(path)+15)&^15 // the allocator rounds up
		}
	}
	return n
}
