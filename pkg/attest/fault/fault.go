// Package fault names what verification finds wrong with an archive or an attestation: one class for each way in which a document
// can be refused, and the part of the archive it was found in. It only describes; it never reads, checks or repairs anything, and
// it imports nothing of benchpin.
package fault

import (
	"strings"
	"unicode"
)

// Class is one way in which a document is refused. Classes are errors, so errors.Is(err, fault.DigestMismatch) works on every
// error that verification returns; their texts are stable and stand in the vectors under testdata.
type Class string

// Error returns the name of the class.
func (c Class) Error() string { return string(c) }

// Classes of JSON documents: bundles, statements, OCI manifests.
const (
	// Syntax: no JSON, or data after the document.
	Syntax Class = "json-syntax"
	// Encoding: bytes that are not UTF-8, or escapes that name half a character.
	Encoding Class = "json-encoding"
	// DuplicateKey: one key twice in one object; readers differ in which of them they take.
	DuplicateKey Class = "json-duplicate-key"
	// KeyCase: a key that differs from a known one only in case; some readers take it for the known one.
	KeyCase Class = "json-key-case"
	// UnknownField: a key that the format does not have.
	UnknownField Class = "json-unknown-field"
	// MissingField: a key that the format requires and that is absent.
	MissingField Class = "json-missing-field"
	// WrongType: a value of another JSON type than the format has there, null included.
	WrongType Class = "json-wrong-type"
	// Base64: text that is not the one standard base64 form of its bytes.
	Base64 Class = "base64"
	// Limit: more bytes, levels or elements than the limits allow.
	Limit Class = "limit"
	// NotCanonical: a document that must have one byte form and has another.
	NotCanonical Class = "not-canonical"
)

// Classes of bundles, envelopes and statements.
const (
	// BundleVersion: another media type than that of a Sigstore bundle v0.3.
	BundleVersion Class = "bundle-version"
	// BundleContent: no DSSE envelope, or something beside it that nobody here checks.
	BundleContent Class = "bundle-content"
	// VerificationMaterial: no public key hint, or a certificate, log entry or timestamp, none of which is checked here.
	VerificationMaterial Class = "verification-material"
	// SignatureCount: not exactly one signature.
	SignatureCount Class = "signature-count"
	// PayloadType: the payload is no in-toto statement.
	PayloadType Class = "payload-type"
	// UnknownKey: the key hint names none of the keys given.
	UnknownKey Class = "unknown-key"
	// KeyValidity: the key is limited to a time, and nothing in the bundle proves when it was used.
	KeyValidity Class = "key-validity"
	// Timestamp: a timestamp that is not by an accepted authority, or not over this signature.
	Timestamp Class = "timestamp"
	// LogEntry: a log entry that is not in an accepted log, or of another bundle.
	LogEntry Class = "log-entry"
	// Identity: a certificate that no accepted authority issued, that was not valid at the time of signing, or that is of somebody else.
	Identity Class = "identity"
	// SigningTime: a trusted time that contradicts the record.
	SigningTime Class = "signing-time"
	// BadSignature: the signature is not by that key over this payload.
	BadSignature Class = "bad-signature"
	// StatementType: not exactly in-toto Statement v1.
	StatementType Class = "statement-type"
	// SubjectMissing: a subject that must be there is not, or there are none.
	SubjectMissing Class = "subject-missing"
	// SubjectUnexpected: a subject, or an order of subjects, that the format does not have.
	SubjectUnexpected Class = "subject-unexpected"
	// SubjectDigest: a digest that is absent, malformed, of another algorithm, or of other bytes.
	SubjectDigest Class = "subject-digest"
	// PredicateType: a predicate of unknown type, twice, or not the announced one.
	PredicateType Class = "predicate-type"
	// PredicateMissing: a predicate that the archive must carry is not there.
	PredicateMissing Class = "predicate-missing"
	// PredicateMismatch: the predicate says something else than the record and the manifest do.
	PredicateMismatch Class = "predicate-mismatch"
)

// Classes of archives.
const (
	// FileMissing: a file that the layout, the index or a manifest names is absent.
	FileMissing Class = "file-missing"
	// FileUnexpected: a file, folder, link or device that does not belong to the archive.
	FileUnexpected Class = "file-unexpected"
	// DigestMismatch: content that is not what its digest says.
	DigestMismatch Class = "digest-mismatch"
	// SizeMismatch: content that has another size than was declared.
	SizeMismatch Class = "size-mismatch"
	// Title: a layer title that is unsafe, absent, or there twice.
	Title Class = "title"
	// MediaType: a media type or artifact type that does not belong there.
	MediaType Class = "media-type"
	// Subject: a referrer that refers to something else than this archive.
	Subject Class = "referrer-subject"
)

// Classes of what the archive says.
const (
	// Record: the record is not a canonical record of a known version, or contradicts itself.
	Record Class = "record"
	// Incomplete: the record is of a run that did not finish.
	Incomplete Class = "incomplete"
	// Workload: the workload is not the one whose digest the record gives.
	Workload Class = "workload"
	// Manifest: the data set's manifest is damaged, or not the one that the record names.
	Manifest Class = "manifest"
	// RecordFile: a file beside the record is absent, or not the one that the record names.
	RecordFile Class = "record-file"
	// Certificate: the data set's certificate is damaged, or about another data set.
	Certificate Class = "certificate"
	// Preregistration: what was signed before the run is damaged, or is about another run.
	Preregistration Class = "preregistration"
	// Policy: what the record says is true, and not enough.
	Policy Class = "policy"
	// Unchecked: a check could not be made, because what it needs was refused.
	Unchecked Class = "unchecked"
	// Unavailable: a check could not be made, because it takes another build of this program. Nothing was found wrong.
	Unavailable Class = "unavailable"
)

// Fault is one thing found wrong.
type Fault struct {
	// Class is the way in which it is wrong.
	Class Class `json:"class"`
	// Part is the part of the archive: a file of the layout, with the title of the layer where it has one; "" where the caller knows.
	Part string `json:"part,omitempty"`
	// Field is the place in a JSON document, such as "subject[1].digest.blake3"; "" for the document as a whole.
	Field string `json:"field,omitempty"`
	// Detail says what was expected and what was found.
	Detail string `json:"detail"`
}

// New returns a fault without a part.
func New(class Class, field, detail string) *Fault {
	return &Fault{Class: class, Field: field, Detail: detail}
}

// In returns a copy of the fault found in the given part.
func (f *Fault) In(part string) *Fault {
	c := *f
	c.Part = part
	return &c
}

// Error returns part, field, detail and class in one line.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Part != "" {
		b.WriteString(f.Part + ": ")
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Detail)
	b.WriteString(" [" + string(f.Class) + "]")
	return Printable(b.String())
}

// Printable returns s with every character that a terminal might act on, line ends included, replaced by a question mark: what a
// fault quotes was written by whoever made the archive.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Unwrap returns the class, for errors.Is.
func (f *Fault) Unwrap() error { return f.Class }
