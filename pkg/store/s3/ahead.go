package s3

import (
	"context"
	"fmt"
	"sync"
)

// AheadPart is how many bytes of an object one request brings where parts are fetched ahead (Options.Ahead).
const AheadPart = 8 << 20

// ahead fetches the parts of an object behind the first, several at once, and hands their bytes out in order.
type ahead struct {
	f     *object
	parts []fetched // of the object, by number; the first is not fetched here
	room  chan struct{}
	stop  context.CancelFunc
	ctx   context.Context
	next  int // part that is read, or will be
}

// fetched is one part: done is closed when it is there, or failed.
type fetched struct {
	done chan struct{}
	buf  *[]byte
	err  error
}

// fetchAhead begins to fetch.
func (f *object) fetchAhead() *ahead {
	n := int((f.info.Size + AheadPart - 1) / AheadPart)
	a := &ahead{f: f, parts: make([]fetched, n), room: make(chan struct{}, f.b.o.AheadParts), next: 1}
	for i := range a.parts {
		a.parts[i].done = make(chan struct{})
	}
	a.ctx, a.stop = context.WithCancel(f.b.ctx)
	go a.run()
	return a
}

// run fetches one part after the other, as many at once as may be, and no more ahead than there is room for.
func (a *ahead) run() {
	var under sync.WaitGroup
	busy := make(chan struct{}, a.f.b.o.Ahead)
	for k := 1; k < len(a.parts); k++ {
		for _, to := range []chan struct{}{a.room, busy} {
			select {
			case to <- struct{}{}:
			case <-a.ctx.Done():
				for ; k < len(a.parts); k++ {
					a.parts[k].err = context.Cause(a.ctx)
					close(a.parts[k].done)
				}
				under.Wait()
				return
			}
		}
		under.Go(func() {
			defer func() { <-busy }()
			defer close(a.parts[k].done)
			off := int64(k) * AheadPart
			buf := a.f.b.aheads.Get().(*[]byte)
			*buf = (*buf)[:min(AheadPart, a.f.info.Size-off)]
			_, err := a.f.again(a.ctx, *buf, off, 0, nil)
			a.parts[k].buf, a.parts[k].err = buf, err
		})
	}
	under.Wait()
}

// read reads on, from off, which is not before what was read last.
func (a *ahead) read(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		k := int((off + int64(n)) / AheadPart)
		for a.next < k {
			if err := a.leave(); err != nil {
				return n, err
			}
		}
		part := &a.parts[k]
		<-part.done
		if part.err != nil {
			return n, part.err
		}
		inside := off + int64(n) - int64(k)*AheadPart
		n += copy(p[n:], (*part.buf)[inside:])
		if off+int64(n) == int64(k)*AheadPart+int64(len(*part.buf)) {
			if err := a.leave(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// leave gives the buffer of the part that was read back, and makes room for another.
func (a *ahead) leave() error {
	part := &a.parts[a.next]
	<-part.done
	if part.err != nil {
		return part.err
	}
	a.f.b.aheads.Put(part.buf)
	part.buf, part.err = nil, fmt.Errorf("part %d was left", a.next)
	a.next++
	<-a.room
	return nil
}

// close ends fetching. Buffers that nobody read are left to the garbage collector: their requests may still be ending.
func (a *ahead) close() { a.stop() }
