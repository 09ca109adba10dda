package attest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// vector is one bundle that must be refused, and why. The files are the specification: they are written once, by -update, and read
// by every later version.
type vector struct {
	// Why says what is wrong with it, for people.
	Why string `json:"why"`
	// Class is the fault that verification must find; "" for a bundle that must be accepted.
	Class fault.Class `json:"class"`
	// SigstoreGo says whether sigstore-go accepts the same bundle for the first subject: where it does, our strictness is all there is.
	SigstoreGo bool `json:"sigstore_go_accepts"`
	// Key is the public key given to the verifier; Expired limits it to a time that is over.
	Key     string `json:"key"`
	Expired bool   `json:"expired,omitempty"`
	// Subjects are the contents of archive manifest, record and manifest header. NoArtifact asks sigstore-go without one.
	Subjects   [3]string `json:"subjects"`
	NoArtifact bool      `json:"no_artifact,omitempty"`
	// Bundle are the bytes to verify.
	Bundle string `json:"bundle"`
}

func (v *vector) expected() []attest.Subject {
	var s []attest.Subject
	for i, name := range []string{attest.SubjectArchive, attest.SubjectRecord, attest.SubjectManifest} {
		s = append(s, attest.NewSubject(name, oci.DigestsOf([]byte(v.Subjects[i]))))
	}
	return s
}

// verify returns the classes of everything wrong with the vector.
func (v *vector) verify(t testing.TB) []error {
	t.Helper()
	key, err := attest.ParsePublic([]byte(v.Key))
	must(t, err)
	if v.Expired {
		key = key.WithValidity(time.Unix(1, 0), time.Unix(2, 0))
	}
	got, err := attest.VerifyBundle([]byte(v.Bundle), []attest.PublicKey{key})
	if err != nil {
		return []error{err}
	}
	var all []error
	for _, f := range got.Statement.CheckSubjects(v.expected()) {
		all = append(all, f)
	}
	return all
}

var update = flag.Bool("update", false, "write the vectors that are not there yet")

const vectorsFolder = "testdata/vectors"

func TestVectors(t *testing.T) {
	made := makeVectors(t)
	if *update {
		must(t, os.MkdirAll(vectorsFolder, 0o777))
		for name, v := range made {
			writeVector(t, vectorsFolder, name, v)
		}
	}
	paths, err := filepath.Glob(filepath.Join(vectorsFolder, "*.json"))
	must(t, err)
	if len(paths) < 65 || len(paths) != len(made) {
		t.Fatalf("%d files, and %d vectors are made", len(paths), len(made))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			must(t, err)
			v := decodeVector[vector](t, raw)
			if v.Why == "" || (v.Class == "") != (filepath.Base(path) == "good.json") {
				t.Fatal("the vector does not say what must be found, or why")
			}
			// Some certificates and ECDSA signatures are other ones each time.
			random := strings.HasPrefix(filepath.Base(path), "certificate-") || filepath.Base(path) == "signature-pair-of-integers.json"
			again, ok := made[strings.TrimSuffix(filepath.Base(path), ".json")]
			if !ok || !random && !bytes.Equal(encodeVector(t, again), raw) {
				t.Error("the vector is not made as its file says")
			}
			problems := v.verify(t)
			switch {
			case v.Class == "" && len(problems) > 0:
				t.Errorf("must be accepted: %v", problems)
			case v.Class != "" && (len(problems) == 0 || !errors.Is(errors.Join(problems...), v.Class)):
				t.Errorf("expected fault %q, found %v", v.Class, problems)
			}
			key, err := attest.ParsePublic([]byte(v.Key))
			must(t, err)
			artifact := []byte(v.Subjects[0])
			if v.NoArtifact {
				artifact = nil
			}
			if err := sigstoreGo(t, []byte(v.Bundle), key, artifact, v.Expired); (err == nil) != v.SigstoreGo {
				t.Errorf("sigstore-go accepts it: %v; the vector says %v (%v)", err == nil, v.SigstoreGo, err)
			}
		})
	}
}

// vectorMaker makes bundles step by step, so that each step can be done wrongly.
type vectorMaker struct {
	t      testing.TB
	secret ed25519.PrivateKey
	public attest.PublicKey
	base   vector
}

func (m *vectorMaker) statement() string {
	s, err := attest.NewStatement(m.base.expected(), attest.ResultType, map[string]any{"n": json.Number("9007199254740993")})
	must(m.t, err)
	raw, err := s.Encode()
	must(m.t, err)
	return string(raw)
}

func pae(payloadType, payload string) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

const inToto = "application/vnd.in-toto+json"

func (m *vectorMaker) bundle(payload string, sig []byte) string {
	return fmt.Sprintf(`{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":%q}},"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`,
		oci.BundleType, m.public.Hint(), base64.StdEncoding.EncodeToString([]byte(payload)), inToto, base64.StdEncoding.EncodeToString(sig))
}

// signed is the bundle of a payload that was changed before it was signed.
func (m *vectorMaker) signed(payload string) string {
	return m.bundle(payload, ed25519.Sign(m.secret, pae(inToto, payload)))
}

// once replaces what must be there exactly once.
func (m *vectorMaker) once(s, old, new string) string {
	m.t.Helper()
	if strings.Count(s, old) != 1 {
		m.t.Fatalf("%q stands %d times in %s", old, strings.Count(s, old), s)
	}
	return strings.Replace(s, old, new, 1)
}

// makeVectors makes all vectors from a key that is always the same.
func makeVectors(t testing.TB) map[string]vector {
	seed := sha256.Sum256([]byte("benchpin attestation vectors"))
	m := &vectorMaker{t: t, secret: ed25519.NewKeyFromSeed(seed[:])}
	var err error
	m.public, err = attest.NewPublicKey(m.secret.Public())
	must(t, err)
	m.base = vector{Key: string(m.public.PEM()), Subjects: [3]string{"archive manifest", "record", "manifest header"}}
	all := m.all()
	for name, v := range all {
		v.Key, v.Subjects = cmpOr(v.Key, m.base.Key), m.base.Subjects
		all[name] = v
	}
	return all
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (m *vectorMaker) all() map[string]vector {
	s := m.statement()
	good := m.signed(s)
	// change changes the payload before, edit the bundle after signing.
	change := func(old, new string) string { return m.signed(m.once(s, old, new)) }
	edit := func(old, new string) string { return m.once(good, old, new) }
	x := m.base.expected()
	blake, sha := x[0].Digest["blake3"], x[0].Digest["sha256"]
	material := fmt.Sprintf(`{"publicKey":{"hint":%q}}`, m.public.Hint())
	cert := base64.StdEncoding.EncodeToString(m.certificate())
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	otherKey, err := attest.NewPublicKey(other.Public())
	must(m.t, err)
	sig := ed25519.Sign(m.secret, pae(inToto, s))
	sigText := base64.StdEncoding.EncodeToString(sig)
	subjectList := s[strings.Index(s, `[`) : strings.Index(s, `]`)+1]
	many := `[` + strings.Repeat(`{"name":"archive","digest":{"sha256":"`+sha+`","blake3":"`+blake+`"}},`, 1024) + subjectList[1:]
	raw, rawKey := m.pairSignature(s)
	old := "application/vnd.dev.sigstore.bundle+json;version=0."
	all := m.more(s, good)
	maps.Copy(all, map[string]vector{
		"good": {Why: "a good bundle", SigstoreGo: true, Bundle: good},

		// What sigstore-go accepts.
		"statement-without-type":     {Why: "no _type", Class: fault.StatementType, SigstoreGo: true, Bundle: change(`"_type":"https://in-toto.io/Statement/v1",`, ``)},
		"statement-other-type":       {Why: "any _type", Class: fault.StatementType, SigstoreGo: true, Bundle: change(`Statement/v1`, `Sentence/v1`)},
		"statement-v0.1":             {Why: "an older statement", Class: fault.StatementType, SigstoreGo: true, Bundle: change(`Statement/v1`, `Statement/v0.1`)},
		"predicate-type-missing":     {Why: "no predicateType", Class: fault.PredicateType, SigstoreGo: true, Bundle: change(`"predicateType":"`+attest.ResultType+`",`, ``)},
		"predicate-type-alias":       {Why: "predicate_type for predicateType", Class: fault.UnknownField, SigstoreGo: true, Bundle: change(`"predicateType"`, `"predicate_type"`)},
		"statement-key-case":         {Why: "a second predicateType in other case, which encoding/json takes: half of sigstore-go does, its last step refuses", Class: fault.KeyCase, Bundle: change(`"predicate":`, `"PredicateType":"https://example.com/other","predicate":`)},
		"subject-wrong-blake3":       {Why: "a wrong blake3 beside a right sha256", Class: fault.SubjectDigest, SigstoreGo: true, Bundle: change(blake, strings.Repeat("0", 64))},
		"subject-later-matches":      {Why: "only the second subject is the artifact", Class: fault.SubjectDigest, SigstoreGo: true, Bundle: change(`"subject":[`, `"subject":[{"name":"archive","digest":{"sha256":"`+blake+`","blake3":"`+sha+`"}},`)},
		"subject-upper-case":         {Why: "digests in upper-case hex", Class: fault.SubjectDigest, SigstoreGo: true, Bundle: change(sha, strings.ToUpper(sha))},
		"subject-no-blake3":          {Why: "a subject without blake3", Class: fault.SubjectDigest, SigstoreGo: true, Bundle: m.signed(m.once(s, `"blake3":"`+blake+`",`, ``))},
		"subject-other-algorithm":    {Why: "a third digest that nobody checks", Class: fault.SubjectDigest, SigstoreGo: true, Bundle: change(`"blake3":"`+blake+`"`, `"blake3":"`+blake+`","sha512":"00"`)},
		"subject-left-out":           {Why: "record and manifest are no subjects", Class: fault.SubjectMissing, SigstoreGo: true, Bundle: change(subjectList, subjectList[:strings.Index(subjectList, "}}")+2]+"]")},
		"subject-more":               {Why: "a fourth subject", Class: fault.SubjectUnexpected, SigstoreGo: true, Bundle: change(subjectList, strings.TrimSuffix(subjectList, "]")+`,{"name":"x","digest":{"sha256":"`+sha+`","blake3":"`+blake+`"}}]`)},
		"subject-renamed":            {Why: "the record goes by another name", Class: fault.SubjectUnexpected, SigstoreGo: true, Bundle: change(`"name":"record.json"`, `"name":"other.json"`)},
		"subject-none":               {Why: "no subjects, and no artifact asked for", Class: fault.SubjectMissing, SigstoreGo: true, NoArtifact: true, Bundle: change(subjectList, `[]`)},
		"bundle-v0.1":                {Why: "downgrade to bundle 0.1", Class: fault.BundleVersion, SigstoreGo: true, Bundle: edit(oci.BundleType, old+"1")},
		"bundle-v0.2":                {Why: "downgrade to bundle 0.2", Class: fault.BundleVersion, SigstoreGo: true, Bundle: edit(oci.BundleType, old+"2")},
		"bundle-v0.3-old-form":       {Why: "the old form of the media type", Class: fault.BundleVersion, SigstoreGo: true, Bundle: edit(oci.BundleType, old+"3")},
		"bundle-snake-case":          {Why: "snake_case fields", Class: fault.UnknownField, SigstoreGo: true, Bundle: m.once(edit(`"dsseEnvelope"`, `"dsse_envelope"`), `"mediaType"`, `"media_type"`)},
		"bundle-url-base64":          {Why: "URL-safe base64", Class: fault.Base64, SigstoreGo: true, Bundle: edit(sigText, base64.URLEncoding.EncodeToString(sig))},
		"bundle-unpadded-base64":     {Why: "base64 without padding", Class: fault.Base64, SigstoreGo: true, Bundle: edit(sigText, strings.TrimRight(sigText, "="))},
		"bundle-keyid-of-other":      {Why: "a keyid that contradicts the hint", Class: fault.VerificationMaterial, Bundle: edit(`[{"sig"`, `[{"keyid":"other","sig"`)},
		"bundle-timestamps":          {Why: "an empty list of timestamps, which nobody checks", Class: fault.VerificationMaterial, SigstoreGo: true, Bundle: edit(material, strings.TrimSuffix(material, "}")+`,"timestampVerificationData":{}}`)},
		"bundle-null-field":          {Why: "null for a field", Class: fault.VerificationMaterial, SigstoreGo: true, Bundle: edit(material, strings.TrimSuffix(material, "}")+`,"timestampVerificationData":null}`)},
		"key-expired":                {Why: "a key whose time is over, and no timestamp", Class: fault.KeyValidity, SigstoreGo: true, Expired: true, Bundle: good},
		"signature-pair-of-integers": {Why: "an ECDSA signature as two raw numbers", Class: fault.BadSignature, SigstoreGo: true, Key: rawKey, Bundle: raw},

		// What sigstore-go refuses too.
		"payload-type-other":      {Why: "another payload type, signed", Class: fault.PayloadType, Bundle: m.once(m.bundle(s, ed25519.Sign(m.secret, pae("text/plain", s))), inToto, "text/plain")},
		"payload-type-changed":    {Why: "the payload type changed after signing", Class: fault.PayloadType, Bundle: edit(inToto, "application/json")},
		"payload-flipped":         {Why: "the payload changed after signing", Class: fault.BadSignature, Bundle: m.bundle(m.once(s, "9007199254740993", "9007199254740992"), sig)},
		"signatures-none":         {Why: "no signature", Class: fault.SignatureCount, Bundle: edit(`[{"sig":"`+sigText+`"}]`, `[]`)},
		"signatures-two":          {Why: "two signatures", Class: fault.SignatureCount, Bundle: edit(`[{`, `[{"sig":"`+sigText+`"},{`)},
		"signature-empty":         {Why: "an empty signature", Class: fault.BadSignature, Bundle: edit(sigText, ``)},
		"signature-without-pae":   {Why: "the payload was signed without DSSE's encoding", Class: fault.BadSignature, Bundle: m.bundle(s, ed25519.Sign(m.secret, []byte(s)))},
		"other-key-same-hint":     {Why: "signed by another key that claims this key's hint", Class: fault.BadSignature, Bundle: m.bundle(s, ed25519.Sign(other, pae(inToto, s)))},
		"other-key":               {Why: "a good bundle, and another key given", Class: fault.UnknownKey, Key: string(otherKey.PEM()), Bundle: good},
		"certificate-self-signed": {Why: "a self-signed certificate for a key", Class: fault.VerificationMaterial, Bundle: edit(material, `{"certificate":{"rawBytes":"`+cert+`"}}`)},
		"certificate-chain":       {Why: "a chain, which v0.3 does not have", Class: fault.VerificationMaterial, Bundle: edit(material, `{"x509CertificateChain":{"certificates":[{"rawBytes":"`+cert+`"}]}}`)},
		"material-empty":          {Why: "nothing to verify with", Class: fault.VerificationMaterial, Bundle: edit(material, `{}`)},
		"json-duplicate-key":      {Why: "one key twice in the bundle", Class: fault.DuplicateKey, Bundle: edit(`"dsseEnvelope":`, `"mediaType":"`+oci.BundleType+`","dsseEnvelope":`)},
		"json-key-case":           {Why: "a key of the bundle in other case", Class: fault.KeyCase, Bundle: edit(`"payloadType"`, `"PayloadType"`)},
		"json-unknown-field":      {Why: "a field that bundles do not have", Class: fault.UnknownField, Bundle: edit(`"dsseEnvelope":`, `"x":1,"dsseEnvelope":`)},
		"json-trailing-data":      {Why: "data after the bundle", Class: fault.Syntax, Bundle: good + "{}"},
		"json-not-utf8-escape":    {Why: "half a character in the payload", Class: fault.Encoding, Bundle: change(`"name":"record.json"`, `"name":"\ud800"`)},
		"bundle-two-contents":     {Why: "a message signature beside the envelope", Class: fault.BundleContent, Bundle: edit(`"dsseEnvelope":`, `"messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"AA=="},"signature":"AA=="},"dsseEnvelope":`)},
		"bundle-no-envelope":      {Why: "nothing is signed", Class: fault.BundleContent, Bundle: `{"mediaType":"` + oci.BundleType + `","verificationMaterial":` + material + `}`},
		"bundle-v0.4":             {Why: "a version that does not exist yet", Class: fault.BundleVersion, Bundle: edit("bundle.v0.3", "bundle.v0.4")},
		"bundle-no-media-type":    {Why: "no media type", Class: fault.BundleVersion, Bundle: edit(`"mediaType":"`+oci.BundleType+`",`, ``)},
		"subjects-too-many":       {Why: "1,027 subjects", Class: fault.Limit, Bundle: change(subjectList, many)},
		"statement-duplicate-key": {Why: "two subjects lists in the payload", Class: fault.DuplicateKey, Bundle: change(`"predicateType":`, `"subject":[],"predicateType":`)},
		"statement-no-object":     {Why: "a payload that is no statement", Class: fault.WrongType, Bundle: m.signed(`[]`)},
	})
	return all
}

// more are single leaves altered, and material that the core does not judge.
func (m *vectorMaker) more(s, good string) map[string]vector {
	change := func(old, new string) string { return m.signed(m.once(s, old, new)) }
	edit := func(old, new string) string { return m.once(good, old, new) }
	sig := ed25519.Sign(m.secret, pae(inToto, s))
	// after is the bundle with a payload that was altered after it was signed.
	after := func(old, new string) string { return m.bundle(m.once(s, old, new), sig) }
	x := m.base.expected()
	sha, blake, material := x[0].Digest["sha256"], x[0].Digest["blake3"], fmt.Sprintf(`{"publicKey":{"hint":%q}}`, m.public.Hint())
	with := func(field string) string { return edit(material, strings.TrimSuffix(material, "}")+","+field+"}") }
	zero := strings.Repeat("0", 64)
	flipped := bytes.Clone(sig)
	flipped[0] ^= 1
	return map[string]vector{
		"leaf-hint":              {Why: "another key hint", Class: fault.UnknownKey, SigstoreGo: true, Bundle: edit(m.public.Hint(), m.public.Hint()[1:])},
		"leaf-signature":         {Why: "one bit of the signature", Class: fault.BadSignature, Bundle: m.bundle(s, flipped)},
		"leaf-statement-type":    {Why: "the statement's type altered after signing", Class: fault.BadSignature, Bundle: after(`Statement/v1`, `Statement/v2`)},
		"leaf-subject-name":      {Why: "a subject's name altered after signing", Class: fault.BadSignature, Bundle: after(`"record.json"`, `"record.jsom"`)},
		"leaf-subject-sha256":    {Why: "a subject's sha256 altered after signing", Class: fault.BadSignature, Bundle: after(sha, zero)},
		"leaf-subject-blake3":    {Why: "a subject's blake3 altered after signing", Class: fault.BadSignature, Bundle: after(blake, zero)},
		"leaf-predicate-type":    {Why: "the predicate's type altered after signing", Class: fault.BadSignature, Bundle: after(attest.ResultType, attest.TestResultType)},
		"payload-white-space":    {Why: "a space more in the payload after signing", Class: fault.BadSignature, Bundle: after(`"predicate":`, `"predicate": `)},
		"payload-of-other":       {Why: "the signature of another statement by the same key", Class: fault.BadSignature, Bundle: m.bundle(s, ed25519.Sign(m.secret, pae(inToto, m.once(s, sha, zero))))},
		"subject-other":          {Why: "a good statement about another artifact", Class: fault.SubjectDigest, Bundle: m.signed(m.once(m.once(s, sha, zero), blake, zero))},
		"subject-twice":          {Why: "one subject under the name of another", Class: fault.SubjectUnexpected, SigstoreGo: true, Bundle: change(`"name":"record.json"`, `"name":"`+attest.SubjectArchive+`"`)},
		"subject-digest-twice":   {Why: "one algorithm twice in a subject", Class: fault.DuplicateKey, Bundle: change(`"sha256":"`+sha+`"`, `"sha256":"`+zero+`","sha256":"`+sha+`"`)},
		"subject-digest-null":    {Why: "null for a digest", Class: fault.WrongType, Bundle: change(`"`+sha+`"`, `null`)},
		"subject-digest-short":   {Why: "half of a digest", Class: fault.SubjectDigest, Bundle: change(sha, sha[:32])},
		"statement-trailing":     {Why: "data after the statement", Class: fault.Syntax, Bundle: m.signed(s + "{}")},
		"statement-field-more":   {Why: "a field that statements do not have", Class: fault.UnknownField, Bundle: change(`"predicate":`, `"x":1,"predicate":`)},
		"statement-null-subject": {Why: "null for the subjects", Class: fault.WrongType, Bundle: m.signed(s[:strings.Index(s, `[`)] + "null" + s[strings.Index(s, `]`)+1:])},
		"statement-deep":         {Why: "a predicate of lists in lists", Class: fault.Limit, SigstoreGo: true, Bundle: change(`9007199254740993`, strings.Repeat("[", 64)+strings.Repeat("]", 64))},
		"material-timestamp":     {Why: "a timestamp, and nobody whose timestamps are trusted", Class: fault.VerificationMaterial, SigstoreGo: true, Bundle: with(`"timestampVerificationData":{"rfc3161Timestamps":[{"signedTimestamp":"AA=="}]}`)},
		"material-log-entry":     {Why: "a log entry, and no log that is trusted", Class: fault.VerificationMaterial, Bundle: with(`"tlogEntries":[{"logIndex":"1"}]`)},
		"material-log-none":      {Why: "an empty list of log entries", Class: fault.VerificationMaterial, SigstoreGo: true, Bundle: with(`"tlogEntries":[]`)},
		"json-no-object":         {Why: "a list for a bundle", Class: fault.WrongType, Bundle: `[` + good + `]`},
		"json-truncated":         {Why: "a bundle without its last character", Class: fault.Syntax, Bundle: good[:len(good)-1]},
		"json-byte-order-mark":   {Why: "a byte order mark", Class: fault.Syntax, Bundle: "\ufeff" + good},
		"json-deep":              {Why: "lists in lists", Class: fault.Limit, Bundle: strings.Repeat("[", 64) + strings.Repeat("]", 64)},
	}
}

// certificate is a self-signed one for the vectors' key.
func (m *vectorMaker) certificate() []byte {
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, m.secret.Public(), m.secret)
	must(m.t, err)
	return der
}

// pairSignature is a bundle with an ECDSA signature in the raw form r || s, and its key.
func (m *vectorMaker) pairSignature(payload string) (bundle, key string) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(m.t, err)
	public, err := attest.NewPublicKey(secret.Public())
	must(m.t, err)
	sum := sha256.Sum256(pae(inToto, payload))
	r, s, err := ecdsa.Sign(rand.Reader, secret, sum[:])
	must(m.t, err)
	raw := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	maker := *m
	maker.public = public
	return maker.bundle(payload, raw), string(public.PEM())
}

// The predicate must be kept as it was signed: decoding it into floating-point numbers would change it.
func TestLargeIntegersSurvive(t *testing.T) {
	k := newKey(t, attest.Ed25519)
	s, err := attest.NewStatement([]attest.Subject{attest.NewSubject("x", oci.DigestsOf(nil))}, "t", map[string]any{"n": json.Number("9007199254740993")})
	must(t, err)
	raw, err := attest.SignStatement(k, s)
	must(t, err)
	got, err := attest.VerifyBundle(raw, []attest.PublicKey{k.Public()})
	must(t, err)
	if string(got.Statement.Predicate) != `{"n":9007199254740993}` {
		t.Errorf("the predicate became %s", got.Statement.Predicate)
	}
}
