// Package loader is the room of the data loaders: it reads the samples of one accelerator ahead of the training loop in
// the way a framework's data loader does, one file for each loader emulated, and hands over whole batches in order.
// It never decides which sample comes next (that is the sampler's) and never sleeps for compute. A batch is an account of samples,
// because that is all a simulated accelerator needs: what was read is kept only where it is to be hashed (Source.Capture).
package loader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/benchpin/benchpin/pkg/store"
)

// Sample is the account of one sample that a worker read, written by the worker from what it really read.
type Sample struct {
	// Index is the global sample number, File the data set's file index, Position the sample's place in the file.
	Index, File, Position int64
	// Logical is the size of the sample in bytes; Asked is what was asked of the store to get it.
	Logical, Asked int64
}

// AccountBytes is the memory of one Sample.
const AccountBytes = 40

// Batch is one delivered batch. It belongs to the loader: it may be read until the next call of Next and not after.
type Batch struct {
	// Samples are in the order of the sampler.
	Samples []Sample
	// Open, Read and Decode are the time that the worker spent in opening and closing files, in reading them, and in everything
	// else that the format does; Preprocess is what it slept for preprocessing; each summed over the batch. Waiting for a buffer is in none
	// of them.
	Open, Read, Decode, Preprocess time.Duration
	// Begun is when the first worker began to make the batch, and Ready when all of it was there, both since Source.Base; 0 where nobody
	// makes batches or there is no Base. A batch of a stream is begun when the buffer of samples begins to be emptied for it.
	Begun, Ready time.Duration
	// Ahead are bytes that were asked of the store while the batch was made and belong to none of its samples alone, because the
	// loader reads files as streams.
	Ahead int64
	// Reads are what the samples were read as, one for each, and Holds what was kept for that while the batch was made, some of it maybe
	// for samples of later batches. Both are nil without Source.Capture. Whoever hashes them may take the holds, and the list of reads in
	// exchange for another one of its length.
	Reads []Read
	Holds []*Hold
}

// newBatch makes a batch of so many samples for so many goroutines that share it.
func (s *Source) newBatch(samples, threads int) Batch {
	b := Batch{Samples: make([]Sample, samples)}
	if s.Capture != nil {
		b.Reads, b.Holds = make([]Read, samples), make([]*Hold, threads)
	}
	return b
}

// Asked is the number of bytes that were asked of the store for the batch.
func (b *Batch) Asked() int64 {
	n := b.Ahead
	for i := range b.Samples {
		n += b.Samples[i].Asked
	}
	return n
}

// Loader reads the samples of one accelerator. Its methods are for one goroutine.
type Loader interface {
	// Start begins epoch (counted from 1) with empty queues and returns at once. It must not be called before the last batch of the
	// epoch before was delivered.
	Start(epoch int, order Order)
	// Next waits for the next batch in order. It returns io.EOF after the last batch of the epoch, the error of whoever read the batch,
	// or the cause of ctx.
	Next(ctx context.Context) (*Batch, error)
	// Close tells the loader's goroutines to end. It does not wait for them.
	Close()
	// Wait returns when all of them have ended after Close. A read that hangs in the store delays it.
	Wait()
}

// Order says which sample stands at position pos of an accelerator's epoch, pos counted from 0; all three are -1 where there
// is none. It must be safe for concurrent use, and a pure function (bench/sampler).
type Order interface {
	Sample(rank int, pos int64) (sample, file, position int64)
}

// Buffers is a pool of equal read buffers that all workers of a run share. A worker holds a buffer only while it reads, so
// the memory of a run is bounded by the reads that are under way, whatever the number of workers. The buffer that was put
// back last is handed out first, because it is still in the processor's caches.
type Buffers struct {
	size   int
	tokens chan struct{}

	mu   sync.Mutex
	free [][]byte
	made int
}

// NewBuffers makes a pool of at most limit buffers of size bytes each, aligned for direct reads. Buffers are made when they are first
// needed.
func NewBuffers(size, limit int) (*Buffers, error) {
	if size <= 0 || limit <= 0 {
		return nil, fmt.Errorf("read buffers: expected a positive size and number, found %d bytes, %d buffers", size, limit)
	}
	return &Buffers{size: size, tokens: make(chan struct{}, limit)}, nil
}

// Get takes a buffer, and waits while all are in use. It returns the cause of ctx when ctx ends first.
func (b *Buffers) Get(ctx context.Context) ([]byte, error) {
	select {
	case b.tokens <- struct{}{}:
	default:
		select {
		case b.tokens <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	b.mu.Lock()
	if n := len(b.free); n > 0 {
		buf := b.free[n-1]
		b.free = b.free[:n-1]
		b.mu.Unlock()
		return buf, nil
	}
	b.made++
	b.mu.Unlock()
	return store.AlignedBuffer(b.size), nil
}

// Put gives a buffer back that Get returned. It must be called once for each Get.
func (b *Buffers) Put(buf []byte) {
	b.mu.Lock()
	b.free = append(b.free, buf)
	b.mu.Unlock()
	<-b.tokens
}

// Made is the number of buffers that were made so far: the most reads that were ever under way at once.
func (b *Buffers) Made() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.made
}
