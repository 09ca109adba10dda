package workload

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestShare reads what can be given and refuses the rest.
func TestShare(t *testing.T) {
	for text, want := range map[string]int64{"5%": 50, "100%": 1000, "0.1%": 1, "0.0001%": 1, "12.5%": 125, "1": 1, "999": 999, "5000": 1000, "33.3333%": 334, "1.%": 0,
		"": 0, "0": 0, "-1": 0, "0%": 0, "100.0001%": 0, "101%": 0, "5 %": 0, "%": 0, ".5%": 0, "1.00001%": 0, "+5": 0, "1e3": 0, "0x10": 0, "9999999999999999999": 0, "5%%": 0,
		"0005%": 0} {
		s, err := ParseShare(text)
		if (err != nil) != (want == 0) {
			t.Errorf("%q: found %v, %v", text, s, err)
		} else if err == nil && s.Of(1000) != want {
			t.Errorf("%q of 1000: found %d, expected %d", text, s.Of(1000), want)
		} else if err != nil && !strings.Contains(err.Error(), "expected a number of files") {
			t.Errorf("%q: %v", text, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Share{PerMillion: rapid.Int64Range(1, 1e6).Draw(t, "ppm")}
		n := rapid.Int64Range(0, 1<<40).Draw(t, "n")
		if got := s.Of(n); got > n || got < 1 && n > 0 || float64(got) < float64(n)*float64(s.PerMillion)/1e6-0.001 || float64(got-1) > float64(n)*float64(s.PerMillion)/1e6 {
			t.Errorf("%d millionths of %d: %d", s.PerMillion, n, got)
		}
	})
}
