package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
)

// Kind says in which way a file differs from its manifest, or between two manifests.
type Kind string

const (
	Missing Kind = "missing" // in the manifest, not in the store
	Extra   Kind = "extra"   // in the store, not in the manifest
	Changed Kind = "changed" // in both, with other bytes
	Renamed Kind = "renamed" // missing under one path, there with the same bytes under one that is extra

	Removed Kind = "removed" // in the first of two manifests, not in the second
	Added   Kind = "added"   // in the second of two manifests, not in the first
)

// Side is what a file should be, or is.
type Side struct {
	Size int64 `json:"size"`
	// Digest is empty where it was not computed, because the size decided or nobody asked.
	Digest digest.Digest `json:"digest,omitempty"`
}

func (s *Side) String() string {
	switch {
	case s == nil:
		return "no file"
	case s.Digest == "":
		return fmt.Sprintf("%d bytes", s.Size)
	}
	return fmt.Sprintf("%d bytes %s", s.Size, s.Digest)
}

// MismatchError is one difference between a store and its manifest.
type MismatchError struct {
	Kind Kind   `json:"kind"`
	Path string `json:"path"`
	// To is the path in the store of a file that was renamed; empty for the other kinds.
	To string `json:"to,omitempty"`
	// Expected is nil for an extra file, Found for a missing one.
	Expected *Side `json:"expected,omitempty"`
	Found    *Side `json:"found,omitempty"`
}

func (e *MismatchError) Error() string {
	if e.Kind == Renamed {
		return fmt.Sprintf("%s is renamed: its bytes are at %s (%s)", e.Path, e.To, e.Found)
	}
	return fmt.Sprintf("%s is %s: expected %s, found %s", e.Path, e.Kind, e.Expected, e.Found)
}

// pairRenames replaces each pair of a missing and an extra file with the same bytes by one renamed file, in order of
// paths. digests holds those of extra files that were computed, by path.
func pairRenames(ms []*MismatchError, digests map[string]digest.Digest) []*MismatchError {
	type content struct {
		size   int64
		digest digest.Digest
	}
	byPath := func(a, b *MismatchError) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind)) }
	slices.SortFunc(ms, byPath)
	extras := map[content][]*MismatchError{}
	for _, m := range ms {
		if d := digests[m.Path]; m.Kind == Extra && d != "" {
			m.Found.Digest = d
			c := content{m.Found.Size, d}
			extras[c] = append(extras[c], m)
		}
	}
	gone := map[*MismatchError]bool{}
	for _, m := range ms {
		if m.Kind != Missing {
			continue
		}
		c := content{m.Expected.Size, m.Expected.Digest}
		if q := extras[c]; len(q) > 0 {
			m.Kind, m.To, m.Found = Renamed, q[0].Path, q[0].Found
			gone[q[0]] = true
			extras[c] = q[1:]
		}
	}
	return slices.DeleteFunc(ms, func(m *MismatchError) bool { return gone[m] })
}
