package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/benchpin/benchpin/pkg/pipeline"
)

// notify returns the callbacks that tell people what is going on, and a function that ends a drawing that is still on the terminal;
// it may be called more than once. Lines go to standard error; bars are drawn there only when it is a terminal.
func (a *app) notify() (n pipeline.Notify, end func()) {
	var (
		mu   sync.Mutex
		bar  *progressbar.ProgressBar
		part string
	)
	clear := func() {
		if bar != nil {
			// A drawing that fails changes nothing about the work it shows.
			_ = bar.Clear()
			bar = nil
		}
	}
	n.Stage = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		clear()
		a.notef(format, args...)
	}
	n.Progress = func(name string, doneFiles, allFiles, doneBytes, allBytes int64) {
		if !a.terminal {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if bar == nil || name != part {
			clear()
			bar, part = a.newBar(allBytes), name
		}
		if allFiles >= 0 {
			bar.Describe(fmt.Sprintf("%-10s %d/%d", name, doneFiles, allFiles))
		} else {
			bar.Describe(fmt.Sprintf("%-10s %d", name, doneFiles))
		}
		_ = bar.Set64(doneBytes)
	}
	return n, func() {
		mu.Lock()
		defer mu.Unlock()
		clear()
	}
}

// newBar draws bytes done of all, or a spinner where nobody knows how many there are (-1).
func (a *app) newBar(all int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(all,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionShowBytes(true),
		progressbar.OptionUseIECUnits(false),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)
}
