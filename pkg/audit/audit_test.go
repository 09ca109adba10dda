package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// memory is a data set in memory. It is a Source, and a Maker that makes what it holds.
type memory map[string][]byte

type memoryFile struct {
	*bytes.Reader
	name string
}

func (f memoryFile) Close() error              { return nil }
func (f memoryFile) Info() (store.Info, error) { return store.Info{Path: f.name, Size: f.Size()}, nil }

func (m memory) Open(name string) (store.File, error) {
	b, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return memoryFile{bytes.NewReader(b), name}, nil
}

func (m memory) Chunks(_ context.Context, path string, offsets, lengths []int64, yield func(i int, b []byte) error) error {
	for i := range offsets {
		if offsets[i]+lengths[i] > int64(len(m[path])) {
			return io.ErrUnexpectedEOF
		}
		if err := yield(i, m[path][offsets[i]:offsets[i]+lengths[i]]); err != nil {
			return err
		}
	}
	return nil
}

func (m memory) clone() memory {
	c := memory{}
	for name, b := range m {
		c[name] = bytes.Clone(b)
	}
	return c
}

// filled is a data set of files of the given sizes.
func filled(sizes ...int) memory {
	m := memory{}
	for i, size := range sizes {
		b := make([]byte, size)
		for j := range b {
			b[j] = byte(j*(i+3) + j>>11)
		}
		m[fmt.Sprintf("part/%04d.bin", i)] = b
	}
	return m
}

// pinned is the manifest of a data set.
func pinned(t testing.TB, data memory) *manifest.Manifest {
	t.Helper()
	var entries bytes.Buffer
	w := manifest.NewWriter(&entries, manifest.Meta{})
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range data {
			if !yield(name) {
				return
			}
		}
	}) {
		h, err := manifest.HashFile(context.Background(), data, name, manifest.HashOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(manifest.Entry{Path: name, Size: int64(len(data[name])), Digest: h.Digest}); err != nil {
			t.Fatal(err)
		}
	}
	h, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	head, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.OpenReaders(head, bytes.NewReader(entries.Bytes()), int64(entries.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func challenged(t testing.TB, m *manifest.Manifest, from string, count int) []byte {
	t.Helper()
	c, err := NewChallenge(context.Background(), m, from, count)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func answered(t testing.TB, challenge []byte, m *manifest.Manifest, data memory, form Form) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Answer(context.Background(), challenge, m, data, &out, AnswerOptions{Form: form}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func check(challenge, answer []byte, m *manifest.Manifest, maker Maker) (*Report, error) {
	return Check(context.Background(), challenge, bytes.NewReader(answer), CheckOptions{Root: m.Root(), Manifest: m, Maker: maker})
}

// Sizes on both sides of everything that a boundary is.
var mixed = []int{0, 1, 1000, ChunkSize - 1, ChunkSize, ChunkSize + 1, 3*ChunkSize + 17, 5 * ChunkSize}

func TestAnswersHold(t *testing.T) {
	data := filled(mixed...)
	m := pinned(t, data)
	for _, count := range []int{1, 3, 9, 1000} {
		challenge := challenged(t, m, "beacon 4711", count)
		for _, form := range []Form{Bytes, Digests} {
			answer := answered(t, challenge, m, data, form)
			for _, with := range []CheckOptions{{Root: m.Root(), Maker: data}, {Root: m.Root(), Maker: data, Manifest: m}} {
				r, err := Check(context.Background(), challenge, bytes.NewReader(answer), with)
				if err != nil || !r.OK() || r.Chunks != min(count, 15) || r.Redrawn != (with.Manifest != nil) || len(r.Assurance) != 2 {
					t.Fatalf("%d chunks as %s: %v %+v", count, form, err, r)
				}
				if whole := r.Assurance[0].Method == All; whole != (count >= 15) || whole && r.Bytes != r.OfBytes {
					t.Errorf("%d of %d chunks: %+v", count, r.OfChunks, r)
				}
			}
		}
		if _, err := Check(context.Background(), challenge, bytes.NewReader(answered(t, challenge, m, data, Digests)), CheckOptions{Root: m.Root()}); !errors.Is(err, ErrNeedBytes) {
			t.Errorf("keyed digests without a recipe: %v", err)
		}
	}
}

// Every attack ends in a failure that names a file, or in an error of its class.
func TestAttacks(t *testing.T) {
	sizes := make([]int, 26)
	for i := range sizes {
		sizes[i] = 30_000 + 997*i
	}
	sizes[24], sizes[25] = ChunkSize+30_000, 2*ChunkSize+40_000
	data := filled(sizes...)
	m := pinned(t, data)
	challenge := challenged(t, m, "beacon 4711", 9)
	other := challenged(t, m, "beacon 4712", 9)
	// Another data set with the same names and sizes.
	twin := data.clone()
	twin["part/0025.bin"][ChunkSize+5] ^= 1
	twins := pinned(t, twin)
	for _, form := range []Form{Bytes, Digests} {
		good := answered(t, challenge, m, data, form)
		lines := bytes.SplitAfter(good, []byte("\n"))
		lines = lines[:len(lines)-1]
		edit := func(n int, f func(*answerLine)) []byte {
			var l answerLine
			if err := json.Unmarshal(lines[n], &l); err != nil {
				t.Fatal(err)
			}
			f(&l)
			b, err := encode(&l)
			if err != nil {
				t.Fatal(err)
			}
			out := slices.Clone(lines)
			out[n] = b
			return bytes.Join(out, nil)
		}
		drop := func(n int) []byte { return bytes.Join(slices.Delete(slices.Clone(lines), n, n+1), nil) }
		swap := func(a, b int) []byte {
			out := slices.Clone(lines)
			out[a], out[b] = out[b], out[a]
			return bytes.Join(out, nil)
		}
		content := func(l *answerLine) {
			if form == Bytes {
				l.Bytes[len(l.Bytes)/2] ^= 4
			} else {
				l.Keyed[7] ^= 4
			}
		}
		var second answerLine
		if err := json.Unmarshal(lines[2], &second); err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			answer []byte
			class  error  // of the error; nil: in the report
			names  string // what the text holds
		}{
			"missing chunk":            {drop(3), ErrDocument, "part/00"},
			"last chunk missing":       {drop(9), ErrDocument, "part/0025.bin"},
			"chunks swapped":           {swap(3, 4), ErrDocument, "part/00"},
			"truncated":                {good[:len(good)/2], ErrDocument, "part/00"},
			"last line end":            {good[:len(good)-1], ErrDocument, "part/0025.bin"},
			"extended":                 {append(bytes.Clone(good), "{}\n"...), ErrDocument, "after line 10"},
			"empty":                    {nil, ErrDocument, "line 1"},
			"wrong bytes":              {edit(5, content), nil, "part/00"},
			"bytes of another chunk":   {edit(3, func(l *answerLine) { l.Bytes, l.Keyed = second.Bytes, second.Keyed }), nil, "part/00"},
			"another chunk of its own": {edit(3, func(l *answerLine) { n := l.N; *l = second; l.N = n }), nil, "part/00"},
			"entry of another number":  {edit(3, func(l *answerLine) { l.Index++ }), nil, "part/00"},
			"of other entries":         {edit(3, func(l *answerLine) { l.Entries *= 2 }), nil, "part/00"},
			"wrong way in the tree":    {edit(3, func(l *answerLine) { l.Path[0][0] ^= 1 }), nil, "part/00"},
			"no way in the tree":       {edit(3, func(l *answerLine) { l.Path = l.Path[:0] }), nil, "part/00"},
			"wrong way in the file":    {edit(9, func(l *answerLine) { l.Groups[0][0] ^= 1 }), nil, "part/0025.bin"},
			"no way in the file":       {edit(9, func(l *answerLine) { l.Groups = l.Groups[:0] }), nil, "part/0025.bin"},
			"another digest pinned":    {edit(3, func(l *answerLine) { l.Line = strings.Replace(l.Line, "blake3:", "blake3:0", 1)[:len(l.Line)] }), nil, "part/00"},
			"the other form":           {edit(3, func(l *answerLine) { l.Bytes, l.Keyed = nil, nil }), nil, "part/00"},
			"null":                     {bytes.Replace(good, []byte(`"groups":[]`), []byte(`"groups":null`), 1), ErrDocument, "null"},
			"key twice":                {bytes.Replace(good, []byte(`"n":3,`), []byte(`"n":3,"n":3,`), 1), ErrDocument, "line 5"},
			"unknown key":              {bytes.Replace(good, []byte(`"n":3,`), []byte(`"n":3,"m":3,`), 1), ErrDocument, "line 5"},
			"white space":              {bytes.Replace(good, []byte(`"n":3,`), []byte(`"n": 3,`), 1), ErrDocument, "line 5"},
			"replayed":                 {answered(t, other, m, data, form), ErrOther, "to the challenge"},
			"relabelled":               {bytes.Replace(answered(t, other, m, data, form), hexOf(other), hexOf(challenge), 1), nil, "part/00"},
			"of another manifest":      {answered(t, challengedFor(t, twins, challenge), twins, twin, form), ErrOther, ""},
		} {
			r, err := check(challenge, c.answer, m, data)
			switch {
			case c.class != nil:
				if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.names) {
					t.Errorf("%s, %s: expected %v naming %q, found %v %+v", form, what, c.class, c.names, err, r)
				}
			case err != nil || r.OK() || !strings.Contains(r.Failures[0].Path, c.names) || r.Assurance != nil:
				t.Errorf("%s, %s: expected a failure naming %q, found %v %+v", form, what, c.names, err, r)
			}
		}
		// Cut anywhere, no answer passes.
		for cut := 0; cut < len(good); cut += 1 + len(good)/23 {
			if _, err := check(challenge, good[:cut], m, data); !errors.Is(err, ErrDocument) {
				t.Errorf("%s: cut at %d: %v", form, cut, err)
			}
		}
		// The root of another data set, the challenge of another value, and one that its value does not pick.
		if _, err := Check(context.Background(), challenge, bytes.NewReader(good), CheckOptions{Root: twins.Root(), Maker: data}); !errors.Is(err, ErrOther) {
			t.Errorf("another root: %v", err)
		}
		if _, err := check(other, good, m, data); !errors.Is(err, ErrOther) {
			t.Errorf("another challenge: %v", err)
		}
	}
	c, err := ParseChallenge(challenge)
	if err != nil {
		t.Fatal(err)
	}
	c.From = "a value of my own"
	mine, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check(mine, answered(t, mine, m, data, Bytes), m, data); !errors.Is(err, ErrAudit) || !strings.Contains(err.Error(), "picks other chunks") {
		t.Errorf("chunks that the value does not pick: %v", err)
	}
}

func hexOf(challenge []byte) []byte {
	sum := digestOf(challenge)
	return hex.AppendEncode(nil, sum[:])
}

// challengedFor is the challenge of the same value and count for another data set.
func challengedFor(t testing.TB, m *manifest.Manifest, challenge []byte) []byte {
	t.Helper()
	c, err := ParseChallenge(challenge)
	if err != nil {
		t.Fatal(err)
	}
	return challenged(t, m, c.From, c.Count)
}

// A keyed digest is of no use for another place or another challenge: nothing that was kept before stands for the bytes.
func TestKeyedDigestsAreForOnePlace(t *testing.T) {
	seen := map[[32]byte]bool{}
	b := []byte("the same bytes")
	for _, challenge := range []string{"a", "b"} {
		for n := range 3 {
			seen[keyedDigest(digestOf([]byte(challenge)), n, b)] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d different digests of 6", len(seen))
	}
}

// Damage that the challenge asks for is told by whoever answers: no answer, the file named, a missing file too.
func TestAnswerRefusesDamage(t *testing.T) {
	data := filled(mixed...)
	m := pinned(t, data)
	challenge := challenged(t, m, "x", 1000)
	for what, damage := range map[string]func(memory){
		"part/0006.bin, bytes 1048576 to 2097152": func(d memory) { d["part/0006.bin"][ChunkSize+9] ^= 1 },
		"part/0001.bin": func(d memory) { d["part/0001.bin"][0] ^= 1 },
		"part/0002.bin": func(d memory) { delete(d, "part/0002.bin") },
		"part/0005.bin": func(d memory) { d["part/0005.bin"] = d["part/0005.bin"][:ChunkSize] },
		"part/0004.bin": func(d memory) { d["part/0004.bin"] = append(d["part/0004.bin"], 0) },
	} {
		bad := data.clone()
		damage(bad)
		err := Answer(context.Background(), challenge, m, bad, io.Discard, AnswerOptions{Form: Bytes})
		var chunk *ChunkError
		if !errors.Is(err, ErrAudit) || !errors.As(err, &chunk) || !strings.Contains(err.Error(), what[:len("part/0006.bin")]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := Answer(context.Background(), challenge, pinned(t, filled(1)), data, io.Discard, AnswerOptions{Form: Bytes}); !errors.Is(err, ErrOther) {
		t.Errorf("another manifest: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Answer(ctx, challenge, m, data, io.Discard, AnswerOptions{Form: Bytes}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrAudit) {
		t.Errorf("cancelled: %v", err)
	}
}

// Nobody can prepare: another value picks other chunks. Everybody can draw again: the same value picks the same, and more with a larger count.
func TestDrawsFollowFromTheValue(t *testing.T) {
	sizes := make([]int, 300)
	for i := range sizes {
		sizes[i] = 100 + i
	}
	m := pinned(t, filled(sizes...))
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.StringMatching(`[a-z0-9 ]{1,20}`).Draw(t, "from")
		few, many := rapid.IntRange(1, 60).Draw(t, "few"), rapid.IntRange(60, 299).Draw(t, "many")
		pick := func(from string, n int) []Chunk {
			c, err := NewChallenge(context.Background(), m, from, n)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Chunks) != n {
				t.Fatalf("%d chunks of %d", len(c.Chunks), n)
			}
			return c.Chunks
		}
		a, b := pick(from, few), pick(from, many)
		for _, c := range a {
			if !slices.Contains(b, c) {
				t.Fatalf("%v is among %d and not among %d", c, few, many)
			}
		}
		if few > 8 && slices.Equal(a, pick(from+"!", few)) {
			t.Fatalf("%q and %q pick the same %d chunks", from, from+"!", few)
		}
	})
}

// The draws are those of the specification, by another implementation of BLAKE3.
func TestDrawsByB3sum(t *testing.T) {
	if _, err := exec.LookPath("b3sum"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("b3sum is not installed")
	}
	root := digestOf([]byte("some root"))
	cmd := exec.Command("b3sum", "--derive-key", challengeContext, "--length", "800", "--no-names", "--no-mmap")
	cmd.Stdin = bytes.NewReader(append(root[:], "block 123"...))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	words, err := hex.DecodeString(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	// Of this many positions each is given by two words, and a quarter of all words is left out.
	const n = 3 << 61
	d := NewDraws(challengeContext, root, "block 123", n)
	taken := 0
	for ; len(words) > 0; words = words[8:] {
		w := binary.BigEndian.Uint64(words)
		if w >= 2*n { // 2^64 mod n = 2^64 - 2n
			continue
		}
		taken++
		if got := d.Next(); got != int64(w%n) {
			t.Fatalf("draw %d: expected %d, found %d", taken, w%n, got)
		}
	}
	if taken < 50 || taken > 95 {
		t.Errorf("%d of 100 words were taken, expected about 75", taken)
	}
}

// Bytes are picked with the chance that the assurance says: damage of a share of the bytes is found as often as announced.
func TestDamageIsFoundAsOftenAsSaid(t *testing.T) {
	sizes := make([]int, 400)
	for i := range sizes {
		sizes[i] = 50 + 3*(i%40)
	}
	data := filled(sizes...)
	m := pinned(t, data)
	var names []string
	total := 0
	for name, b := range data {
		names, total = append(names, name), total+len(b)
	}
	slices.Sort(names)
	c, err := NewChallenge(context.Background(), m, "x", 40)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Assure(0.95)
	damaged, share := map[string]bool{}, 0
	for _, name := range names {
		if float64(share)/float64(total) >= a.Share {
			break
		}
		damaged[name] = true
		share += len(data[name])
	}
	const tries = 2000
	found := 0
	for i := range tries {
		c, err := NewChallenge(context.Background(), m, fmt.Sprint("value ", i), 40)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(c.Chunks, func(k Chunk) bool { return damaged[k.Path] }) {
			found++
		}
	}
	// 95 % of 2000 with 5 standard deviations; the values are fixed, so that it passes always or never.
	if found < 1851 || a.Method != Binomial {
		t.Errorf("damage of %.2f %% (%s) was found in %d of %d audits", 100*a.Share, a.Method, found, tries)
	}
}
