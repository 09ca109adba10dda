// Package sigstore is for what third parties add to a signature: RFC 3161 timestamps, certificates of a Fulcio-compatible authority, and
// entries of Rekor logs. It asks for them (Stamped) and judges them (Verifier), through sigstore-go. It contacts nobody but the
// servers whose addresses it was given, and none at all to verify; it trusts nothing but the roots that it was given; and it never decides
// what a statement means.
package sigstore
