package live

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// stageText says for people what a stage is.
func stageText(name string) string {
	switch name {
	case Load.String():
		return "waiting for data"
	case Compute.String():
		return "computing"
	case Hash.String():
		return "hashing"
	case Barrier.String():
		return "waiting for each other"
	case Checkpoint.String():
		return "checkpoints"
	case Idle.String():
		return "between epochs"
	case Open.String():
		return "opening files"
	case Read.String():
		return "reading"
	case Decode.String():
		return "decoding"
	case Preprocess.String():
		return "preprocessing"
	}
	return "nothing yet"
}

// Line is a sample on one line, for a log.
func (s *Sample) Line() string {
	parts := []string{s.where() + ", " + percent(s.done()) + " done"}
	if t := rateText(s.Now); t != "" {
		parts = append(parts, t+" now")
	}
	if t := rateText(s.Overall); t != "" {
		parts = append(parts, t+" overall")
	}
	if d := s.Now.Device; d != nil {
		parts = append(parts, bytesText(*d)+"/s from devices")
	}
	if s.AU != nil {
		parts = append(parts, "AU "+auText(*s.AU)+" so far")
	}
	if t := s.dropText(); t != "" {
		parts = append(parts, "dropping "+t)
	} else if s.Slowest != "" {
		parts = append(parts, s.slowText())
	}
	if s.Left != nil {
		parts = append(parts, "about "+clock(*s.Left)+" left")
	}
	return strings.Join(parts, "; ")
}

// where is the place in the run.
func (s *Sample) where() string {
	if s.SamplesTotal == 0 {
		return fmt.Sprintf("checkpoint %d of %d", min(s.Step+1, s.Steps), s.Steps)
	}
	if s.Evaluation {
		return fmt.Sprintf("evaluation after epoch %d of %d", s.Epoch, s.Epochs)
	}
	return fmt.Sprintf("epoch %d of %d, step %s of %s", max(s.Epoch, 1), s.Epochs, group(s.Step), group(s.Steps))
}

// done is the part of the run that is done, by samples where there are some.
func (s *Sample) done() float64 {
	switch {
	case s.SamplesTotal > 0:
		return float64(s.Samples) / float64(s.SamplesTotal)
	case s.BytesTotal > 0:
		return float64(s.Bytes) / float64(s.BytesTotal)
	}
	return 0
}

// dropText says how far the page cache was emptied, while nothing else goes on.
func (s *Sample) dropText() string {
	if s.counts.ToDrop == 0 {
		return ""
	}
	return fmt.Sprintf("the data set from the page cache: %s of %s files", group(s.counts.Dropped), group(s.counts.ToDrop))
}

// slowText names the slowest stage, and the wait that it is a part of.
func (s *Sample) slowText() string {
	text := "slowest now: " + stageText(s.Slowest)
	if share, ok := s.Shares[s.Slowest]; ok {
		return text + " (" + percent(share) + ")"
	}
	return text + " (" + percent(s.Shares[Load.String()]) + " waiting for data)"
}

func rateText(r Rates) string {
	var parts []string
	if r.Samples != nil {
		parts = append(parts, number(*r.Samples)+" samples/s")
	}
	if r.Bytes != nil {
		parts = append(parts, bytesText(*r.Bytes)+"/s")
	}
	return strings.Join(parts, ", ")
}

// lines is a sample as a block on a terminal.
func (s *Sample) lines() []string {
	const bar = 24
	filled := int(math.Round(bar * min(1, s.done())))
	left := ""
	if s.Left != nil {
		left = ", about " + clock(*s.Left) + " left"
	}
	lines := []string{fmt.Sprintf("%s  [%s%s] %s  %s%s", s.where(), strings.Repeat("#", filled), strings.Repeat("-", bar-filled), percent(s.done()),
		clock(s.Elapsed), left)}
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("  %-8s %s", label, text))
		}
	}
	for _, r := range []struct {
		when  string
		rates Rates
	}{{"now", s.Now}, {"epoch", s.OfEpoch}, {"overall", s.Overall}} {
		text := rateText(r.rates)
		if d := r.rates.Device; d != nil {
			text += ", " + bytesText(*d) + "/s from devices"
		}
		if r.when != "epoch" || s.SamplesTotal > 0 {
			add(r.when, text)
		}
	}
	if s.AU != nil {
		text := auText(*s.AU) + " so far"
		if s.Threshold != nil {
			text += ", threshold " + strconv.FormatFloat(*s.Threshold, 'g', 10, 64) + " %"
		}
		add("AU", text)
	}
	add("dropping", s.dropText())
	if s.Slowest != "" {
		text := stageText(s.Slowest)
		var parts []string
		for p := range Phases {
			if share := s.Shares[p.String()]; share >= 0.005 {
				parts = append(parts, percent(share)+" "+stageText(p.String()))
			}
		}
		add("slowest", text+": "+strings.Join(parts, ", "))
	}
	return lines
}

// Screen draws samples as a block of lines on a terminal, each in the place of the one before. Nothing else may be written to the terminal
// between Show and Clear.
type Screen struct {
	w     io.Writer
	width func() int
	drawn int
}

// NewScreen draws on w, whose width in columns is asked for each time; 0 is an unknown one.
func NewScreen(w io.Writer, width func() int) *Screen { return &Screen{w: w, width: width} }

// Show draws a sample. A drawing that fails changes nothing about the run that it shows, so no error is returned.
func (v *Screen) Show(s Sample) {
	width := v.width()
	if width < 20 {
		width = 80
	}
	var b strings.Builder
	b.WriteString(v.back())
	lines := s.lines()
	for _, l := range lines {
		b.WriteString(cut(l, width-1) + "\n")
	}
	v.drawn = len(lines)
	_, _ = io.WriteString(v.w, b.String())
}

// Clear removes the drawing.
func (v *Screen) Clear() {
	if v.drawn > 0 {
		_, _ = io.WriteString(v.w, v.back())
		v.drawn = 0
	}
}

// back moves to the first line of the drawing and clears from there on.
func (v *Screen) back() string {
	if v.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", v.drawn)
}

// cut ends a text that is too long, because a line that wraps would make the block taller than it is known to be.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(0, width-1)]) + "…"
}

// number writes three significant digits, or all before the point.
func number(v float64) string {
	switch {
	case v >= 99.95:
		return group(int64(math.Round(v)))
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// group puts commas between thousands; n is not negative.
func group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bytesText is a size in powers of 1000.
func bytesText(v float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	i := 0
	for v >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if i == 0 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " B"
	}
	return number(v) + " " + units[i]
}

// percent of a part, without digits.
func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 0, 64) + " %" }

// auText is cut after two digits and never rounded up to a threshold, as on every page.
func auText(v float64) string {
	return strconv.FormatFloat(math.Floor(v*100+1e-9)/100, 'f', 2, 64) + " %"
}

// clock is a time in whole seconds.
func clock(seconds float64) string {
	if seconds > 1e9 {
		return "decades"
	}
	return time.Duration(math.Round(seconds) * 1e9).String()
}
