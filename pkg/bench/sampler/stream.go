package sampler

// streams is what an EpochOrder of sampling Stream needs beside the list of files.
//
// Let F' be the files in use, n the samples of each, R the ranks, W the lanes, N the samples that a rank reads.
//
// With F' >= R every rank has files of its own: those at the places r, r+R, r+2R, ... of the list, and N = steps x batch. Otherwise
// every rank reads all files and keeps every R-th sample of what leaves the buffer, from the r-th, and N = T'.
//
// A rank takes its files W at a time, in order, and one sample from each in turn, until all W are at their end. (All files have
// the same number of samples, so they end together.) The first N samples of this are what it reads.
//
// Where F' is no multiple of R, the ranks with one file less may have fewer than N samples. They go on with those that the ranks with one
// file more have left over, rank by rank. (DLIO begins its own files again instead, so that samples are read twice and others never.)
//
// The samples go through a buffer of M places. Before sample o leaves it, counted from 0, it has taken in the first min(N, M+o)
// samples read; the place that is emptied is drawn from a RandomState with the epoch's seed, the same for all ranks, and the next
// sample read goes there, or the one from the last place when all were read.
type streams struct {
	// whole is true where all ranks read all files.
	whole bool
	// reads is N; per and more are the files of each rank and the number of ranks that have one more.
	reads, per, more int64
	// lack is what each rank with fewer files lacks, spare what each of the others has left.
	lack, spare int64
	// perm is the number of the read that leaves the buffer at each place; nil where nothing is shuffled.
	perm   []uint32
	buffer int64
	seed   uint32
}

func (o *Order) buffered() bool {
	return o.c.Sampling == Stream && o.c.SampleShuffle && o.c.Buffer > 1
}

// Reads is the number of samples that each rank reads in an epoch: more than it consumes where sampling Stream has fewer files than
// ranks.
func (o *Order) Reads() int64 {
	if o.c.Sampling == Stream && o.files < int64(o.c.Accelerators) {
		return o.samples
	}
	return o.samples / int64(o.c.Accelerators)
}

// ReadAhead is the number of samples that a rank must have read before it can consume the first count of its share.
func (o *Order) ReadAhead(rank int, count int64) int64 {
	if o.c.Sampling != Stream || count == 0 {
		return count
	}
	last := count - 1
	if o.files < int64(o.c.Accelerators) {
		last = last*int64(o.c.Accelerators) + int64(rank)
	}
	ahead := int64(1)
	if o.buffered() {
		ahead = o.c.Buffer
	}
	return min(o.Reads(), last+ahead)
}

// stream fills in what sampling Stream needs.
func (o *Order) stream(e *EpochOrder, epoch int) {
	r, n := int64(o.c.Accelerators), o.c.SamplesPerFile
	s := streams{whole: o.files < r, reads: o.Reads(), buffer: 1, seed: uint32(o.seed(epoch))}
	if s.whole {
		s.per = o.files
	} else {
		s.per, s.more = o.files/r, o.files%r
		s.lack = max(0, s.reads-s.per*n)
		s.spare = (s.per+1)*n - s.reads
	}
	if o.buffered() {
		s.buffer = o.c.Buffer
		s.perm = make([]uint32, 0, s.reads)
		places := make([]uint32, 0, min(s.buffer, s.reads))
		d := Shuffler{left: s.reads, buffer: s.buffer}
		d.g.seed(s.seed)
		next := int64(0)
		for ; next < min(s.buffer, s.reads); next++ {
			places = append(places, uint32(next))
		}
		for range s.reads {
			at := d.Place()
			s.perm = append(s.perm, places[at])
			if next < s.reads {
				places[at] = uint32(next)
				next++
			} else {
				places[at] = places[len(places)-1]
				places = places[:len(places)-1]
			}
		}
	}
	e.st = s
}

// Reads is the number of samples that each rank reads in the epoch, in the order of Read.
func (e *EpochOrder) Reads() int64 {
	if e.sampling != Stream {
		return e.share
	}
	return e.st.reads
}

// Stride says which samples leave a rank's buffer for the rank itself: those whose number is rank modulo the stride. It is 1 where
// every sample that a rank reads is its own.
func (e *EpochOrder) Stride() int64 {
	if e.sampling == Stream && e.st.whole {
		return int64(e.ranks)
	}
	return 1
}

// delivered is the read that a rank consumes at pos.
func (e *EpochOrder) delivered(rank int, pos int64) int64 {
	if e.st.whole {
		pos = pos*int64(e.ranks) + int64(rank)
	}
	if e.st.perm != nil {
		return int64(e.st.perm[pos])
	}
	return pos
}

// Read returns the sample that a rank reads as its i-th in the epoch, from 0, and the lane that reads it. All four are -1 for a
// read that does not exist, and where the sampling is not Stream.
func (e *EpochOrder) Read(rank int, i int64) (sample, file, k, lane int64) {
	if e.sampling != Stream || rank < 0 || rank >= e.ranks || i < 0 || i >= e.st.reads {
		return -1, -1, -1, -1
	}
	s := &e.st
	stride, files := int64(e.ranks), s.per
	r := int64(rank)
	if s.whole {
		stride, r = 1, 0
	} else if r < s.more {
		files++
	} else if own := files * e.n; i >= own {
		t := (r-s.more)*s.lack + i - own
		lane = i % e.lanes
		r, i, files = t/s.spare, s.reads+t%s.spare, files+1
		sample, file, k, _ = e.interleaved(r, i, files, stride)
		return sample, file, k, lane
	}
	return e.interleaved(r, i, files, stride)
}

// interleaved is sample i of the files at the places r, r+stride, ... of the list, W at a time.
func (e *EpochOrder) interleaved(r, i, files, stride int64) (sample, file, k, lane int64) {
	group := e.lanes * e.n
	first := i / group * e.lanes
	side := min(e.lanes, files-first)
	j := i % group
	lane, k = j%side, j/side
	file = r + stride*(first+lane)
	sample = file*e.n + k
	if e.files != nil {
		file = int64(e.files[file])
	}
	return sample, file, k, lane
}

// Shuffler draws the places of a shuffle buffer, one for each sample that leaves it. It is for one goroutine.
type Shuffler struct {
	g            mt
	left, buffer int64
}

// Shuffle begins the draws of the epoch's buffer: those that made the order.
func (e *EpochOrder) Shuffle() *Shuffler {
	d := new(Shuffler)
	d.Reset(e)
	return d
}

// Reset begins the draws of another epoch with the memory at hand.
func (d *Shuffler) Reset(e *EpochOrder) {
	d.left, d.buffer = e.Reads(), max(1, e.st.buffer)
	if d.buffer > 1 {
		d.g.seed(e.st.seed)
	}
}

// Buffer is the number of places.
func (d *Shuffler) Buffer() int64 { return d.buffer }

// Place is the place that the next sample leaves, from 0: below the number of places, and below the number of samples that are left.
func (d *Shuffler) Place() int64 {
	most := min(d.left, d.buffer) - 1
	d.left--
	if most < 1 {
		return 0
	}
	return int64(d.g.interval(uint32(most)))
}
