package stream

import (
	"bufio"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

var makeGolden = flag.Bool("make-golden", false, "write the golden file of a new construction version, if there is none")

const goldenFile = "testdata/golden-v1.txt"

// answer computes the result of one golden query, "kind domain version seed args...".
func answer(t testing.TB, query string) string {
	t.Helper()
	f := strings.Split(query, " ")
	num := func(i int) uint64 {
		v, err := strconv.ParseUint(f[i], 10, 64)
		if err != nil {
			t.Fatalf("golden query %q: field %d: %v", query, i, err)
		}
		return v
	}
	real := func(i int) float64 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			t.Fatalf("golden query %q: field %d: %v", query, i, err)
		}
		return v
	}
	bits := func(x float64) string { return fmt.Sprintf("%016x", math.Float64bits(x)) }
	s := New(f[1], uint32(num(2)), num(3))
	switch f[0] {
	case "bytes":
		p := make([]byte, num(6))
		s.Fill(p, num(4), num(5))
		return hex.EncodeToString(p)
	case "uint64":
		return fmt.Sprint(s.Uint64(num(4), num(5)))
	case "uniform":
		return fmt.Sprint(s.Uniform(num(4), num(5), num(6)))
	case "float64":
		return bits(s.Float64(num(4), num(5)))
	case "normal":
		return bits(s.Normal(num(4), num(5)))
	case "exponential":
		return bits(s.Exponential(num(4), num(5)))
	case "gamma":
		return bits(s.Gamma(num(4), num(5), real(6)))
	case "poisson":
		return bits(s.Poisson(num(4), num(5), real(6)))
	}
	t.Fatalf("golden query %q: unknown kind", query)
	return ""
}

// queries is what the golden file asks; the file itself is what counts once it exists.
func queries() []string {
	var q []string
	add := func(format string, args ...any) { q = append(q, fmt.Sprintf(format, args...)) }
	families := []string{"benchpin/test 1 0", "benchpin/test 1 1", "benchpin/test 2 0", "benchpin/tesu 1 0",
		"é 4294967295 18446744073709551615"}
	for _, f := range families {
		add("bytes %s 0 0 64", f)
		add("bytes %s 18446744073709551615 7 33", f)
		add("uint64 %s 0 0", f)
		add("normal %s 0 0", f)
	}
	f := families[0]
	for _, at := range [][3]uint64{{0, 1, 15}, {1, 0, 16}, {1, 16, 1}, {3, 1<<40 + 5, 40}, {1 << 63, 1<<63 - 20, 24}, {5, math.MaxUint64 - 9, 24}} {
		add("bytes %s %d %d %d", f, at[0], at[1], at[2])
	}
	for i := range uint64(12) {
		add("uint64 %s 1 %d", f, i)
		add("float64 %s 1 %d", f, i)
		add("exponential %s 1 %d", f, i)
		for _, n := range []uint64{0, 1, 2, 10, 1<<63 + 1, math.MaxUint64} {
			add("uniform %s 1 %d %d", f, i, n)
		}
		for _, a := range []string{"0.001", "0.3", "1", "2.5", "1e6"} {
			add("gamma %s 1 %d %s", f, i, a)
		}
		for _, l := range []string{"0", "0.4", "15.9", "16", "1000.25", "1e12"} {
			add("poisson %s 1 %d %s", f, i, l)
		}
	}
	for i := range uint64(100) {
		add("normal %s 1 %d", f, i)
	}
	return q
}

func TestMakeGolden(t *testing.T) {
	if !*makeGolden {
		t.Skip("golden values are only written with -make-golden, and never over existing ones")
	}
	if _, err := os.Stat(goldenFile); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s exists: released values never change; a new construction gets a new file", goldenFile)
	}
	var b strings.Builder
	b.WriteString("# Golden values of the seeded stream, construction version 1. They never change.\n")
	b.WriteString("# bytes domain version seed index offset length = hex. Numbers: kind domain version seed index draw [parameter] =\n")
	b.WriteString("# decimal for integers, the IEEE 754 bits in hex for float64. reference.py computes the same file.\n")
	for _, q := range queries() {
		fmt.Fprintf(&b, "%s = %s\n", q, answer(t, q))
	}
	if err := os.WriteFile(goldenFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGolden(t *testing.T) {
	f, err := os.Open(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := make(map[string]bool)
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := sc.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		query, want, ok := strings.Cut(line, " = ")
		if !ok {
			t.Fatalf("golden line %q has no result", line)
		}
		if got := answer(t, query); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
		seen[query] = true
	}
	for _, q := range queries() {
		if !seen[q] {
			t.Errorf("the golden file has no line for %q", q)
		}
	}
}

// TestReference lets the second implementation, written from docs/stream.md in another language, compute the file.
func TestReference(t *testing.T) {
	python := peer(t, "python3")
	peer(t, "b3sum")
	in, err := os.Open(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command(python, "testdata/reference.py")
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("reference.py: %v", err)
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	got, exp := strings.Split(string(out), "\n"), strings.Split(string(want), "\n")
	if len(got) != len(exp) {
		t.Fatalf("reference.py printed %d lines for %d", len(got), len(exp))
	}
	for i := range exp {
		if got[i] != exp[i] {
			t.Errorf("line %d\nreference %s\n   golden %s", i+1, got[i], exp[i])
		}
	}
}

// TestOpenSSL checks bulk content against another AES under the key that another BLAKE3 derives.
func TestOpenSSL(t *testing.T) {
	openssl, b3sum := peer(t, "openssl"), peer(t, "b3sum")
	material := "\x00\x00\x00\x00\x00\x00\x00\x08openssl!" + "\x00\x00\x00\x07" + "\x00\x00\x00\x00\x00\x00\x00\x2a"
	cmd := exec.Command(b3sum, "--derive-key", keyContext, "--no-names")
	cmd.Stdin = strings.NewReader(material)
	key, err := cmd.Output()
	if err != nil {
		t.Fatalf("b3sum: %v", err)
	}
	const size = 1 << 20
	cmd = exec.Command(openssl, "enc", "-aes-128-ctr", "-K", string(key[:32]), "-iv", "00000000000000050000000000000003")
	cmd.Stdin = strings.NewReader(strings.Repeat("\x00", size))
	want, err := cmd.Output()
	if err != nil {
		t.Fatalf("openssl: %v", err)
	}
	got := make([]byte, size)
	New("openssl!", 7, 42).Fill(got, 5, 3*blockSize)
	if string(got) != string(want) {
		t.Error("the stream differs from openssl enc -aes-128-ctr under the same key and counter")
	}
}

// peer returns the path of a program that a test compares with. Where it is missing the test is skipped, but in CI, where
// everything must have been installed, it fails.
func peer(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "%s is not installed: %v", name, err)
	}
	return path
}

// missing skips a test for the given reason, or fails it where CI=true.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
