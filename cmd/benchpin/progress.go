package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

// notify returns the callbacks that tell people what is going on, and a function that ends a drawing that is still on the terminal;
// it may be called more than once. Lines go to standard error; bars and the view of a run are drawn there only when it is a terminal that
// can move its cursor, and a run has a line there every few seconds otherwise.
func (a *app) notify() (n pipeline.Notify, end func()) {
	var (
		mu   sync.Mutex
		bar  *progressbar.ProgressBar
		part string
		last float64 // when a line of a run was printed, in seconds since it began
	)
	screen := live.NewScreen(a.stderr, a.columns)
	clear := func() {
		screen.Clear()
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
		if !a.drawing() {
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
	n.Live = func(s live.Sample) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case s.Last:
			clear()
		case a.drawing():
			if bar != nil {
				clear()
			}
			screen.Show(s)
		case s.Elapsed < last || s.Elapsed-last >= lineEvery:
			last = s.Elapsed
			a.notef("live     %s", s.Line())
		}
	}
	return n, func() {
		mu.Lock()
		defer mu.Unlock()
		clear()
	}
}

// lineEvery is how many seconds lie between the lines of a run where nothing can be drawn.
const lineEvery = 5

// drawing says whether standard error is a place where drawings can be replaced.
func (a *app) drawing() bool {
	term, _ := a.lookupenv("TERM")
	return a.terminal && term != "dumb"
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
