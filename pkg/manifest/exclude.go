package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchpin/benchpin/pkg/store"
)

// Limits of what a manifest excludes.
const (
	MaxExcludes     = 1000    // patterns
	MaxExcludeBytes = 1 << 16 // bytes of all patterns together
)

// Exclude is a list of patterns of paths that are no part of a data set. nil excludes nothing. It is safe for concurrent use.
//
// A pattern is a path whose elements may have wildcards: * stands for any characters within an element, ? for one, and the element **
// for any number of elements, none too (at least one at the end). A pattern without a slash, or with none but one at its end, is about
// names anywhere; one with a slash elsewhere is about the path from the root of the data set. It excludes what it matches, and all that
// is below it; with a slash at its end it matches folders only. docs/manifest.md has the whole language.
type Exclude struct {
	texts    []string
	patterns []pattern
}

type pattern struct {
	elements []string
	anywhere bool // one element, about names in any folder
	folder   bool // only folders, so all but the last element of a path
	deep     bool // has **
}

// ParseExclude reads patterns, in any order; repeated ones count once. The error matches ErrField or ErrLimit and names the pattern.
func ParseExclude(patterns []string) (*Exclude, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	x := &Exclude{texts: slices.Compact(slices.Sorted(slices.Values(patterns)))}
	if len(x.texts) > MaxExcludes {
		return nil, fmt.Errorf("%w: exclude: %d patterns, at most %d are allowed", ErrLimit, len(x.texts), MaxExcludes)
	}
	total := 0
	for _, text := range x.texts {
		if total += len(text); total > MaxExcludeBytes {
			return nil, fmt.Errorf("%w: exclude: patterns of more than %d bytes together", ErrLimit, MaxExcludeBytes)
		}
		p, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("%w: exclude: pattern %.200q: %w", ErrField, text, err)
		}
		x.patterns = append(x.patterns, p)
	}
	return x, nil
}

func parsePattern(text string) (pattern, error) {
	var p pattern
	switch {
	case text == "":
		return p, fmt.Errorf("it is empty")
	case len(text) > store.MaxName:
		return p, fmt.Errorf("%d bytes, at most %d are allowed", len(text), store.MaxName)
	case !utf8.ValidString(text):
		return p, fmt.Errorf("it is not UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return p, fmt.Errorf("it has a control character")
	case strings.ContainsAny(text, `[]\`):
		return p, fmt.Errorf(`[, ] and \ have no meaning here; ? stands for one character of a name that has them`)
	case text[0] == '!':
		return p, fmt.Errorf("patterns that begin with ! are not known: what is excluded cannot be taken in again")
	}
	rest, folder := strings.CutSuffix(text, "/")
	rest, rooted := strings.CutPrefix(rest, "/")
	p.folder, p.anywhere = folder, !rooted && !strings.Contains(rest, "/")
	p.elements = strings.Split(rest, "/")
	if len(p.elements) > store.MaxDepth {
		return p, fmt.Errorf("%d elements, at most %d are allowed", len(p.elements), store.MaxDepth)
	}
	for i, e := range p.elements {
		switch {
		case e == "" || e == "." || e == "..":
			return p, fmt.Errorf("its element %q is not allowed", e)
		case e == "**":
			p.deep = true
			if i > 0 && p.elements[i-1] == "**" {
				return p, fmt.Errorf("** follows **")
			}
		case strings.Contains(e, "**"):
			return p, fmt.Errorf("** stands beside other characters in %q; it is an element of its own", e)
		}
	}
	if len(p.elements) == 1 && p.deep {
		return p, fmt.Errorf("it would exclude everything")
	}
	return p, nil
}

// Patterns returns the patterns in the order of their bytes, each once.
func (x *Exclude) Patterns() []string {
	if x == nil {
		return nil
	}
	return slices.Clone(x.texts)
}

// Match reports whether the file of that path is excluded.
func (x *Exclude) Match(path string) bool { return x.match(path, false) }

// MatchFolder reports whether everything in the folder of that path is excluded.
func (x *Exclude) MatchFolder(path string) bool { return x.match(path, true) }

func (x *Exclude) match(path string, folder bool) bool {
	if x == nil {
		return false
	}
	var room [16]string
	elements := room[:0]
	for e := range strings.SplitSeq(path, "/") {
		elements = append(elements, e)
	}
	for i := range x.patterns {
		if x.patterns[i].match(elements, folder) {
			return true
		}
	}
	return false
}

// match reports whether the pattern matches a path or one of the folders above it.
func (p *pattern) match(path []string, folder bool) bool {
	most := len(path)
	if p.folder && !folder {
		most--
	}
	switch {
	case p.anywhere:
		return slices.ContainsFunc(path[:most], func(e string) bool { return matchElement(p.elements[0], e) })
	case !p.deep:
		n := len(p.elements)
		return n <= most && matchElements(p.elements, path[:n])
	}
	for n := 1; n <= most; n++ {
		if matchElements(p.elements, path[:n]) {
			return true
		}
	}
	return false
}

// matchElements matches a whole path. Going back to the last ** is enough, since whatever an earlier one could take in addition the last
// one can take as well; so the time is at most the product of the two lengths.
func matchElements(pattern, path []string) bool {
	star, mark, i := -1, 0, 0
	for j := 0; j < len(path); {
		switch {
		case i < len(pattern) && pattern[i] == "**":
			star, mark = i, j
			if i++; i == len(pattern) {
				return true // it takes the rest, of at least one element
			}
		case i < len(pattern) && matchElement(pattern[i], path[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return i == len(pattern)
}

// matchElement matches one element, in the same way.
func matchElement(pattern, name string) bool {
	star, mark, i := -1, 0, 0
	for j := 0; j < len(name); {
		if i < len(pattern) && pattern[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		_, width := utf8.DecodeRuneInString(name[j:])
		switch {
		case i < len(pattern) && pattern[i] == '?':
			i++
			j += width
		case i < len(pattern) && pattern[i] == name[j]:
			i++
			j++
		case star >= 0:
			_, skip := utf8.DecodeRuneInString(name[mark:])
			mark += skip
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.TrimLeft(pattern[i:], "*") == ""
}

// excepter is a store that leaves out of its listing what is excluded, so that excluded folders are not read, and what may lie there
// (symbolic links, pipes) is no error.
type excepter interface {
	ListExcept(ctx context.Context, skip func(name string, folder bool) bool, yield func(store.Info) error) error
}

// listExcept lists what a store has and x does not exclude.
func listExcept(ctx context.Context, src Source, x *Exclude, yield func(store.Info) error) error {
	if x == nil {
		return src.List(ctx, yield)
	}
	if s, ok := src.(excepter); ok {
		return s.ListExcept(ctx, x.match, yield)
	}
	return src.List(ctx, func(i store.Info) error {
		if x.Match(i.Path) {
			return nil
		}
		return yield(i)
	})
}
