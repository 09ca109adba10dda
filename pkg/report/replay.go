package report

import "github.com/benchpin/benchpin/pkg/record"

// ReplayText says which result a run repeats; "" where it repeats none.
func ReplayText(r *record.Record) string {
	p := r.ReplayOf
	if p == nil {
		return ""
	}
	text := "run " + clean(p.Run) + " of the archive " + clean(p.Archive)
	if p.Unverified {
		text += ", which DID NOT VERIFY where it was replayed"
	}
	return text
}
