package attest_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
	"github.com/benchpin/benchpin/pkg/attest/sigstore/sigstoretest"
)

// A document says whom to trust beside keys, in its text and in files beside it, and nothing that is given otherwise widens that.
func TestPolicyTrusted(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "root.json"), []byte("{}"), 0o600))
	text := `policy: benchpin.policy/v1
identities:
  - {san: dev@example.com, issuer: "https://issuer.example"}
  - {san_pattern: ".*@example\\.com", issuer_pattern: "https://.*"}
trusted_root: {file: root.json}
timestamp_roots: {pem: "x"}
rule_editions: [mlperf-storage-v2.0]
maximum_age: 1h
age_from: trusted_time
`
	path := filepath.Join(dir, "p.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	d, err := attest.LoadPolicy(path)
	must(t, err)
	must(t, d.Check())
	who := []attest.Identity{{SAN: "dev@example.com", Issuer: "https://issuer.example"}, {SANPattern: `.*@example\.com`, IssuerPattern: "https://.*"}}
	if !equalJSON(t, d.Trusted, attest.Trusted{Identities: who, Root: []byte("{}"), TimestampRoots: []byte("x")}) || d.AgeFrom != attest.AgeFromTrustedTime ||
		len(d.RuleEditions) != 1 || d.Hints == nil {
		t.Errorf("found %+v", d)
	}
	if _, err := d.Accept([]attest.PublicKey{newKey(t, attest.Ed25519).Public()}); err == nil {
		t.Error("a policy that accepts identities accepted a key beside them")
	}
	one := attest.Trusted{Identities: who[:1]}
	roots := attest.Trusted{Root: []byte("other")}
	for name, c := range map[string]struct {
		text  string
		given attest.Trusted
		want  *attest.Trusted // nil: refused
	}{
		"identities, and another": {"identities: [{san: a, issuer: b}]\n", one, nil},
		"keys, and an identity":   {"keys: [{hint: \"" + strings.Repeat("A", 43) + "=\"}]\n", one, nil},
		"nobody, and an identity": {"", one, &one},
		"roots, and others":       {"trusted_root: {json: x}\n", roots, nil},
		"other roots":             {"timestamp_roots: {pem: x}\n", roots, nil},
		"no roots, and roots":     {"identities: [{san: a, issuer: b}]\n", roots, &attest.Trusted{Identities: []attest.Identity{{SAN: "a", Issuer: "b"}}, Root: []byte("other")}},
		"nothing given":           {"trusted_root: {json: x}\n", attest.Trusted{}, &attest.Trusted{Root: []byte("x")}},
	} {
		d, err := attest.ParsePolicy("p.yaml", []byte("policy: benchpin.policy/v1\n"+c.text))
		must(t, err)
		found, err := d.AcceptTrusted(c.given)
		if (err == nil) != (c.want != nil) || (err == nil && !equalJSON(t, found, *c.want)) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	must(t, err)
	y, err := json.Marshal(b)
	must(t, err)
	return string(x) == string(y)
}

func TestPolicyTrustedRefused(t *testing.T) {
	const head = "policy: benchpin.policy/v1\n"
	for text, says := range map[string]string{
		"identities: []\n":                                         "minimum 1 items",
		"identities: [{san: a}]\n":                                 "identities/0: expected san or san_pattern, and issuer or issuer_pattern",
		"identities: [{issuer: a}]\n":                              "identities/0: expected san or san_pattern, and issuer or issuer_pattern",
		"identities: [{san: a, san_pattern: b, issuer: c}]\n":      "identities/0: expected san or san_pattern, and issuer or issuer_pattern",
		"identities: [{san: a, issuer: c, issuer_pattern: d}]\n":   "identities/0: expected san or san_pattern, and issuer or issuer_pattern",
		"identities: [{san: '', issuer: c}]\n":                     "identities/0",
		"identities: [{san: a, issuer: b, name: c}]\n":             `"identities/0/name" does not exist`,
		"identities: [{san_pattern: '(', issuer: b}]\n":            "error parsing regexp",
		"identities: [{san: a, issuer: b}, {san: a, issuer: b}]\n": "twice",
		"trusted_root: {file: absent.json}\n":                      "absent.json",
		"trusted_root: {file: a, json: b}\n":                       "trusted_root",
		"trusted_root: {}\n":                                       "trusted_root",
		"trusted_root: root.json\n":                                "expected object",
		"timestamp_roots: {json: a}\n":                             `"timestamp_roots/json" does not exist`,
		"timestamp_roots: {file: absent.pem}\n":                    "absent.pem",
		"rule_editions: []\n":                                      "minimum 1 items",
		"age_from: trusted_time\n":                                 "maximum_age is not there",
		"maximum_age: 1h\nage_from: birth\n":                       "age_from",
		"identities: [" + strings.Repeat("{san: a, issuer: b},", 64) + "{san: a, issuer: b}]\n": "maximum 64 items",
	} {
		if _, err := attest.ParsePolicy(filepath.Join(t.TempDir(), "p.yaml"), []byte(head+text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: expected %q, found %v", text, says, err)
		}
	}
}

// The age of a result by a trusted time is that of the first one that is accepted; its own times are the host's word.
func TestPolicyTrustedAge(t *testing.T) {
	tsa := sigstoretest.NewTimestamps(t)
	k, second := newKey(t, attest.Ed25519), newKey(t, attest.Ed25519)
	dir := stampedArchive(t, stamped(t, k, tsa), nil)
	bare := newArchive(t, newRun(t, nil), k)
	stampedAt := time.Now()
	w := timestampVerifier(t, tsa)
	for name, c := range map[string]struct {
		dir  string
		at   time.Time
		says string
	}{
		"young":           {dir, stampedAt.Add(time.Minute), ""},
		"old":             {dir, stampedAt.Add(2 * 365 * 24 * time.Hour), "the policy demands at most"},
		"from the future": {dir, stampedAt.Add(-10 * time.Minute), "later than now"},
		"no trusted time": {bare, stampedAt, "no statement of the result that holds carries one"},
	} {
		p := attest.Policy{Witness: w, MaximumAge: 365 * 24 * time.Hour, AgeFrom: attest.AgeFromTrustedTime, At: c.at}
		v := verify(t, c.dir, p, k.Public())
		if v.OK() != (c.says == "") || !strings.Contains(describe(v), c.says) {
			t.Errorf("%s: expected %q\n%s", name, c.says, describe(v))
		}
	}
	// What a key that nobody accepts had stamped counts for nothing.
	_, err := attest.AttestArchive(t.Context(), bare, stamped(t, second, tsa), nil)
	must(t, err)
	p := attest.Policy{Witness: w, MaximumAge: time.Hour, AgeFrom: attest.AgeFromTrustedTime, At: stampedAt}
	if v := verify(t, bare, p, k.Public()); v.OK() {
		t.Error("a timestamp under a key that is not accepted makes a result young")
	}
}

// A rule edition is demanded of what an accepted key registered, and of nothing else.
func TestPolicyRuleEdition(t *testing.T) {
	k, judge := newKey(t, attest.Ed25519), newKey(t, attest.ECDSAP256)
	named := newArchive(t, registeredRun(t, judge, func(p *attest.Preregistration) { p.RuleEdition = "rules-2" }, nil), k)
	unnamed := newArchive(t, registeredRun(t, judge, nil, nil), k)
	both := []attest.PublicKey{k.Public(), judge.Public()}
	for name, c := range map[string]struct {
		dir      string
		keys     []attest.PublicKey
		editions []string
		says     string
	}{
		"named":                 {named, both, []string{"rules-1", "rules-2"}, ""},
		"another":               {named, both, []string{"rules-1"}, `found "rules-2"`},
		"none accepted":         {named, both, []string{}, `found "rules-2"`},
		"nobody stands for it":  {named, both[:1], []string{"rules-2"}, "no accepted key signed"},
		"none is named":         {unnamed, both, []string{"rules-2"}, `found ""`},
		"nothing is registered": {newArchive(t, newRun(t, nil), k), both, []string{"rules-2"}, "no accepted key signed"},
	} {
		v := verify(t, c.dir, attest.Policy{RuleEditions: c.editions}, c.keys...)
		if v.OK() != (c.says == "") || !strings.Contains(describe(v), c.says) {
			t.Errorf("%s: expected %q\n%s", name, c.says, describe(v))
		}
	}
	if c := checkNamed(t, verify(t, named, attest.Policy{}, both...), "preregistration"); !strings.Contains(c.Evidence, `the rules "rules-2"`) {
		t.Errorf("the edition is not shown: %+v", c)
	}
}

// A review without a key, with a timestamp, holds whom the reviewer trusted, so that anybody can apply the same policy again.
func TestReviewKeyless(t *testing.T) {
	s := sigstoretest.New(t)
	host := newKey(t, attest.Ed25519)
	dir := newArchive(t, newRun(t, nil), host)
	trusted := attest.Trusted{Root: s.TrustedRoot(t, true), Identities: []attest.Identity{{SAN: someone, Issuer: idIssuer}}, TimestampRoots: s.Timestamps.PEM()}
	w, err := sigstore.NewWitness(trusted)
	must(t, err)
	p := attest.Policy{Witness: w, Trusted: trusted, RuleEditions: nil, MaximumAge: 365 * 24 * time.Hour, AgeFrom: attest.AgeFromFinish, At: reviewedAt}
	v := verify(t, dir, p, host.Public())
	raw, err := attest.SignReview(t.Context(), keyless(t, s, true), v, p, []attest.PublicKey{host.Public()}, "test", reviewedAt)
	must(t, err)
	must(t, oci.Attach(t.Context(), dir, attest.ReviewType, raw))
	v = verify(t, dir, p, host.Public())
	if !v.OK() || assurance(v) != attest.ThirdParty {
		t.Fatalf("found %q\n%s", assurance(v), describe(v))
	}
	for _, a := range v.Attestations {
		if a.Review == nil {
			continue
		}
		content, err := base64.StdEncoding.DecodeString(a.Review.Policy.Content)
		must(t, err)
		again, err := attest.ParsePolicy("again.yaml", content)
		must(t, err)
		if !equalJSON(t, again.Trusted, trusted) || again.AgeFrom != p.AgeFrom || len(a.Times) != 1 {
			t.Errorf("found %+v, %v", again.Trusted, a.Times)
		}
	}
	// By the same identity for the result and the review, nothing is gained.
	mine := stampedArchive(t, keyless(t, s, true), nil)
	v = verify(t, mine, p)
	raw, err = attest.SignReview(t.Context(), keyless(t, s, true), v, p, nil, "test", reviewedAt)
	must(t, err)
	must(t, oci.Attach(t.Context(), mine, attest.ReviewType, raw))
	if v = verify(t, mine, p); !v.OK() || assurance(v) != attest.SelfAttested {
		t.Errorf("found %q\n%s", assurance(v), describe(v))
	}
}

// A statement that its manifest announces as something else does not count, whatever kind it is: replays and reviews among them.
func TestAnnouncedAsSomethingElse(t *testing.T) {
	author, other := newKey(t, attest.Ed25519), newKey(t, attest.Ed25519)
	dir := newArchive(t, newRun(t, nil), author)
	v := verify(t, dir, attest.Policy{}, author.Public())
	replay, err := attest.SignReplay(t.Context(), other, v, replayOf(v))
	must(t, err)
	review, err := attest.SignReview(t.Context(), other, v, attest.Policy{}, nil, "test", reviewedAt)
	must(t, err)
	s, err := attest.NewStatement(subjectsIn(t, v, other, dir), "https://example.com/opinion", map[string]any{"good": true})
	must(t, err)
	opinion, err := attest.SignStatement(other, s)
	must(t, err)
	for kind, raw := range map[string][]byte{attest.ReplayType: replay, attest.ReviewType: review, "https://example.com/opinion": opinion} {
		for _, announced := range []string{kind, attest.ResultType, "https://example.com/x"} {
			dir := newArchive(t, newRun(t, nil), author)
			must(t, oci.Attach(t.Context(), dir, announced, raw))
			// Another archive with the same content has the same subjects.
			v := verify(t, dir, attest.Policy{}, author.Public(), other.Public())
			found := v.Attestations[len(v.Attestations)-1]
			for _, a := range v.Attestations {
				if a.Key == other.Public().Hint() {
					found = a
				}
			}
			want := attest.NotCounted
			if announced == kind {
				want = attest.Other
			}
			if !v.OK() || found.Status != want || (want == attest.NotCounted && (found.Replay != nil || found.Review != nil)) {
				t.Errorf("%s announced as %s: %+v\n%s", kind, announced, found, describe(v))
			}
		}
	}
}
