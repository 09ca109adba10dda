package attest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
	"github.com/benchpin/benchpin/pkg/record"
)

// believing takes whatever third parties add for true, so that what must be refused can be made.
type believing struct{ blind }

func (believing) Identifies() bool { return true }

func (believing) Examine(_ []byte, key *attest.PublicKey) (attest.Testimony, error) {
	t := attest.Testimony{Times: []attest.TrustedTime{{Time: time.Now().Add(1000 * time.Hour)}}}
	if key == nil {
		t.Signer = "identity x"
	}
	return t, nil
}

type gullible struct{ attest.Signer }

func (g gullible) Trust() attest.Trust {
	return attest.Trust{Keys: g.Signer.Trust().Keys, Witness: believing{}}
}

// witnessMaker makes vectors; what is there already is left alone. Its authorities are new in every run, so that all vectors of one are made
// together: to make them anew, remove the folder.
type witnessMaker struct {
	t *testing.T
	// s and other are two of everything; tsa is that of s.
	s, other *sigstoretest.Sigstore
	key      *attest.PrivateKey
	base     map[string]map[string][]byte
}

func makeWitnessVectors(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(witnessVectorsFolder); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, os.MkdirAll(witnessVectorsFolder, 0o777))
	m := &witnessMaker{t: t, s: sigstoretest.New(t), other: sigstoretest.New(t), key: seededKey(t, archiveVectorsSeed), base: map[string]map[string][]byte{}}
	m.identities()
	m.logs()
	m.timestamps()
	m.brackets()
	m.tiles()
}

// policy writes a policy document; JSON is YAML.
func (m *witnessMaker) policy(parts ...map[string]any) string {
	m.t.Helper()
	doc := map[string]any{"policy": attest.PolicyName}
	for _, p := range parts {
		for k, v := range p {
			doc[k] = v
		}
	}
	raw, err := json.Marshal(doc)
	must(m.t, err)
	return string(raw)
}

// whoIs is the identity that signs, with one part of it another; "" changes nothing.
func whoIs(part, text string) map[string]any {
	who := map[string]any{"san": someone, "issuer": idIssuer}
	if part != "" {
		delete(who, strings.TrimSuffix(part, "_pattern"))
		who[part] = text
	}
	return map[string]any{"identities": []any{who}}
}

// roots are the roots of s, with the named parts of its trusted_root.json those of the other.
func (m *witnessMaker) roots(swapped ...string) map[string]any {
	m.t.Helper()
	var mine, theirs map[string]any
	must(m.t, json.Unmarshal(m.s.TrustedRoot(m.t, true), &mine))
	must(m.t, json.Unmarshal(m.other.TrustedRoot(m.t, true), &theirs))
	for _, part := range swapped {
		if theirs[part] == nil {
			m.t.Fatalf("a trusted root has no %s", part)
		}
		mine[part] = theirs[part]
	}
	raw, err := json.Marshal(mine)
	must(m.t, err)
	return map[string]any{"trusted_root": map[string]string{"json": string(raw)}}
}

func (m *witnessMaker) stamps() map[string]any {
	return map[string]any{"timestamp_roots": map[string]string{"pem": string(m.s.Timestamps.PEM())}}
}

func (m *witnessMaker) add(name string, v witnessVector) {
	if v.Base == "" && v.Class == "" {
		m.base[name] = v.Files
	}
	writeVector(m.t, witnessVectorsFolder, name, v)
}

// altered is the vector of an archive that differs from a base in some files.
func (m *witnessMaker) altered(base string, content map[string][]byte) witnessVector {
	a := &alteration{t: m.t, good: m.base[base]}
	return witnessVector{Base: base, Files: a.differ(content).Files}
}

// bundle changes what stands beside the signature of the result, or the whole bundle of it.
func (m *witnessMaker) bundle(base string, change func(map[string]any)) map[string][]byte {
	f := takeApart(m.t, layOut(m.t, m.base[base]))
	for i := range f.bundles {
		if f.bundles[i].announced == attest.ResultType {
			f.bundles[i].raw = material(m.t, f.bundles[i].raw, change)
		}
	}
	return contentOf(m.t, f.putTogether(m.t, m.key))
}

// part is a part of the material of a base's bundle.
func (m *witnessMaker) part(base, kind, name string) (out any) {
	for _, b := range takeApart(m.t, layOut(m.t, m.base[base])).bundles {
		if b.announced == kind {
			material(m.t, b.raw, func(all map[string]any) { out = all[name] })
		}
	}
	return out
}

func (m *witnessMaker) archive(s attest.Signer, change func(*record.Record)) map[string][]byte {
	dir := filepath.Join(m.t.TempDir(), "a")
	_, err := attest.WriteArchive(context.Background(), dir, newRun(m.t, change).input, gullible{s})
	must(m.t, err)
	return contentOf(m.t, dir)
}

// signer signs as somebody, with a log entry and a timestamp.
func (m *witnessMaker) signer() attest.Signer {
	return &sigstore.Stamped{Signer: keyless(m.t, m.s, true), URLs: []string{m.s.Timestamps.URL}, Verifier: believing{}}
}

const keylessBase, loggedBase, secondBase, stampedBase, bracketBase = "good-keyless", "good-logged", "good-second", "good-stamped", "good-bracket"

func (m *witnessMaker) identities() {
	all := m.policy(m.roots(), whoIs("", ""))
	m.add(keylessBase, witnessVector{Why: "signed by a certificate, logged and timestamped", Policy: all, Files: m.archive(m.signer(), nil)})
	m.add(loggedBase, witnessVector{Why: "signed by a certificate and logged", Policy: all, Files: m.archive(keyless(m.t, m.s, true), nil)})
	m.add(secondBase, witnessVector{Why: "signed by another certificate of the same identity", Policy: all, Files: m.archive(m.signer(), nil)})
	same := func(name, why string, class fault.Class, policy string) {
		v := witnessVector{Why: why, Class: class, Policy: policy, Base: keylessBase, Files: map[string][]byte{}}
		if class != "" {
			v.Check = "signatures"
		}
		m.add(name, v)
	}
	same("identity-patterns", "the identity by patterns for the whole text", "", m.policy(m.roots(), map[string]any{"identities": []any{
		map[string]string{"san_pattern": `[a-z]+@example\.com`, "issuer_pattern": `https://issuer\..*`}}}))
	same("identity-other", "another name is accepted", fault.Identity, m.policy(m.roots(), whoIs("san", "other@example.com")))
	same("identity-other-case", "the name in upper case is accepted", fault.Identity, m.policy(m.roots(), whoIs("san", "DEV@example.com")))
	same("identity-other-issuer", "another issuer is accepted", fault.Identity, m.policy(m.roots(), whoIs("issuer", "https://other.example")))
	same("identity-issuer-slash", "the issuer with a slash more is accepted", fault.Identity, m.policy(m.roots(), whoIs("issuer", idIssuer+"/")))
	same("identity-pattern-part", "a pattern that matches a part of the name", fault.Identity, m.policy(m.roots(), whoIs("san_pattern", "dev@example")))
	same("identity-pattern-either", "a pattern of which one side matches a part", fault.Identity, m.policy(m.roots(), whoIs("san_pattern", "x|ev@example.com")))
	same("identity-issuer-pattern-part", "a pattern that matches a part of the issuer", fault.Identity, m.policy(m.roots(), whoIs("issuer_pattern", "https://issuer")))
	same("authority-other", "the certificate is of another authority than the root names", fault.Identity, m.policy(m.roots("certificateAuthorities"), whoIs("", "")))
	key := witnessVector{Why: "a key is accepted, and no identity", Class: fault.Identity, Check: "signatures", Policy: m.policy(m.roots()), Key: string(m.key.Public().PEM()),
		Base: keylessBase, Files: map[string][]byte{}}
	m.add("identity-none", key)
	key.Why, key.Class, key.Policy = "a key is accepted, and nobody is trusted beside", fault.VerificationMaterial, m.policy()
	m.add("identity-nobody-trusted", key)

	for name, shift := range map[string]time.Duration{"expired": -time.Hour, "not-yet-valid": time.Hour} {
		m.s.Shift = shift
		v := m.altered(keylessBase, m.archive(m.signer(), nil))
		m.s.Shift = 0
		v.Why, v.Check, v.Class, v.Policy = "the certificate was "+name+" when it signed", "signatures", fault.LogEntry, all
		m.add("certificate-"+name, v)
		// Without a log, the timestamp says so.
		m.s.Shift = shift
		v = m.altered(keylessBase, m.archive(&sigstore.Stamped{Signer: keyless(m.t, m.s, false), URLs: []string{m.s.Timestamps.URL}, Verifier: believing{}}, nil))
		m.s.Shift = 0
		v.Why, v.Check, v.Class = "the certificate was "+name+" by the timestamp, and there is no log", "signatures", fault.Identity
		v.Policy = m.policy(map[string]any{"trusted_root": map[string]string{"json": string(m.s.TrustedRoot(m.t, false))}}, whoIs("", ""))
		m.add("certificate-"+name+"-timestamp", v)
	}
	for name, c := range map[string]struct {
		why    string
		class  fault.Class
		change func(map[string]any)
	}{
		"of-another-key": {"the certificate of another key of the same identity", fault.LogEntry, func(b map[string]any) { b["certificate"] = m.part(secondBase, attest.ResultType, "certificate") }},
		"beside-a-key":   {"a key's hint beside the certificate", fault.VerificationMaterial, func(b map[string]any) { b["publicKey"] = map[string]string{"hint": m.key.Public().Hint()} }},
		"damaged":        {"no certificate in the place of one", fault.LogEntry, func(b map[string]any) { b["certificate"] = map[string]string{"rawBytes": "AAAA"} }},
	} {
		v := m.altered(keylessBase, m.bundle(keylessBase, c.change))
		v.Why, v.Check, v.Class, v.Policy = c.why, "signatures", c.class, all
		m.add("certificate-"+name, v)
	}
}

func (m *witnessMaker) logs() {
	all := m.policy(m.roots(), whoIs("", ""))
	first := func(b map[string]any) map[string]any { return b["tlogEntries"].([]any)[0].(map[string]any) }
	for name, c := range map[string]struct {
		why, base string
		class     fault.Class
		change    func(map[string]any)
	}{
		"of-another-bundle":     {"the log entry of another statement by the same key", keylessBase, fault.LogEntry, func(b map[string]any) { b["tlogEntries"] = m.part(keylessBase, attest.TestResultType, "tlogEntries") }},
		"of-another-key":        {"the log entry of the same statement by another key", keylessBase, fault.LogEntry, func(b map[string]any) { b["tlogEntries"] = m.part(secondBase, attest.ResultType, "tlogEntries") }},
		"twice":                 {"the log entry twice", keylessBase, fault.LogEntry, func(b map[string]any) { b["tlogEntries"] = append(b["tlogEntries"].([]any), first(b)) }},
		"missing":               {"no log entry, where the root has logs; a timestamp is there", keylessBase, fault.LogEntry, func(b map[string]any) { delete(b, "tlogEntries") }},
		"and-timestamp-missing": {"neither a log entry nor a timestamp", loggedBase, fault.Identity, func(b map[string]any) { delete(b, "tlogEntries") }},
		"empty":                 {"an empty list of log entries", keylessBase, fault.VerificationMaterial, func(b map[string]any) { b["tlogEntries"] = []any{} }},
		"earlier":               {"the log entry an hour earlier", keylessBase, fault.LogEntry, func(b map[string]any) { first(b)["integratedTime"] = "1700000000" }},
		"other-index":           {"the log entry at another place", keylessBase, fault.LogEntry, func(b map[string]any) { first(b)["logIndex"] = "7" }},
		"without-promise":       {"the log entry without what the log signed", loggedBase, fault.VerificationMaterial, func(b map[string]any) { delete(first(b), "inclusionPromise"); delete(first(b), "inclusionProof") }},
	} {
		v := m.altered(c.base, m.bundle(c.base, c.change))
		v.Why, v.Check, v.Class, v.Policy = c.why, "signatures", c.class, all
		m.add("log-entry-"+name, v)
	}
	m.add("log-other", witnessVector{Why: "the log is another one than the root names", Check: "signatures", Class: fault.LogEntry, Base: keylessBase,
		Policy: m.policy(m.roots("tlogs"), whoIs("", "")), Files: map[string][]byte{}})
}

func (m *witnessMaker) timestamps() {
	const data = "timestampVerificationData"
	signer := &sigstore.Stamped{Signer: m.key, URLs: []string{m.s.Timestamps.URL}, Verifier: believing{}}
	trusted, pem := m.policy(m.stamps(), map[string]any{"trusted_time": true}), string(m.key.Public().PEM())
	m.add(stampedBase, witnessVector{Why: "signed by a key and timestamped", Policy: trusted, Key: pem, Files: m.archive(signer, nil)})
	list := func(b map[string]any) []any { return b[data].(map[string]any)["rfc3161Timestamps"].([]any) }
	stamps := func(all []any) map[string]any { return map[string]any{"rfc3161Timestamps": all} }
	for name, c := range map[string]struct {
		why    string
		class  fault.Class
		change func(map[string]any)
	}{
		"of-another-signature": {"the timestamp of another statement's signature", fault.Timestamp, func(b map[string]any) { b[data] = m.part(stampedBase, attest.TestResultType, data) }},
		"and-another": {"a second timestamp, of another signature", fault.Timestamp, func(b map[string]any) {
			b[data] = stamps(append(list(b), m.part(stampedBase, attest.TestResultType, data).(map[string]any)["rfc3161Timestamps"].([]any)...))
		}},
		"twice":   {"the timestamp twice", fault.Timestamp, func(b map[string]any) { b[data] = stamps(append(list(b), list(b)...)) }},
		"damaged": {"what is no timestamp", fault.Timestamp, func(b map[string]any) { b[data] = stamps([]any{map[string]string{"signedTimestamp": "AAAA"}}) }},
		"empty":   {"an empty list of timestamps", fault.VerificationMaterial, func(b map[string]any) { b[data] = stamps([]any{}) }},
	} {
		v := m.altered(stampedBase, m.bundle(stampedBase, c.change))
		v.Why, v.Check, v.Class, v.Policy, v.Key = c.why, "signatures", c.class, trusted, pem
		m.add("timestamp-"+name, v)
	}
	missing := m.altered(stampedBase, m.bundle(stampedBase, func(b map[string]any) { delete(b, data) }))
	missing.Why, missing.Policy, missing.Key = "the timestamp of the result taken out, and none demanded", m.policy(m.stamps()), pem
	m.add("timestamp-missing-undemanded", missing)
	missing.Why, missing.Check, missing.Class, missing.Policy = "the timestamp of the result taken out, and one demanded", "signing-time", fault.Policy, trusted
	m.add("timestamp-missing", missing)
	same := func(name, why, check string, class fault.Class, now, policy string) {
		m.add(name, witnessVector{Why: why, Check: check, Class: class, Policy: policy, Key: pem, Now: now, Base: stampedBase, Files: map[string][]byte{}})
	}
	same("timestamp-authority-other", "the authority is another one than is trusted", "signatures", fault.Timestamp, "", m.policy(map[string]any{
		"timestamp_roots": map[string]string{"pem": string(m.other.Timestamps.PEM())}}))
	same("timestamp-nobody-trusted", "a timestamp, and no authority is trusted", "signatures", fault.VerificationMaterial, "", m.policy())
	late := m.altered(stampedBase, m.archive(signer, func(r *record.Record) {
		at := time.Now().Add(time.Hour)
		r.Started, r.Finished = at.UTC().Format(rfc3339), at.Add(time.Second).UTC().Format(rfc3339)
	}))
	late.Why, late.Check, late.Class, late.Policy, late.Key = "the timestamp is before the start of the run", "signing-time", fault.SigningTime, trusted, pem
	m.add("timestamp-before-start", late)
	unfinished := m.altered(stampedBase, m.archive(signer, func(r *record.Record) { r.Finished = time.Now().Add(time.Hour).UTC().Format(rfc3339) }))
	unfinished.Why, unfinished.Check, unfinished.Class, unfinished.Policy, unfinished.Key = "the timestamp is before the end of the run", "signing-time", fault.SigningTime, trusted, pem
	m.add("timestamp-before-end", unfinished)
	// By which clock a result is old; its own times are from 2026-11-30T14:15.
	stamped := time.Now().UTC()
	year := m.policy(m.stamps(), map[string]any{"maximum_age": "365d", "age_from": "trusted_time"})
	same("age-young", "not a year old by the timestamp", "", "", stamped.Add(24*time.Hour).Format(time.RFC3339), year)
	same("age-old", "more than a year old by the timestamp", "policy", fault.Policy, stamped.Add(366*24*time.Hour).Format(time.RFC3339), year)
	same("age-future", "timestamped later than now", "policy", fault.Policy, stamped.Add(-time.Hour).Format(time.RFC3339), year)
}

// tiles are attacks on entries of a log of Rekor's version 2, which prove no time.
func (m *witnessMaker) tiles() {
	const base = "good-tiles"
	m.s.Tiles = sigstoretest.NewTiles(m.t)
	k, err := sigstore.NewKeyless(context.Background(), sigstore.KeylessOptions{Fulcio: m.s.Fulcio, Rekor: m.s.Tiles.URL, RekorVersion: 2, Token: tokenOfSomeone,
		Trust: sigstore.Options{TrustedRoot: m.s.TrustedRoot(m.t, true)}})
	must(m.t, err)
	signer := &sigstore.Stamped{Signer: k, URLs: []string{m.s.Timestamps.URL}, Verifier: believing{}}
	all := m.policy(m.roots(), whoIs("", ""))
	m.add(base, witnessVector{Why: "signed by a certificate, logged by a log of version 2 and timestamped", Policy: all, Files: m.archive(signer, nil)})
	first := func(b map[string]any) map[string]any { return b["tlogEntries"].([]any)[0].(map[string]any) }
	for name, c := range map[string]struct {
		why    string
		class  fault.Class
		change func(map[string]any)
	}{
		"of-another-bundle": {"the log entry of another statement", fault.LogEntry, func(b map[string]any) { b["tlogEntries"] = m.part(base, attest.TestResultType, "tlogEntries") }},
		"missing":           {"no log entry, where the root has a log", fault.LogEntry, func(b map[string]any) { delete(b, "tlogEntries") }},
		"no-timestamp":      {"no timestamp: the entry proves no time", fault.Identity, func(b map[string]any) { delete(b, "timestampVerificationData") }},
		"time-unsigned": {"no timestamp, and a time in the entry that nobody signed", fault.Identity, func(b map[string]any) {
			delete(b, "timestampVerificationData")
			first(b)["integratedTime"] = strconv.FormatInt(time.Now().Unix(), 10)
		}},
		"other-place": {"the entry at another place of the tree", fault.LogEntry, func(b map[string]any) { first(b)["logIndex"] = "1" }},
		"no-proof":    {"the entry without a proof", fault.VerificationMaterial, func(b map[string]any) { delete(first(b), "inclusionProof") }},
	} {
		v := m.altered(base, m.bundle(base, c.change))
		v.Why, v.Check, v.Class, v.Policy = c.why, "signatures", c.class, all
		m.add("tiles-"+name, v)
	}
	m.other.Tiles = sigstoretest.NewTiles(m.t)
	m.add("tiles-other", witnessVector{Why: "the log is another one than the root names", Check: "signatures", Class: fault.LogEntry, Base: base,
		Policy: m.policy(m.roots("tlogs"), whoIs("", "")), Files: map[string][]byte{}})
}

func (m *witnessMaker) brackets() {
	pem := string(m.key.Public().PEM())
	trusted := m.policy(m.stamps())
	base := time.Now().Truncate(time.Second)
	content := func(answer func([]byte) []byte, ago time.Duration) map[string][]byte {
		dir := filepath.Join(m.t.TempDir(), "a")
		_, err := attest.WriteArchive(context.Background(), dir, bracketed(m.t, drawn(base.Add(-time.Minute), ago), answer).input, m.key)
		must(m.t, err)
		return contentOf(m.t, dir)
	}
	m.add(bracketBase, witnessVector{Why: "drawn with a public value, and the transcript timestamped", Policy: trusted, Key: pem, Files: content(stampOf(m.t, m.s.Timestamps), time.Hour)})
	for name, answer := range map[string]func([]byte) []byte{
		"other-transcript": func([]byte) []byte {
			return stampOf(m.t, m.s.Timestamps)([]byte("benchpin transcript timestamp v1\nroot x\n"))
		},
		"other-authority": stampOf(m.t, m.other.Timestamps),
		"damaged":         func([]byte) []byte { return []byte("x") },
	} {
		v := m.altered(bracketBase, content(answer, time.Hour))
		v.Why, v.Check, v.Class, v.Policy, v.Key = "the transcript's timestamp: "+name, "time-bracket", fault.Timestamp, trusted, pem
		m.add("bracket-"+name, v)
	}
	known := func(value string, at time.Time) map[string]any {
		return map[string]any{"not_before": []any{map[string]string{"value": value, "time": at.UTC().Format(time.RFC3339)}}}
	}
	same := func(name, why, check string, class fault.Class, now time.Time, policy ...map[string]any) {
		v := witnessVector{Why: why, Check: check, Class: class, Policy: m.policy(append(policy, m.stamps())...), Key: pem, Base: bracketBase, Files: map[string][]byte{}}
		if !now.IsZero() {
			v.Now = now.UTC().Format(time.RFC3339)
		}
		m.add(name, v)
	}
	same("bracket-value", "the policy's value", "", "", time.Time{}, known("beacon 4711", base.Add(-time.Hour)))
	same("bracket-value-other", "another value than the policy's", "policy", fault.Policy, time.Time{}, known("beacon 4712", base.Add(-time.Hour)))
	same("bracket-value-late", "the value was known after the transcript was timestamped", "time-bracket", fault.SigningTime, time.Time{}, known("beacon 4711", base.Add(time.Hour)))
	age := known("beacon 4711", base.Add(-time.Hour))
	age["maximum_age"], age["age_from"] = "1d", "not_before"
	unknown := map[string]any{"maximum_age": "1d", "age_from": "not_before"}
	same("bracket-age-unknown", "younger than a day by a value of which only the host says when it was known", "policy", fault.Policy, base.Add(time.Hour), unknown)
	same("bracket-value-within", "the bracket is shorter than the run took by the record", "time-bracket", fault.SigningTime, time.Time{}, known("beacon 4711", base.Add(-2*time.Second)))
	began := base.Add(-68 * time.Second)
	a := &alteration{t: m.t, key: m.key, good: m.base[bracketBase]}
	late := a.signed(a.in(attest.TitleRecord, `"time": "`+began.Add(-time.Hour).UTC().Format(rfc3339), `"time": "`+began.Add(4*time.Second).UTC().Format(rfc3339)))
	forged := witnessVector{Base: bracketBase, Files: late.Files}
	forged.Why, forged.Check, forged.Class, forged.Policy, forged.Key = "the record says that the value was known after its own start", "record", fault.Record, trusted, pem
	m.add("bracket-value-after-start", forged)
	same("bracket-age", "no older than a day, by the value", "", "", base.Add(time.Hour), age)
	same("bracket-age-old", "older than a day, by the value", "policy", fault.Policy, base.Add(24*time.Hour), age)
}
