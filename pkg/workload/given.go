package workload

import "slices"

// Given returns where the key at path got its value, and false where it has its default: nobody asked for it.
func (r *Resolved) Given(path string) (Position, bool) {
	p, ok := r.given[path]
	return p, ok
}

// With resolves the same file again with more values set, "a.b=v" each, after all that was set before. Its overrides name them.
func (r *Resolved) With(set ...string) (*Resolved, error) {
	o := r.options
	o.Set = append(slices.Clone(o.Set), set...)
	return Load(r.loaded, o)
}
