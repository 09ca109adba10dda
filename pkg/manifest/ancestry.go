package manifest

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/opencontainers/go-digest"
)

// ErrLineage is wrapped by errors about lineages that cannot be true.
var ErrLineage = errors.New("the lineage does not hold")

// State says what was found of a data set in an ancestry.
type State string

const (
	StateFound   State = "found"   // its manifest, by the digest of the header
	StateMissing State = "missing" // no manifest of that digest; all that is known of it is what its descendant says
	StateDiffers State = "differs" // a manifest of its name, which has another digest
)

// Ancestor is one data set of an ancestry.
type Ancestor struct {
	Parent    // as its manifest says, or, where that was not found, as its descendant says
	State     State
	Path      string   // file of the manifest; empty unless State is StateFound
	Generated bool     // from a recipe; false unless State is StateFound
	Lineage   *Lineage // what it was derived from itself; nil where it does not say, or was not found
	Problem   string   // why the lineage does not hold here; empty where nothing is wrong
}

// Ancestry is a data set with all it was derived from.
type Ancestry struct {
	Sets []Ancestor // each once, every one after all that it was derived from: the data set asked for is the last
}

// Missing returns the number of data sets whose manifests were not found.
func (a Ancestry) Missing() int {
	n := 0
	for _, s := range a.Sets {
		if s.State != StateFound {
			n++
		}
	}
	return n
}

// Err returns an error that matches ErrLineage and names the first data set about which something cannot be true: a manifest that says
// of its parent what the parent's manifest does not say, a manifest that has the name and not the digest of a parent, one that is its own
// ancestor. What is merely missing is no error.
func (a Ancestry) Err() error {
	for _, s := range a.Sets {
		if s.Problem != "" {
			return fmt.Errorf("%w: %s: %s", ErrLineage, s.Name, s.Problem)
		}
	}
	return nil
}

// Trace follows the lineage of a data set through those manifests that are known, finding each by the digest of its header, which
// stands for every byte of it. of must be one of them or is taken in addition. That a manifest has the entries that its header says is
// for [Manifest.Entries] to find.
func Trace(of Known, known []Known) Ancestry {
	t := tracer{byDigest: map[digest.Digest]Known{of.Digest: of}, at: map[digest.Digest]int{}, known: known}
	for _, k := range known {
		if _, ok := t.byDigest[k.Digest]; !ok {
			t.byDigest[k.Digest] = k
		}
	}
	t.visit(Parent{Name: filepath.Base(of.Path), Manifest: of.Digest, Root: of.Header.Root, Count: of.Header.Count, Bytes: of.Header.Bytes})
	for i := range t.sets {
		t.sets[i].judge(t)
	}
	return Ancestry{t.sets}
}

type tracer struct {
	byDigest map[digest.Digest]Known
	known    []Known
	at       map[digest.Digest]int // index in sets, or open
	sets     []Ancestor
}

// open marks a data set whose ancestors are being visited.
const open = -1

// visit appends a data set after all that it was derived from.
func (t *tracer) visit(p Parent) {
	t.at[p.Manifest] = open
	a := Ancestor{Parent: p, State: StateMissing}
	if k, ok := t.byDigest[p.Manifest]; ok {
		h := k.Header
		a.State, a.Path, a.Generated, a.Lineage = StateFound, k.Path, h.Recipe != nil, h.Lineage
		a.Parent = Parent{filepath.Base(k.Path), p.Manifest, h.Root, h.Count, h.Bytes}
	}
	if a.Lineage != nil {
		for _, from := range a.Lineage.From {
			switch i, seen := t.at[from.Manifest]; {
			case !seen:
				t.visit(from)
			case i == open:
				a.Problem = fmt.Sprintf("it says that it was derived from %s, manifest %s, which was derived from it", from.Name, from.Manifest)
			}
		}
	}
	t.at[p.Manifest] = len(t.sets)
	t.sets = append(t.sets, a)
}

// judge says what cannot be true about a data set, knowing all others.
func (a *Ancestor) judge(t tracer) {
	if a.Lineage != nil && a.Problem == "" {
		for _, from := range a.Lineage.From {
			is := t.sets[t.at[from.Manifest]].Parent
			is.Name = from.Name // a file may be renamed
			if is != from {
				a.Problem = fmt.Sprintf("it says that manifest %s of %s has root %s, %d files and %d bytes, and that has root %s, %d files and %d bytes",
					from.Manifest, from.Name, from.Root, from.Count, from.Bytes, is.Root, is.Count, is.Bytes)
				break
			}
		}
	}
	if a.State != StateMissing {
		return
	}
	for _, k := range t.known {
		if _, part := t.at[k.Digest]; filepath.Base(k.Path) == a.Name && !part {
			a.State = StateDiffers
			a.Problem = fmt.Sprintf("expected its manifest %s (root %s), found %s (root %s) in %s: it is another one, or was altered since",
				a.Manifest, a.Root, k.Digest, k.Header.Root, k.Path)
			return
		}
	}
}
