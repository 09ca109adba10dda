package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	"github.com/zeebo/blake3"
)

// Limits of a lineage.
const (
	MaxParents    = 1024 // data sets that one was derived from
	MaxLineageBy  = 4096 // bytes
	MaxParentName = 255  // bytes
)

// Lineage says from which pinned data sets a data set was derived. Nothing can prove that it was: it is what the one who pinned it says.
// What it names, it names exactly, so that nobody can say later that it was derived from anything else.
type Lineage struct {
	By   string   // what derived it: a program and its version, a job, a commit; one line
	From []Parent // at least one, sorted by Manifest, each once
}

// Parent is a data set that another was derived from.
type Parent struct {
	Name     string        // file name of its manifest's header when it was read, without its folders; a hint for people
	Manifest digest.Digest // of its manifest's header: see [Manifest.Digest]
	Root     digest.Digest
	Count    int64
	Bytes    int64
}

// NewLineage makes the lineage of a data set that was derived from others, in any order.
func NewLineage(by string, from ...Parent) (*Lineage, error) {
	l := &Lineage{By: by, From: slices.Clone(from)}
	slices.SortFunc(l.From, func(a, b Parent) int { return strings.Compare(string(a.Manifest), string(b.Manifest)) })
	l.From = slices.CompactFunc(l.From, func(a, b Parent) bool { return a.Manifest == b.Manifest })
	if err := l.check(); err != nil {
		return nil, err
	}
	return l, nil
}

// Equal reports whether two lineages say the same. Both may be nil.
func (l *Lineage) Equal(o *Lineage) bool {
	return (l == nil) == (o == nil) && (l == nil || l.By == o.By && slices.Equal(l.From, o.From))
}

func (l *Lineage) check() error {
	if err := checkText("lineage.by", l.By, MaxLineageBy); err != nil {
		return err
	}
	if len(l.From) == 0 {
		return fmt.Errorf("%w: lineage.from: expected at least one data set", ErrField)
	}
	if len(l.From) > MaxParents {
		return fmt.Errorf("%w: lineage.from: %d data sets, at most %d are allowed", ErrLimit, len(l.From), MaxParents)
	}
	before := digest.Digest("")
	for i := range l.From {
		p := &l.From[i]
		if err := p.check(); err != nil {
			return fmt.Errorf("lineage.from %d: %w", i, err)
		}
		if p.Manifest <= before {
			return fmt.Errorf("%w: lineage.from: manifest %s stands after %s, expected them ascending, each once", ErrCanonical, p.Manifest, before)
		}
		before = p.Manifest
	}
	return nil
}

func (p *Parent) check() error {
	if err := checkText("name", p.Name, MaxParentName); err != nil {
		return err
	}
	if strings.Contains(p.Name, "/") || p.Name == "." || p.Name == ".." {
		return fmt.Errorf("%w: name: expected a file name without folders, found %q", ErrField, p.Name)
	}
	for _, d := range [...]struct {
		what string
		d    digest.Digest
	}{{"manifest", p.Manifest}, {"root", p.Root}} {
		if _, err := ParseDigest(string(d.d)); err != nil {
			return fmt.Errorf("%s: %w", d.what, err)
		}
	}
	if p.Count < 0 || p.Count > MaxNumber {
		return fmt.Errorf("%w: count: expected 0 to %d, found %d", ErrField, int64(MaxNumber), p.Count)
	}
	if p.Bytes < 0 {
		return fmt.Errorf("%w: bytes: expected 0 to %d, found %d", ErrField, int64(math.MaxInt64), p.Bytes)
	}
	return nil
}

// checkText holds a text to what is written without escapes but of quotes and backslashes.
func checkText(what, s string, most int) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: %s: it is empty", ErrField, what)
	case len(s) > most:
		return fmt.Errorf("%w: %s: %d bytes, at most %d are allowed", ErrLimit, what, len(s), most)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: %s: it is not UTF-8: %.100q", ErrField, what, s)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("%w: %s: it has a control character: %.100q", ErrField, what, s)
	}
	return nil
}

func (l *Lineage) append(b []byte) []byte {
	b = append(b, `{"by":"`...)
	b = appendEscaped(b, l.By)
	b = append(b, `","from":[`...)
	for i, p := range l.From {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":"`...)
		b = appendEscaped(b, p.Name)
		b = append(b, `","manifest":"`+string(p.Manifest)+`","root":"`+string(p.Root)+`","count":`...)
		b = strconv.AppendInt(b, p.Count, 10)
		b = append(b, `,"bytes":"`...)
		b = strconv.AppendInt(b, p.Bytes, 10)
		b = append(b, `"}`...)
	}
	return append(b, "]}"...)
}

// lineageJSON is what the bytes are read into before they are compared with what append writes.
type lineageJSON struct {
	By   string `json:"by"`
	From []struct {
		Name     string `json:"name"`
		Manifest string `json:"manifest"`
		Root     string `json:"root"`
		Count    int64  `json:"count"`
		Bytes    string `json:"bytes"`
	} `json:"from"`
}

func (j *lineageJSON) lineage() (*Lineage, error) {
	if j == nil {
		return nil, nil
	}
	l := &Lineage{By: j.By}
	for _, p := range j.From {
		n, err := strconv.ParseInt(p.Bytes, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: lineage.from: bytes: expected a decimal number in quotes, found %.40q", ErrField, p.Bytes)
		}
		l.From = append(l.From, Parent{p.Name, digest.Digest(p.Manifest), digest.Digest(p.Root), p.Count, n})
	}
	return l, nil
}

// ReadHeader reads and checks the header of a saved manifest alone, and returns it with its digest (see [Manifest.Digest]). What it says
// of entries is not compared with them.
func ReadHeader(headerPath string) (*Header, digest.Digest, error) {
	raw, err := readLimited(headerPath, MaxHeaderBytes)
	if err != nil {
		return nil, "", err
	}
	h, err := ParseHeader(raw)
	if err != nil {
		return nil, "", fmt.Errorf("manifest %s: %w", headerPath, err)
	}
	return h, FormatDigest(blake3.Sum256(raw)), nil
}

// ParentOf describes the data set of a saved manifest as one that another is derived from.
func ParentOf(headerPath string) (Parent, error) {
	m, err := Open(headerPath)
	if err != nil {
		return Parent{}, err
	}
	h := m.Header()
	p := Parent{Name: filepath.Base(headerPath), Manifest: m.Digest(), Root: h.Root, Count: h.Count, Bytes: h.Bytes}
	return p, errors.Join(p.check(), m.Close())
}

// Known is a manifest whose header was found in a file.
type Known struct {
	Path   string
	Digest digest.Digest
	Header *Header
}

// FindHeaders reads the headers of those manifests that lie in a folder, by name. Files that are none are passed over, also damaged ones:
// of those, problem is called with the error, unless it is nil. Folders below are not looked into.
func FindHeaders(folder string, problem func(error)) ([]Known, error) {
	names, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("search for manifests: %w", err)
	}
	var found []Known
	for _, n := range names {
		path := filepath.Join(folder, n.Name())
		if !n.Type().IsRegular() || filepath.Ext(path) != ".json" || !looksLikeHeader(path) {
			continue
		}
		h, d, err := ReadHeader(path)
		if err != nil {
			if problem != nil {
				problem(err)
			}
			continue
		}
		found = append(found, Known{path, d, h})
	}
	return found, nil
}

// looksLikeHeader reads no more of a file than tells whether it claims to be a manifest.
func looksLikeHeader(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const begin = `{"media_type":"` + MediaType + `"`
	b := make([]byte, len(begin))
	n, _ := f.ReadAt(b, 0)
	return bytes.Equal(b[:n], []byte(begin))
}
