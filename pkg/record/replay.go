package record

// ReplayOf says whose workload and data set a run took over, to find out whether it gets the same (docs/replay.md).
type ReplayOf struct {
	Class Class `json:"class"`
	// Archive is the digest of the OCI manifest of the archive that was replayed, "sha256:<hex>".
	Archive string `json:"archive"`
	// Record is the BLAKE3 digest of the record in it, Run the name of its run.
	Record string `json:"record"`
	Run    string `json:"run"`
	// Unverified is true when the archive did not verify, or nobody said by which key it should, and it was replayed all the same.
	Unverified bool `json:"unverified,omitempty"`
}

func (c *checker) replayOf(r *Record) {
	p := r.ReplayOf
	if p == nil {
		return
	}
	c.class("replay_of.class", p.Class)
	c.that(isSHA256(p.Archive), "replay_of.archive", "expected sha256: and 64 lower-case hexadecimal digits, found %q", p.Archive)
	c.digest("replay_of.record", p.Record)
	c.that(p.Run != "" && p.Run != r.ID, "replay_of.run", "expected the name of another run, found %q", p.Run)
}
