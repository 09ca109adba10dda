package workload

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// DefaultSample is benchpin.verify_sample where nothing is given.
const DefaultSample = "5%"

// Share is a part of a number of files: so many, or so many of a million.
type Share struct {
	// Files is at least 1, or 0 where the share is PerMillion, which is 1 to 1,000,000.
	Files, PerMillion int64
}

// shareDecimals is how many digits a percentage may have after its point: with them it is a whole number of millionths.
const shareDecimals = 4

// ParseShare reads benchpin.verify_sample: a number of files from 1, or a percentage above 0 and up to 100 with at most four decimals.
func ParseShare(text string) (Share, error) {
	bad := fmt.Errorf("expected a number of files, at least 1, or a percentage above 0%% and up to 100%% with at most %d decimals, found %q",
		shareDecimals, text)
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if !digits(text) || err != nil || n < 1 {
			return Share{}, bad
		}
		return Share{Files: n}, nil
	}
	whole, fraction, point := strings.Cut(percent, ".")
	if !digits(whole) || len(whole) > 3 || point && !digits(fraction) || len(fraction) > shareDecimals {
		return Share{}, bad
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", shareDecimals-len(fraction)), 10, 64)
	if err != nil || n < 1 || n > 1_000_000 {
		return Share{}, bad
	}
	return Share{PerMillion: n}, nil
}

// Of is the share of n files: the percentage rounded up, never more than there are.
func (s Share) Of(n int64) int64 {
	if s.Files > 0 {
		return min(s.Files, n)
	}
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(s.PerMillion))
	q, r := bits.Div64(hi, lo, 1_000_000)
	if r > 0 {
		q++
	}
	return int64(q)
}
