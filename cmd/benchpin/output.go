package main

import (
	"errors"
	"io"
	"syscall"
)

// output is standard output. It remembers the first error of writing, so that no command can end as done while its result went nowhere.
// A reader that went away (head, a pager) read what it wanted: that is no error, and what comes after is dropped.
type output struct {
	w   io.Writer
	err error
}

// Write writes p.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}
