package report

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/record"
)

func TestUnits(t *testing.T) {
	var got []string
	for _, v := range []float64{0, 1, 999, 999.9, 1000, 1024, 4096, 999949, 4105026880, 1 << 40, 1.5e18, 3e21} {
		got = append(got, bytesText(v))
	}
	want := []string{
		"0 B", "1 B", "999 B", "1.00 kB", "1.00 kB", "1.02 kB (1.00 KiB)", "4.10 kB (4.00 KiB)", "1.00 MB (977 KiB)",
		"4.11 GB (3.82 GiB)", "1.10 TB (1.00 TiB)", "1.50 EB (1.30 EiB)", "3,000 EB (2,602 EiB)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("bytes\nfound    %q\nexpected %q", got, want)
	}
	got = nil
	for _, v := range []float64{0, 1e-9, 0.0000123, 0.0009999, 0.0123, 0.9994, 0.99951, 59.96, 119.9, 120, 3725, 1e10} {
		got = append(got, secondsText(v))
	}
	want = []string{"0 s", "0.001 µs", "12.3 µs", "1.00 ms", "12.3 ms", "999 ms", "1.00 s", "60.0 s", "120 s", "2m0s", "1h2m5s", "115,741 days"}
	if !slices.Equal(got, want) {
		t.Errorf("seconds\nfound    %q\nexpected %q", got, want)
	}
	for v, want := range map[float64]string{89.999: "89.99", 90: "90.00", 100: "100.00", 97.528: "97.52", 33.3: "33.30"} {
		if got := percentText(v); got != want {
			t.Errorf("percentText(%v) = %s, expected %s", v, got, want)
		}
	}
	if got := rateText(6.194e9); got != "6.19 GB/s (5.77 GiB/s)" {
		t.Errorf("rate %s", got)
	}
	for n, want := range map[record.Int]string{0: "0", -1234: "-1,234", 1234567: "1,234,567", 999: "999"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s", n, got)
		}
	}
}

// TestPercentKeepsVerdicts: what a page shows never contradicts the comparison with a threshold that has two decimals.
func TestPercentKeepsVerdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		au, threshold := rapid.Float64Range(0, 100).Draw(t, "au"), float64(rapid.IntRange(0, 10000).Draw(t, "threshold"))/100
		var shown float64
		if _, err := fmt.Sscan(percentText(au), &shown); err != nil {
			t.Fatal(err)
		}
		if (au >= threshold) != (shown >= threshold) && threshold-au > 1e-10 {
			t.Fatalf("AU %v against %v is shown as %v", au, threshold, shown)
		}
	})
}

func TestThresholdText(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{90, "%", "90.00 %"}, {100 * 0.29, "%", "29.00 %"}, {100 * 0.9999999000000001, "%", "99.99999 %"}, {99.995, "%", "99.995 %"},
		{1000.25, "samples/s", "1000.25 samples/s"}, {1.5e9, "B/s", "1500000000 B/s"},
	} {
		if got := ThresholdText(c.v, c.unit); got != c.want {
			t.Errorf("ThresholdText(%v) is %q, expected %q", c.v, got, c.want)
		}
	}
}
