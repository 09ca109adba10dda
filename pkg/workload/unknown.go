package workload

import (
	"sort"
	"strings"
)

// maxStrangers is the number of unknown keys that are told one by one.
const maxStrangers = 100

// unknown warns about the fields of n, the section at path, that no key in table is for, with the nearest that is. A
// section that holds something else than keys is an error.
func (d *decoder) unknown(n *node, path string, table []key) {
	known, sections := map[string]bool{}, map[string]bool{}
	for _, k := range table {
		known[k.path] = true
		if _, ok := k.field.(*Time); ok {
			known[k.path+stdevSuffix] = true
		}
		for at := k.path; ; {
			i := strings.LastIndexByte(at, '.')
			if i < 0 {
				break
			}
			at = at[:i]
			sections[at] = true
		}
	}
	d.walk(n, path, known, sections)
}

func (d *decoder) walk(n *node, path string, known, sections map[string]bool) {
	for _, f := range n.fields {
		at := f.name
		if path != "" {
			at = path + "." + f.name
		}
		switch {
		case known[at]:
		case sections[at] && f.value.kind == mapKind:
			d.walk(f.value, at, known, sections)
		case sections[at] && f.value.kind == nullKind: // an empty section
		case sections[at]:
			d.errs = append(d.errs, &Error{Position: f.value.pos, Path: at, Msg: "expected a section, found " + f.value.describe(),
				Hint: "write the keys of " + clip(f.name) + " below it, indented"})
		case d.strangers == maxStrangers:
			d.strangers++
			d.warn(f.pos, "", "more unknown keys, ignored", "is it a workload?")
		case d.strangers > maxStrangers:
		default:
			d.strangers++
			hint := ""
			if near := nearestPath(at, known, sections); near != "" {
				hint = "did you mean " + near + "?"
			}
			d.warn(f.pos, clip(at), "unknown key, ignored", hint)
		}
	}
}

// nearestPath is the known key that was probably meant by at, or "".
func nearestPath(at string, known, sections map[string]bool) string {
	var here, names []string
	section, last := "", at
	if i := strings.LastIndexByte(at, '.'); i >= 0 {
		section, last = at[:i+1], at[i+1:]
	}
	elsewhere := map[string]string{}
	for _, set := range []map[string]bool{known, sections} {
		for path := range set {
			name := path[strings.LastIndexByte(path, '.')+1:]
			if strings.TrimSuffix(path, name) == section {
				here = append(here, name)
			} else if elsewhere[name] == "" || path < elsewhere[name] {
				elsewhere[name] = path
			}
			names = append(names, name)
		}
	}
	sort.Strings(here)
	if near := nearest(last, here); near != "" {
		return section + near
	}
	for _, name := range here { // record_length for record_length_bytes
		if len(last) >= 4 && (strings.HasPrefix(name, last) || strings.HasSuffix(name, last)) {
			return section + name
		}
	}
	if path := elsewhere[last]; path != "" {
		return path
	}
	sort.Strings(names)
	if near := nearest(last, names); near != "" && elsewhere[near] != "" {
		return elsewhere[near]
	}
	return ""
}

// nearest is the candidate with the smallest edit distance to s, "" where none is near enough. The first of equals wins.
func nearest(s string, candidates []string) string {
	best, least := "", 1+max(1, min(len(s), 24)/3)
	if len(s) < 2 || len(s) > 64 { // everything short is near to one letter
		return ""
	}
	for _, c := range candidates {
		if n := distance(s, c); n < least {
			best, least = c, n
		}
	}
	return best
}

// distance is Levenshtein's with neighbours that changed places: the least number of bytes inserted, removed, replaced
// or swapped.
func distance(a, b string) int {
	two, one, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(b)]
}
