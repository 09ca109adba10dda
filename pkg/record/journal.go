package record

// Journal is where a run stands among all attempts of its host, by the hash-chained journal that every attempt is entered into before it
// begins (docs/journal.md).
type Journal struct {
	Class Class `json:"class"`
	// Head is the digest of the entry of the beginning of this run, and through the chain that of all before it.
	Head string `json:"head"`
	// Entries counts the entries up to and with that one.
	Entries Int `json:"entries"`
	// Attempt counts the attempts with the same workload on the same data set, from 1, up to and with this run.
	Attempt Int `json:"attempt"`
}

func (c *checker) journal(j *Journal) {
	if j == nil {
		return
	}
	c.class("journal.class", j.Class)
	c.digest("journal.head", j.Head)
	c.that(j.Entries >= 1, "journal.entries", "expected at least the entry of this run, found %d", j.Entries)
	c.that(j.Attempt >= 1 && j.Attempt <= j.Entries, "journal.attempt", "expected 1 to %d, as many as there are entries, found %d", j.Entries, j.Attempt)
}
