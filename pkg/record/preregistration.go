package record

// Preregistration names the document in which somebody signed, before the run, what it would be judged by (docs/attestation.md).
type Preregistration struct {
	Class Class `json:"class"`
	// Digest is that of preregistration.json, which is among the files of the record.
	Digest string `json:"digest"`
}

// PreregistrationName is how the copy of the pre-registration in a run folder is called.
const PreregistrationName = "preregistration.json"

func (c *checker) preregistration(r *Record) {
	p := r.Preregistration
	if p == nil {
		return
	}
	c.class("preregistration.class", p.Class)
	c.digest("preregistration.digest", p.Digest)
	for _, f := range r.Files {
		if f.Name == PreregistrationName {
			c.that(f.Blake3 == p.Digest, "preregistration.digest", "expected %s, that of the file %s", f.Blake3, f.Name)
			return
		}
	}
	c.that(false, "preregistration", "expected the file %s among the record's files", PreregistrationName)
}
