package datagen

import (
	"context"
	"io"
)

// Make writes the bytes of entry i to out, front to back, from the recipe alone. A build that cannot make such files refuses (Available). It
// returns ctx's cause when it is cancelled.
func (r Recipe) Make(ctx context.Context, i int, out io.Writer) error {
	if err := r.Available(); err != nil {
		return err
	}
	_, err := (&generator{r: r}).newWorker().produce(ctx, r.Entry(i), out)
	return err
}
