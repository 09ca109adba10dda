package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func digest(c string) string { return "blake3:" + strings.Repeat(c, 64) }

func start(run, workload, data string) Entry {
	return Entry{Time: "2026-11-30T14:15:00Z", Event: Start, Run: run, Name: "small", Workload: digest(workload), Data: digest(data)}
}

func end(e Entry, s Status, au float64) Entry {
	e.Event, e.Status, e.Time = End, s, "2026-11-30T14:16:00.5Z"
	if s != Failed {
		e.Record, e.AU = digest("e"), &au
	}
	return e
}

// written makes a journal of three attempts: one complete, one without an end, one of another workload that failed.
func written(t testing.TB) (string, *Journal) {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName)
	a, b, c := start("20261130T141500Z-aaaaaa", "a", "d"), start("20261130T141500Z-bbbbbb", "a", "d"), start("20261130T141500Z-cccccc", "b", "d")
	var j *Journal
	for _, e := range []Entry{a, end(a, Complete, 97.5), b, c, end(c, Failed, 0)} {
		var err error
		if j, err = Append(path, e); err != nil {
			t.Fatal(err)
		}
	}
	return path, j
}

// The bytes of a journal never change: who holds a head must find it again with any later version.
func TestGoldenJournal(t *testing.T) {
	path, _ := written(t)
	found, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "golden.jsonl")
	expected, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(expected, found) {
		t.Errorf("%s is no longer what is written:\n%s", golden, found)
	}
}

func TestAttempts(t *testing.T) {
	path, j := written(t)
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Head() != j.Head() || len(again.Entries) != 5 {
		t.Fatalf("Append returned %d entries with %s, Open %d with %s", len(j.Entries), j.Head(), len(again.Entries), again.Head())
	}
	var states []string
	for _, a := range again.Attempts() {
		states = append(states, fmt.Sprint(a.Number, " ", a.State()))
	}
	if got := strings.Join(states, ", "); got != "1 complete, 2 no end, 1 failed" {
		t.Errorf("attempts: %s", got)
	}
	if n := len(again.Alike(digest("a"), digest("d"))); n != 2 {
		t.Errorf("%d attempts alike, expected 2", n)
	}
	for n, head := range again.Digests {
		if !again.Holds(int64(n)+1, head) || again.Holds(int64(n)+2, head) || again.Holds(int64(n), head) {
			t.Errorf("entry %d is not where it is held to be", n+1)
		}
	}
	if again.Holds(-1, Zero) || again.Holds(6, Zero) || !again.Holds(0, Zero) {
		t.Error("numbers of entries that are not there")
	}
}

// Every way to change a journal by one bit, one line or its order is found; what is cut off at the end of a line is not, which is what
// heads are held for.
func TestEveryChangeIsFound(t *testing.T) {
	path, j := written(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(b) {
		c := bytes.Clone(b)
		c[bit/8] ^= 1 << (bit % 8)
		found, err := Read(c)
		switch {
		case err != nil && !errors.Is(err, ErrBroken):
			t.Fatalf("bit %d: %v", bit, err)
		case err == nil && found.Head() == j.Head():
			t.Fatalf("bit %d: not found", bit)
		case err == nil && bit/8 < bytes.LastIndexByte(b[:len(b)-1], '\n'):
			t.Fatalf("bit %d: the chain holds although a line before the last was changed", bit)
		}
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := range lines[:len(lines)-1] {
		without := bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil)
		swapped := append([][]byte{}, lines...)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		twice := bytes.Join(append(append([][]byte{}, lines[:i+1]...), lines[i:]...), nil)
		for what, c := range map[string][]byte{"without": without, "swapped": bytes.Join(swapped, nil), "twice": twice} {
			if _, err := Read(c); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("%s line %d: %v", what, i+1, err)
			}
		}
	}
	if short, err := Read(bytes.Join(lines[:3], nil)); err != nil || short.Holds(5, j.Head()) {
		t.Errorf("a journal cut after a line: %v; it must not hold the head", err)
	}
}

// What a killed writer left is removed by the next one, which says so; what was whole stays.
func TestTornLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("journal-%d-%s.jsonl", os.Getpid(), rapid.StringMatching(`[a-z]{12}`).Draw(t, "name")))
		defer os.Remove(path)
		a := start("20261130T141500Z-aaaaaa", "a", "d")
		if _, err := Append(path, a); err != nil {
			t.Fatal(err)
		}
		whole, _ := os.ReadFile(path)
		next := end(a, Complete, 50)
		if _, err := Append(path, next); err != nil {
			t.Fatal(err)
		}
		both, _ := os.ReadFile(path)
		cut := rapid.IntRange(len(whole), len(both)-1).Draw(t, "cut")
		if err := os.Truncate(path, int64(cut)); err != nil {
			t.Fatal(err)
		}
		if j, err := Open(path); err != nil || len(j.Entries) != 1 || j.Torn != int64(cut-len(whole)) {
			t.Fatalf("cut at %d: %v %+v", cut, err, j)
		}
		j, err := Append(path, next)
		if err != nil {
			t.Fatal(err)
		}
		if last := j.Entries[1]; last.Torn != int64(cut-len(whole)) || j.Torn != 0 {
			t.Fatalf("cut at %d: the entry tells of %d bytes", cut, last.Torn)
		}
		if again, err := Open(path); err != nil || again.Head() != j.Head() {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	})
}

// Many processes append to one journal at once: nothing is lost, and the chain holds.
func TestConcurrentAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	const writers, runs = 8, 5
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for r := range runs {
				a := start(fmt.Sprintf("20261130T141500Z-%02x%02x", w, r), "a", "d")
				_, err := Append(path, a)
				if err == nil {
					_, err = Append(path, end(a, Missed, 1))
				}
				errs[w] = errors.Join(errs[w], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Entries) != 2*writers*runs || len(j.Alike(digest("a"), digest("d"))) != writers*runs {
		t.Errorf("%d entries of %d", len(j.Entries), 2*writers*runs)
	}
}

func TestAppendRefuses(t *testing.T) {
	path, j := written(t)
	a := start("20261130T141500Z-aaaaaa", "a", "d")
	other := start("20261130T141500Z-bbbbbb", "b", "d")
	bad := start("20261130T141500Z-dddddd", "a", "d")
	bad.Data = "blake3:0"
	unknown := start("20261130T141500Z-dddddd", "a", "d")
	for what, e := range map[string]Entry{
		"begins twice": a, "ends twice": end(a, Complete, 1), "ends and never began": end(unknown, Failed, 0),
		"another workload": end(other, Failed, 0), "a digest": bad, "0 to 100": end(start("20261130T141500Z-bbbbbb", "a", "d"), Missed, 101),
	} {
		if _, err := Append(path, e); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("expected %q, found %v", what, err)
		}
	}
	if again, err := Open(path); err != nil || again.Head() != j.Head() {
		t.Errorf("something was written: %v", err)
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Append(path, unknown); !errors.Is(err, ErrBroken) {
		t.Errorf("added to a broken journal: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "{}\n" {
		t.Errorf("a broken journal was changed to %q", b)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Append(t.TempDir(), unknown); err == nil {
		t.Error("a folder was taken for a journal")
	}
}

// FuzzRead: nothing makes reading panic, and what is accepted is what would be written.
func FuzzRead(f *testing.F) {
	path, _ := written(f)
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-7])
	f.Add([]byte("{\"v\":1}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := Read(b)
		if err != nil {
			if !errors.Is(err, ErrBroken) {
				t.Fatal(err)
			}
			return
		}
		var again []byte
		for i := range j.Entries {
			line, err := j.Entries[i].Encode()
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, line...)
		}
		if !bytes.Equal(again, j.Raw) || int64(len(j.Raw))+j.Torn != int64(len(b)) {
			t.Errorf("read %q, writes %q", b, again)
		}
	})
}
