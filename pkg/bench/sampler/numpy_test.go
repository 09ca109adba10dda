package sampler

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// python returns a Python that has numpy, the peer whose bits this package must give. Without one the test is skipped, but in CI it
// fails: a peer that is missing there proves nothing.
func python(t *testing.T) string {
	t.Helper()
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import numpy").Run() == nil {
			return p
		}
	}
	const reason = "no python3 with numpy (Debian package python3-numpy; make deps installs it)"
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
	return ""
}

// The script writes the shuffles of every case as little-endian uint32. Lists and arrays must come out alike.
const shuffleScript = `
import sys, json, numpy as np
for seed, sizes, kind in json.load(sys.stdin):
    rs = np.random.RandomState(seed)
    for n in sizes:
        a = np.arange(n) if kind == "array" else list(range(n))
        rs.shuffle(a)
        sys.stdout.buffer.write(np.array(a, dtype="<u4").tobytes())
`

func TestShuffleEqualsNumpy(t *testing.T) {
	py := python(t)
	type oneCase struct {
		seed  uint32
		sizes []int64
		kind  string
	}
	var cases []oneCase
	for _, seed := range []uint32{0, 1, 10, 123, 1<<31 + 7, 1<<32 - 1} {
		for _, kind := range []string{"list", "array"} {
			// Powers of two and their neighbours are where the mask changes; the sizes of one case share a generator.
			cases = append(cases, oneCase{seed, []int64{0, 1, 2, 3, 7, 8, 9, 255, 256, 257, 623, 624, 625, 1000}, kind},
				oneCase{seed, []int64{1<<16 - 1, 1 << 16, 1<<16 + 1, 100_000, 300_001}, kind})
		}
	}
	input := "["
	for i, c := range cases {
		sizes, _ := json.Marshal(c.sizes)
		if i > 0 {
			input += ","
		}
		input += fmt.Sprintf("[%d,%s,%q]", c.seed, sizes, c.kind)
	}
	out := runPython(t, py, shuffleScript, input+"]")
	for _, c := range cases {
		var g mt
		g.seed(c.seed)
		for _, n := range c.sizes {
			if got, want := shuffled(&g, n), take(t, &out, n); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s of %d: order differs from numpy's", c.seed, c.kind, n)
			}
		}
	}
	if len(out) != 0 {
		t.Errorf("%d bytes of numpy's are left over", len(out))
	}
}

// The script does what DLIO's configuration says: each epoch seeds, shuffles the file list as it stands, seeds again and shuffles the
// samples; and then says which file and position each place of the epoch is.
const epochScript = `
import sys, json, numpy as np
c = json.load(sys.stdin)
F, n, B, R = c["Files"], c["SamplesPerFile"], c["BatchSize"], c["Accelerators"]
steps = F * n // (B * R)
T = steps * B * R
files = list(range(-(-T // n)))
for epoch in range(1, 5):
    seed = c["Seed"] + epoch if c["SeedChangeEpoch"] else c["Seed"]
    if c["FileShuffle"]:
        np.random.seed(seed)
        np.random.shuffle(files)
    order = np.arange(T)
    if c["SampleShuffle"]:
        np.random.seed(seed)
        np.random.shuffle(order)
    for r in range(R):
        for p in range(r * steps * B, (r + 1) * steps * B):
            g = int(order[p])
            sys.stdout.buffer.write(np.array([g, files[g // n], g % n], dtype="<u4").tobytes())
`

func TestEpochsEqualNumpy(t *testing.T) {
	py := python(t)
	for _, c := range []Config{
		{Files: 168, SamplesPerFile: 1, BatchSize: 7, Accelerators: 2, FileShuffle: true, SampleShuffle: true, Seed: 123, SeedChangeEpoch: true},
		{Files: 31, SamplesPerFile: 13, BatchSize: 4, Accelerators: 3, FileShuffle: true, SampleShuffle: true, Seed: 42},
		{Files: 31, SamplesPerFile: 13, BatchSize: 4, Accelerators: 3, FileShuffle: true, Seed: 42, SeedChangeEpoch: true},
		{Files: 300, SamplesPerFile: 250, BatchSize: 16, Accelerators: 5, SampleShuffle: true, Seed: 7, SeedChangeEpoch: true},
		{Files: 9, SamplesPerFile: 2, BatchSize: 1, Accelerators: 1, Seed: 7, SeedChangeEpoch: true},
	} {
		c.Mode = Numpy
		t.Run(fmt.Sprintf("%d files of %d", c.Files, c.SamplesPerFile), func(t *testing.T) {
			input, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			out := runPython(t, py, epochScript, string(input))
			o, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			for epoch := 1; epoch <= 4; epoch++ {
				e, err := o.Epoch(epoch)
				if err != nil {
					t.Fatal(err)
				}
				for r := range c.Accelerators {
					for p := range e.PerRank() {
						g, file, k := e.Sample(r, p)
						want := take(t, &out, 3)
						if got := []uint32{uint32(g), uint32(file), uint32(k)}; !slices.Equal(got, want) {
							t.Fatalf("epoch %d rank %d position %d: sample, file, position %v, numpy has %v", epoch, r, p, got, want)
						}
					}
				}
			}
			if len(out) != 0 {
				t.Errorf("%d bytes of numpy's are left over", len(out))
			}
		})
	}
}

func runPython(t *testing.T, py, script, input string) []byte {
	t.Helper()
	cmd := exec.Command(py, "-c", script)
	cmd.Stdin = bytes.NewReader([]byte(input))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python: %v\n%s", err, stderr.Bytes())
	}
	return out
}

// take removes n little-endian words from the front of out.
func take(t *testing.T, out *[]byte, n int64) []uint32 {
	t.Helper()
	if int64(len(*out)) < 4*n {
		t.Fatalf("numpy wrote %d bytes, expected %d more", len(*out), 4*n)
	}
	words := make([]uint32, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32((*out)[4*i:])
	}
	*out = (*out)[4*n:]
	return words
}

// The script runs the shuffle buffer as the package documents it, with the raw words of numpy's generator, and shuffles the list of files for
// evaluation after one for training.
const bufferScript = `
import sys, json, numpy as np
c = json.load(sys.stdin)
N, M, seed = c["reads"], c["buffer"], c["seed"]
rs = np.random.RandomState(seed)
def interval(m):
    if m == 0: return 0
    mask = (1 << m.bit_length()) - 1
    while True:
        v = int(rs.randint(0, 1 << 32, dtype=np.uint32)) & mask
        if v <= m: return v
held = list(range(min(M, N)))
nxt = len(held)
out = []
for _ in range(N):
    at = interval(len(held) - 1)
    out.append(held[at])
    if nxt < N:
        held[at] = nxt; nxt += 1
    else:
        held[at] = held[-1]; held.pop()
rs = np.random.RandomState(seed)
train, evals = list(range(c["train"])), list(range(c["eval"]))
rs.shuffle(train); rs.shuffle(evals)
sys.stdout.buffer.write(np.array(out + evals, dtype="<u4").tobytes())
`

// TestBufferEqualsNumpy: anyone can compute the order of a buffer, and of files for evaluation, with numpy.
func TestBufferEqualsNumpy(t *testing.T) {
	py := python(t)
	for _, c := range []struct{ reads, buffer, train, eval, seed int64 }{
		{100, 7, 10, 4, 124}, {1000, 1024, 16, 5, 3}, {5000, 64, 300, 33, 99}, {40, 2, 2, 1, 8},
	} {
		out := runPython(t, py, bufferScript, fmt.Sprintf(`{"reads":%d,"buffer":%d,"train":%d,"eval":%d,"seed":%d}`, c.reads, c.buffer, c.train, c.eval, c.seed))
		o, err := New(Config{Files: c.reads, SamplesPerFile: 1, BatchSize: 1, Accelerators: 1, Lanes: 1, Sampling: Stream, Buffer: c.buffer,
			SampleShuffle: true, Mode: Numpy, Seed: c.seed})
		if err != nil {
			t.Fatal(err)
		}
		e, err := o.Epoch(1)
		if err != nil {
			t.Fatal(err)
		}
		if want := take(t, &out, c.reads); !slices.Equal(e.st.perm, want) {
			t.Errorf("buffer of %d: order differs from numpy's", c.buffer)
		}
		o, err = New(Config{Files: c.eval, SamplesPerFile: 1, BatchSize: 1, Accelerators: 1, FileShuffle: true, Mode: Numpy, Seed: c.seed, After: c.train})
		if err != nil {
			t.Fatal(err)
		}
		if e, err = o.Epoch(1); err != nil {
			t.Fatal(err)
		}
		if want := take(t, &out, c.eval); !slices.Equal(e.files, want) {
			t.Errorf("files for evaluation: order %v differs from numpy's %v", e.files, want)
		}
	}
}

// The golden order that DLIO's documentation of numpy gives for a list shuffled after another one.
func TestSecondListGolden(t *testing.T) {
	o, err := New(Config{Files: 4, SamplesPerFile: 1, BatchSize: 1, Accelerators: 1, FileShuffle: true, Mode: Numpy, Seed: 124, After: 10})
	if err != nil {
		t.Fatal(err)
	}
	e, err := o.Epoch(1)
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint32{2, 0, 3, 1}; !slices.Equal(e.files, want) {
		t.Errorf("found %v, want %v", e.files, want)
	}
}
