package report

import "github.com/benchpin/benchpin/pkg/record"

// The ways in which pages write what they show, for pages that are made elsewhere: a number must look the same on all of them.

// Seconds writes a duration in seconds with the unit that suits it: "12.5 ms".
func Seconds(v float64) string { return secondsText(v) }

// Bytes writes a size in powers of 1000 and, where it differs, of 1024: "4.11 GB (3.82 GiB)".
func Bytes(v float64) string { return bytesText(v) }

// DecimalBytes writes a size in powers of 1000 alone: "4.11 GB".
func DecimalBytes(v float64) string { return decimalBytes(v) }

// Rate is Bytes a second.
func Rate(v float64) string { return rateText(v) }

// Percent writes a percentage without its sign, cut after two digits and never rounded up.
func Percent(v float64) string { return percentText(v) }

// Number writes a number with three significant digits, or all digits before the point when there are more.
func Number(v float64) string { return digits(v) }

// Count writes a whole number with its thousands apart.
func Count(n record.Int) string { return count(n) }

// Plural is "1 file" or "2 files".
func Plural(n record.Int, noun string) string { return plural(n, noun) }

// Verified says in words how a data set was compared with its manifest.
func Verified(v *record.Verification) string { return verified(v) }

// WholeEpochs is what was asked of storage in all epochs, in bytes a second of the time that they took; false where that is not known.
func WholeEpochs(m *record.Metrics) (rate float64, ok bool) {
	rate, _, ok = wholeEpochs(m.Epochs)
	return rate, ok
}
