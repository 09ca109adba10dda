// Package export describes pinned data sets and recorded runs in the formats of other communities: Croissant (a data set), RO-Crate (a run), and
// the OpenSSF model signing format (a data set). Everything it writes is taken from a manifest and a record, or was handed to it by whoever
// publishes; docs/export.md says field by field from where.
//
// It verifies digests of what it copies, and never a signature: "benchpin verify" does that. It never fills in what nobody said, never reads the
// data set, and speaks with nobody.
package export
