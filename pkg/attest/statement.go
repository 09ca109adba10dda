package attest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// StatementType is the _type of every statement: in-toto Statement v1.
const StatementType = "https://in-toto.io/Statement/v1"

// The names of the three subjects of a statement, in their order.
const (
	// SubjectArchive is the archive's OCI manifest.
	SubjectArchive = "archive"
	// SubjectRecord is the record.
	SubjectRecord = TitleRecord
	// SubjectManifest is the header of the data set's manifest.
	SubjectManifest = TitleManifest
)

// Statement is an in-toto Statement v1.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// Subject is one thing that a statement is about. Digest maps "sha256" and "blake3" to 64 lower-case hex digits each.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// NewSubject is the subject for content with the given digests.
func NewSubject(name string, g oci.Digests) Subject {
	return Subject{Name: name, Digest: map[string]string{"sha256": g.Hex(), "blake3": hex.EncodeToString(g.Blake3[:])}}
}

// NewStatement returns a statement with a predicate that is any value that encoding/json writes.
func NewStatement(subjects []Subject, predicateType string, predicate any) (*Statement, error) {
	raw, err := strictjson.Marshal(predicate)
	if err != nil {
		return nil, fmt.Errorf("write predicate %s: %w", predicateType, err)
	}
	return &Statement{Type: StatementType, Subject: subjects, PredicateType: predicateType, Predicate: raw}, nil
}

// Encode returns the bytes to be signed, after checking that ParseStatement accepts them.
func (s *Statement) Encode() ([]byte, error) {
	payload, err := strictjson.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write statement: %w", err)
	}
	if _, err := ParseStatement(payload); err != nil {
		return nil, fmt.Errorf("write statement: it would not be readable: %w", err)
	}
	return payload, nil
}

// ParseStatement reads the payload of an envelope. The statement must be in-toto v1 to the letter, with one to limits.Subjects
// subjects, each with exactly a sha256 and a blake3 in lower-case hex. Errors are *fault.Fault.
func ParseStatement(payload []byte) (*Statement, error) {
	var s Statement
	if err := strictjson.Unmarshal(payload, limits.BundleBytes, &s); err != nil {
		return nil, statementFault(err)
	}
	if s.Type != StatementType {
		return nil, fault.New(fault.StatementType, "_type", fmt.Sprintf("expected %q, found %q", StatementType, shorten(s.Type)))
	}
	if s.PredicateType == "" {
		return nil, fault.New(fault.PredicateType, "predicateType", "it is empty")
	}
	if p := strings.TrimSpace(string(s.Predicate)); p == "" || p[0] != '{' {
		return nil, fault.New(fault.WrongType, "predicate", "expected an object")
	}
	if len(s.Subject) == 0 {
		return nil, fault.New(fault.SubjectMissing, "subject", "there are none")
	}
	if n := len(s.Subject); n > limits.Subjects {
		return nil, fault.New(fault.Limit, "subject", fmt.Sprintf("%d subjects, at most %d are read", n, limits.Subjects))
	}
	for i, subject := range s.Subject {
		if err := subject.check("subject[" + strconv.Itoa(i) + "]"); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// check refuses every set of digests but a sha256 and a blake3. The in-toto rule, "any one that matches", would let a right sha256
// hide a wrong blake3.
func (s Subject) check(field string) error {
	if n := len(s.Digest); n > limits.SubjectDigests {
		return fault.New(fault.Limit, field+".digest", fmt.Sprintf("%d digests, at most %d are read", n, limits.SubjectDigests))
	}
	for _, algorithm := range []string{"sha256", "blake3"} {
		d, found := s.Digest[algorithm]
		if !found {
			return fault.New(fault.SubjectDigest, field+".digest."+algorithm, "this digest is required and absent")
		}
		if len(d) != 64 || strings.Trim(d, "0123456789abcdef") != "" {
			return fault.New(fault.SubjectDigest, field+".digest."+algorithm,
				fmt.Sprintf("expected 64 lower-case hex digits, found %q", shorten(d)))
		}
	}
	for algorithm := range s.Digest {
		if algorithm != "sha256" && algorithm != "blake3" {
			return fault.New(fault.SubjectDigest, field+".digest", fmt.Sprintf("a digest %q, which nobody here checks", shorten(algorithm)))
		}
	}
	return nil
}

// CheckSubjects compares the statement's subjects with what they must be, in order: names, and every digest of each. It returns
// every difference, nil when there is none.
func (s *Statement) CheckSubjects(expected []Subject) []*fault.Fault {
	var faults []*fault.Fault
	for i, e := range expected {
		field := "subject[" + strconv.Itoa(i) + "]"
		if i >= len(s.Subject) {
			faults = append(faults, fault.New(fault.SubjectMissing, field, fmt.Sprintf("expected %q, and absent", e.Name)))
			continue
		}
		found := s.Subject[i]
		if found.Name != e.Name {
			faults = append(faults, fault.New(fault.SubjectUnexpected, field+".name", fmt.Sprintf("expected %q, found %q", e.Name, shorten(found.Name))))
		}
		for _, algorithm := range []string{"sha256", "blake3"} {
			if found.Digest[algorithm] != e.Digest[algorithm] {
				faults = append(faults, fault.New(fault.SubjectDigest, field+".digest."+algorithm,
					fmt.Sprintf("%s: expected %s, found %s", e.Name, e.Digest[algorithm], found.Digest[algorithm])))
			}
		}
	}
	if len(s.Subject) > len(expected) {
		faults = append(faults, fault.New(fault.SubjectUnexpected, fmt.Sprintf("subject[%d]", len(expected)),
			fmt.Sprintf("expected %d subjects, found %d", len(expected), len(s.Subject))))
	}
	return faults
}

// bundleFault and statementFault give the faults of JSON the classes of what is written in it, where that says more.
func bundleFault(err error) error {
	f := asFault(err)
	material := strings.HasPrefix(f.Field, "verificationMaterial")
	switch {
	case f.Field == "mediaType" && f.Class == fault.MissingField:
		f.Class = fault.BundleVersion
	case material && (f.Class == fault.UnknownField || f.Class == fault.MissingField) && !aliasOf(f.Field, "publicKey"):
		f.Class = fault.VerificationMaterial
	case f.Field == "dsseEnvelope" && f.Class == fault.MissingField, f.Field == "messageSignature":
		f.Class = fault.BundleContent
	}
	return f
}

func statementFault(err error) error {
	f := asFault(err)
	if f.Class == fault.MissingField {
		switch f.Field {
		case "_type":
			f.Class = fault.StatementType
		case "predicateType":
			f.Class = fault.PredicateType
		case "subject":
			f.Class = fault.SubjectMissing
		}
	}
	return f
}

// aliasOf reports whether a path ends in another spelling of a key, as "public_key" is of "publicKey".
func aliasOf(path, key string) bool {
	last := path[strings.LastIndex(path, ".")+1:]
	return last != key && strings.EqualFold(strings.ReplaceAll(last, "_", ""), key)
}

func asFault(err error) *fault.Fault {
	var f *fault.Fault
	if errors.As(err, &f) {
		c := *f
		return &c
	}
	return fault.New(fault.Syntax, "", err.Error())
}

// inPayload says that a field belongs to the signed payload and not to the bundle around it.
func inPayload(err error) error {
	f := asFault(err)
	f.Field = strings.TrimSuffix("payload."+f.Field, ".")
	return f
}

// shorten keeps messages readable whatever a document holds.
func shorten(s string) string {
	if len(s) <= 120 {
		return s
	}
	return strings.ToValidUTF8(s[:117], "") + "..."
}
