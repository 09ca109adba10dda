package bench

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/workload"
)

func forms() []workload.Time {
	return []workload.Time{
		{Type: workload.TimeConstant, Center: 0.323},
		{Type: workload.TimeNormal, Center: 0.323, Stdev: 0.1},
		{Type: workload.TimeUniform, Min: 0.1, Max: 0.7},
		{Type: workload.TimeGamma, Shape: 2.5, Scale: 0.1},
		{Type: workload.TimeExponential, Scale: 0.25},
		{Type: workload.TimePoisson, Lam: 3},
	}
}

// TestGoldenTimes freezes drawn compute times: they are part of what a seed determines, on every architecture.
func TestGoldenTimes(t *testing.T) {
	golden := [][3]time.Duration{
		{323000000, 323000000, 323000000},
		{376157145, 452883093, 292975985},
		{637114982, 596758298, 334125590},
		{304708748, 469594591, 175409219},
		{27679366, 47206517, 235267993},
		{2000000000, 5000000000, 4000000000},
	}
	for i, form := range forms() {
		c := newTimes(computeDomain, form, workload.Train{Seed: 123, SeedChangeEpoch: true})
		got := [3]time.Duration{c.at(1, 0, 0), c.at(1, 0, 1), c.at(2, 5, 0)}
		if got != golden[i] {
			t.Errorf("%s: found %d, expected %d ns", form.Type, got, golden[i])
		}
	}
}

// TestGoldenTimesOnARM64 runs the golden test as an arm64 binary under emulation.
func TestGoldenTimesOnARM64(t *testing.T) {
	if os.Getenv("BENCHPIN_LONG") != "1" && os.Getenv("CI") == "" {
		t.Skip("cross-compiles and emulates; runs in CI and with BENCHPIN_LONG=1 (make test-long)")
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("qemu-aarch64-static is missing: %v; install qemu-user-static", err)
		}
		t.Skipf("qemu-aarch64-static is missing: %v; install qemu-user-static", err)
	}
	bin := filepath.Join(t.TempDir(), "bench.test")
	build := exec.Command("go", "test", "-c", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cross-compile: %v\n%s", err, out)
	}
	out, err := exec.Command(qemu, bin, "-test.v", "-test.run", "^(TestGoldenTimes|TestPlanUnet3D|TestDuration)$").CombinedOutput()
	if err != nil || bytes.Count(out, []byte("--- PASS")) != 3 {
		t.Fatalf("on arm64: %v\n%s", err, out)
	}
}

// TestTimesAreApart: draws differ by seed, accelerator, step and, where the seed changes with it, epoch; and by nothing else.
func TestTimesAreApart(t *testing.T) {
	form := workload.Time{Type: workload.TimeUniform, Min: 0, Max: 1000}
	for _, change := range []bool{false, true} {
		train := workload.Train{Seed: 123, SeedChangeEpoch: change}
		c := newTimes(computeDomain, form, train)
		seen := map[time.Duration]bool{}
		for r := range 10 {
			for s := range int64(10) {
				seen[c.at(1, r, s)] = true
			}
		}
		if len(seen) != 100 {
			t.Errorf("%d different draws of 100", len(seen))
		}
		if same := c.at(1, 3, 4) == c.at(2, 3, 4); same == change {
			t.Errorf("seed_change_epoch %v: epochs 1 and 2 draw alike: %v", change, same)
		}
		if other := newTimes(computeDomain, form, workload.Train{Seed: 124, SeedChangeEpoch: change}); other.at(1, 0, 0) == c.at(1, 0, 0) {
			t.Error("seeds 123 and 124 draw alike")
		}
		if other := newTimes(preprocessDomain, form, train); other.at(1, 0, 0) == c.at(1, 0, 0) {
			t.Error("compute and preprocess times are alike")
		}
		if again := newTimes(computeDomain, form, train); again.at(1, 0, 0) != c.at(1, 0, 0) {
			t.Error("the same draw came out differently")
		}
	}
}

// TestTimesHaveTheirMean: within five standard errors of 20,000 draws.
func TestTimesHaveTheirMean(t *testing.T) {
	const n = 20000
	for _, form := range forms() {
		c := newTimes(computeDomain, form, workload.Train{Seed: 1})
		var sum, squares float64
		for i := range int64(n) {
			x := c.at(1, 0, i).Seconds()
			sum += x
			squares += x * x
		}
		mean := sum / n
		if allowed := 5*math.Sqrt(max(0, squares/n-mean*mean)/n) + 1e-3; math.Abs(mean-form.Mean()) > allowed {
			t.Errorf("%s: mean %.4f, expected %.4f +- %.4f", form.Type, mean, form.Mean(), allowed)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		want    time.Duration
	}{
		{0, 0}, {0.323, 323 * time.Millisecond}, {-0.5, 500 * time.Millisecond}, {1e-10, 0}, {math.Inf(1), longestSleep},
		{math.NaN(), longestSleep}, {1e300, longestSleep},
	} {
		if got := duration(c.seconds); got != c.want {
			t.Errorf("duration(%g) = %v, expected %v", c.seconds, got, c.want)
		}
	}
}
