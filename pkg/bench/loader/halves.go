package loader

import "context"

// Halved is a Loader whose Next comes in two halves. Where hundreds of accelerators share a few cores, all of them take their batches first,
// which begins their compute time, and only then make work for readers: else the last one would wait for readers of the first ones.
type Halved interface {
	// Take is Next but for what it does for the batches to come: the place that the delivered batch leaves behind is not filled.
	Take(ctx context.Context) (*Batch, error)
	// Refill fills it. It must be called once after each Take that returned a batch, before the next one. It does not wait for readers.
	Refill()
}

// InHalves is the loader itself where it is Halved. Any other has all of Next in the first half.
func InHalves(l Loader) Halved {
	if h, ok := l.(Halved); ok {
		return h
	}
	return undivided{l}
}

// undivided is a loader whose Next has one part.
type undivided struct{ Loader }

func (u undivided) Take(ctx context.Context) (*Batch, error) { return u.Next(ctx) }
func (undivided) Refill()                                    {}

// next is both halves.
func next(ctx context.Context, l Halved) (*Batch, error) {
	b, err := l.Take(ctx)
	if err == nil {
		l.Refill()
	}
	return b, err
}
