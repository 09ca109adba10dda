package sampler

import "fmt"

// checkSampling refuses a configuration whose sampling lacks something or has something that it does not use.
func (c Config) checkSampling() error {
	switch {
	case c.Sampling == Index && (c.Lanes != 0 || c.Buffer != 0):
		return fmt.Errorf("sampler: %d lanes, buffer %d: expected neither without a sampling that has them", c.Lanes, c.Buffer)
	case c.Sampling == Index:
	case c.Sampling != Iterative && c.Sampling != Stream:
		return fmt.Errorf("sampler: sampling %q: expected %q, %q or none", c.Sampling, Iterative, Stream)
	case c.Lanes < 1:
		return fmt.Errorf("sampler: %d lanes: expected at least 1", c.Lanes)
	case c.Buffer < 0 || c.Buffer > MaxSamples || c.Sampling == Iterative && c.Buffer != 0:
		return fmt.Errorf("sampler: shuffle buffer of %d samples: expected 0 to %d, and 0 for sampling %q", c.Buffer, int64(MaxSamples), Iterative)
	}
	if c.After < 0 || c.After > MaxSamples {
		return fmt.Errorf("sampler: a list of %d before the files: expected 0 to %d", c.After, int64(MaxSamples))
	}
	return nil
}

// iterative maps a position in the order in which batches are consumed to one of the rank's share.
//
// A share of S batches is cut into W runs, one for each thread: the first S mod W have one batch more than the others. The
// threads' batches are consumed in turns, so that batch b is number b div W of thread b mod W. (DLIO cuts by samples, gives what is
// left to the first thread alone, and fills up each thread's last batch with samples that were never read.)
func (e *EpochOrder) iterative(pos int64) int64 {
	b, i := pos/e.batch, pos%e.batch
	thread, turn := b%e.lanes, b/e.lanes
	q, more := e.steps/e.lanes, e.steps%e.lanes
	return (thread*q+min(thread, more)+turn)*e.batch + i
}
