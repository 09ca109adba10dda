package manifest

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"testing"

	"github.com/zeebo/blake3"
)

// rootOf is RFC 6962 section 2.1 as it stands there: recursive, over all leaves at once.
func rootOf(leaves [][]byte) [32]byte {
	switch n := len(leaves); n {
	case 0:
		return blake3.Sum256(nil)
	case 1:
		return blake3.Sum256(append([]byte{0}, leaves[0]...))
	default:
		k := 1 // the largest power of two below n
		for k*2 < n {
			k *= 2
		}
		l, r := rootOf(leaves[:k]), rootOf(leaves[k:])
		return blake3.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
	}
}

func TestTreeStructure(t *testing.T) {
	var tree Tree
	var leaves [][]byte
	for n := range 600 {
		if tree.Count() != int64(n) {
			t.Fatalf("count %d, expected %d", tree.Count(), n)
		}
		if got, want := tree.Root(), rootOf(leaves); got != want {
			t.Fatalf("%d leaves: root %x, expected %x", n, got, want)
		}
		leaf := bytes.Repeat([]byte{byte(n), byte(n >> 8)}, n%40)
		leaves = append(leaves, leaf)
		if n%2 == 0 {
			tree.Add(leaf)
		} else {
			tree.AddHash(LeafHash(leaf))
		}
	}
}

var knownLeaves = []string{"", "a", "bc", "def", "ghij"}

// knownRoots were made with b3sum over bytes put together by hand, after 0, 1, ... 5 of the leaves.
var knownRoots = []string{
	"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
	"2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
	"0534a70d51d9bf8f3d11b2903957ba32a64bcd98efb0a7061d59f5deca90a117",
	"6c1399c1321234bbb2939d4a2f6cbe7eb22dc0b2ea78e4e3c3f7238c4ba1612c",
	"c01f87174a603110f1ca870db12595f694ff5eb8b31de68dfcbfc79dd56137bf",
	"a64936b140549aba79757c8377bef897617b4e4217473d9b5993df29c05b17dd",
}

func TestTreeKnownAnswers(t *testing.T) {
	var tree Tree
	for i, want := range knownRoots {
		if got := tree.Root(); hex.EncodeToString(got[:]) != want {
			t.Errorf("%d leaves: root %x, expected %s", i, got, want)
		}
		if i < len(knownLeaves) {
			tree.Add([]byte(knownLeaves[i]))
		}
	}
}

// needPeer skips the test where a peer is not installed, and fails it in CI, where all of them must be.
func needPeer(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is needed in CI: %v (make deps installs it)", program, err)
		}
		t.Skipf("%s is not installed (make deps installs it): %v", program, err)
	}
}

// TestTreeAgainstB3sum computes the tree of three leaves with another program.
func TestTreeAgainstB3sum(t *testing.T) {
	needPeer(t, "b3sum")
	sum := func(parts ...[]byte) []byte {
		cmd := exec.Command("b3sum", "--no-names")
		cmd.Stdin = bytes.NewReader(bytes.Join(parts, nil))
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(string(bytes.TrimSpace(out)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var tree Tree
	lines := [][]byte{[]byte("first line"), bytes.Repeat([]byte("second"), 1000), []byte("third")}
	for _, l := range lines {
		tree.Add(l)
	}
	leaf := func(i int) []byte { return sum([]byte{0}, lines[i]) }
	want := sum([]byte{1}, sum([]byte{1}, leaf(0), leaf(1)), leaf(2))
	if got := tree.Root(); !bytes.Equal(got[:], want) {
		t.Errorf("root %x, b3sum says %x", got, want)
	}
}

func TestTreeAllocatesNothing(t *testing.T) {
	var tree Tree
	line := make([]byte, 140)
	tree.Add(line)
	if n := testing.AllocsPerRun(1000, func() { tree.Add(line) }); n != 0 {
		t.Errorf("%v allocations for a leaf", n)
	}
}
