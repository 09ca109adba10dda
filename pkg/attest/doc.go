// Package attest makes and checks attestations: signed in-toto statements about one benchmark result, and the archive that carries
// them (docs/attestation.md). It needs records and manifests and nothing of the engine, so that an auditor's tool can be built from
// it alone. It never runs or repeats a benchmark, never asks a network, and never takes a key from the thing it verifies: whoever
// verifies brings the public key, and without one nothing is verified.
package attest
