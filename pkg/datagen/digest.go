package datagen

import (
	"context"
	"io"
)

// Digest computes the BLAKE3 digest of file i from the recipe alone, without any storage: what an auditor compares with the entry of
// a manifest. It takes the time to produce and hash the file on one core, and returns ctx's cause when it is cancelled.
func (r Recipe) Digest(ctx context.Context, i int) ([32]byte, error) {
	w := (&generator{r: r}).newWorker()
	return w.produce(ctx, r.File(i), io.Discard)
}
