package attest

import "testing"

// Numbers of a verdict have no exponents.
func TestBracketNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 19: "19", 0.10526: "0.1053", 10.526: "10.53", 189302123.4: "189302123", 2.536e-6: "0.000002536", 1e-12: "0", 999.96: "1000", 1234.5: "1234"} {
		if got := plain(x); got != want {
			t.Errorf("%v: expected %s, found %s", x, want, got)
		}
	}
	for x, want := range map[float64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 6.303e7: "63.03 MB", 1.5e18: "1500 PB"} {
		if got := byteText(x); got != want {
			t.Errorf("%v: expected %s, found %s", x, want, got)
		}
	}
}
