package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/record"
)

// maxText bounds a text of a record on a page.
const maxText = 500

// clean makes a text of unknown origin harmless on a terminal: what is not printable, such as escape sequences, line breaks and
// marks that reorder text, is shown as an escape. Pages must not be moved or rewritten by the records that they show.
func clean(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > maxText {
			b.WriteString("…")
			break
		}
		if strconv.IsPrint(r) && r != '\ufffd' {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

// digits writes a number with three significant digits, or all digits before the point when there are more.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 99.95:
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 0.001:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// group puts commas between thousands.
func group(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func count(n record.Int) string { return group(strconv.FormatInt(int64(n), 10)) }

// plural is "1 file" or "2 files".
func plural(n record.Int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// scale finds the prefix of a size, in steps of 1000 or of 1024.
func scale(v, step float64, units []string) (float64, string) {
	i := 0
	for math.Abs(v) >= step*0.9995 && i < len(units)-1 {
		v /= step
		i++
	}
	return v, units[i]
}

// decimalBytes is a size in powers of 1000 alone: "4.11 GB".
func decimalBytes(v float64) string {
	d, unit := scale(v, 1000, []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"})
	if unit == "B" && v == math.Trunc(v) {
		return group(strconv.FormatFloat(v, 'f', 0, 64)) + " B"
	}
	return digits(d) + " " + unit
}

// bytesText is a size in powers of 1000 and, where it differs, of 1024: "4.11 GB (3.82 GiB)". Mixing the two up is the oldest
// misunderstanding between storage and memory, so both are written out.
func bytesText(v float64) string {
	b, unit := scale(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"})
	if unit == "B" {
		return decimalBytes(v)
	}
	return decimalBytes(v) + " (" + digits(b) + " " + unit + ")"
}

// rateText is bytesText a second.
func rateText(v float64) string { return strings.ReplaceAll(bytesText(v), "B", "B/s") }

// secondsText is a duration, with the unit that suits it.
func secondsText(v float64) string {
	switch {
	case v == 0:
		return "0 s"
	case math.Abs(v) < 0.0009995:
		return digits(v*1e6) + " µs"
	case math.Abs(v) < 0.9995:
		return digits(v*1e3) + " ms"
	case math.Abs(v) < 120:
		return digits(v) + " s"
	case math.Abs(v) < 1e9:
		return (time.Duration(math.Round(v)) * time.Second).String()
	}
	return digits(v/86400) + " days"
}

// FigureText writes a figure with its unit, or why there is none. It is the one way in which pages and messages write figures: AU must not
// be 99.94 on one page and 99.95 on another. Percentages are cut after two digits and never rounded up.
func FigureText(f record.Figure) string {
	if f.Value == nil {
		return "absent: " + clean(f.Absent)
	}
	v := *f.Value
	switch f.Unit {
	case "s":
		return secondsText(v)
	case "B":
		return bytesText(v)
	case "B/s":
		return rateText(v)
	case "%":
		return percentText(v) + " %"
	}
	return digits(v) + " " + clean(f.Unit)
}

// ThresholdText writes what a figure is compared with, to ten digits: what is below the threshold must not look like it.
func ThresholdText(v float64, unit string) string {
	if cents := v * 100; unit == "%" && math.Abs(cents-math.Round(cents)) < 1e-6 {
		return strconv.FormatFloat(v, 'f', 2, 64) + " %"
	}
	return strconv.FormatFloat(v, 'g', 10, 64) + " " + clean(unit)
}

// percentText never rounds up to a threshold: 89.996 is "89.99", because "90.00, threshold 90: not met" helps nobody.
func percentText(v float64) string {
	return strconv.FormatFloat(math.Floor(v*100+1e-9)/100, 'f', 2, 64)
}

// cell is a figure in a table whose head gives the unit; "-" when it is absent.
func cell(f record.Figure, write func(float64) string) string {
	if f.Value == nil {
		return "-"
	}
	return write(*f.Value)
}

// column is the unit of sizes in a column: GB, or MB where the largest would be a few thousandths.
func column(largest float64) (unit string, write func(float64) string) {
	if largest < 1e8 {
		return "MB", func(v float64) string { return fixed(v / 1e6) }
	}
	return "GB", func(v float64) string { return fixed(v / 1e9) }
}

func fixed(v float64) string { return fmt.Sprintf("%.3f", v) }
