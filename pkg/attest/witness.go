package attest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// Witness judges what third parties add to a signature: a certificate, log entries, timestamps. Whoever verifies without one refuses
// every bundle that carries such a thing. Package sigstore has one.
type Witness interface {
	// Identifies reports whether it accepts signers by their certificates, so that verification needs no key.
	Identifies() bool
	// Examine judges everything of that kind that a bundle carries, whose form was checked; one thing that does not hold is an error.
	// key is the key that signed the bundle, nil where a certificate says who did: then the signature is Examine's to verify too.
	// The error is a *fault.Fault.
	Examine(bundle []byte, key *PublicKey) (Testimony, error)
	// Timestamped judges an RFC 3161 answer over a message by one of the timestamp authorities that it trusts. The error is a *fault.Fault.
	Timestamped(answer, message []byte) (TrustedTime, error)
}

// Testimony is what third parties say of a signature.
type Testimony struct {
	// Signer is who signed, as an accepted certificate authority knows them; "" where a key did.
	Signer string
	// Times are those at which the signature existed, at the latest.
	Times []TrustedTime
}

// TrustedTime is a time at which a third party saw a signature.
type TrustedTime struct {
	Time time.Time `json:"time"`
	// Kind is "timestamp" (RFC 3161) or "log" (the time at which a log took the entry).
	Kind string `json:"kind"`
	// By names the authority or the log, as the trusted root does.
	By string `json:"by"`
}

func (t TrustedTime) String() string {
	return fmt.Sprintf("%s (%s, %s)", t.Time.UTC().Format(time.RFC3339Nano), t.Kind, t.By)
}

// timeGranularity is how much earlier than the signature a trusted time may be: authorities and logs give whole seconds.
const timeGranularity = time.Second

// witnessedBundle is a bundle with all that a third party may add.
type witnessedBundle struct {
	MediaType            string            `json:"mediaType"`
	VerificationMaterial witnessedMaterial `json:"verificationMaterial"`
	Envelope             envelope          `json:"dsseEnvelope"`
}

type witnessedMaterial struct {
	PublicKey   *publicKeyHint    `json:"publicKey,omitempty"`
	Certificate *rawCertificate   `json:"certificate,omitempty"`
	TlogEntries []json.RawMessage `json:"tlogEntries,omitempty"`
	Timestamps  *timestampData    `json:"timestampVerificationData,omitempty"`
}

type rawCertificate struct {
	RawBytes strictjson.Base64 `json:"rawBytes"`
}

type timestampData struct {
	RFC3161 []signedTimestamp `json:"rfc3161Timestamps"`
}

type signedTimestamp struct {
	SignedTimestamp strictjson.Base64 `json:"signedTimestamp"`
}

// bare reports whether nobody but the holder of a key has added anything.
func (m *witnessedMaterial) bare() bool {
	return m.Certificate == nil && m.TlogEntries == nil && m.Timestamps == nil
}

// check refuses what stands for nothing, and more than anybody needs.
func (m *witnessedMaterial) check() error {
	bad := func(detail string) error {
		return fault.New(fault.VerificationMaterial, "verificationMaterial", detail)
	}
	switch {
	case (m.PublicKey == nil) == (m.Certificate == nil):
		return bad("expected either a public key's hint or a certificate")
	case m.Timestamps != nil && len(m.Timestamps.RFC3161) == 0, m.TlogEntries != nil && len(m.TlogEntries) == 0:
		return bad("an empty list of timestamps or of log entries")
	case m.Timestamps != nil && len(m.Timestamps.RFC3161) > limits.Witnesses, len(m.TlogEntries) > limits.Witnesses:
		return fault.New(fault.Limit, "verificationMaterial", fmt.Sprintf("at most %d timestamps and log entries are read", limits.Witnesses))
	}
	return nil
}

// verifyWitnessed is VerifyBundle with somebody who judges what third parties added; w may be nil, and then nothing may be added.
func verifyWitnessed(data []byte, keys []PublicKey, w Witness) (*Verified, error) {
	if w == nil {
		v, err := VerifyBundle(data, keys)
		if f := nobodyTrusted(data, err); f != nil {
			return nil, f
		}
		return v, err
	}
	var wide witnessedBundle
	if err := strictjson.Unmarshal(data, limits.BundleBytes, &wide); err != nil {
		return nil, bundleFault(err)
	}
	m := wide.VerificationMaterial
	if m.bare() {
		if len(keys) == 0 {
			return nil, fault.New(fault.UnknownKey, "verificationMaterial", "no key is accepted, and it has no certificate")
		}
		return VerifyBundle(data, keys)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	b := bundle{MediaType: wide.MediaType, Envelope: wide.Envelope}
	if m.PublicKey != nil {
		b.VerificationMaterial.PublicKey = *m.PublicKey
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	v := &Verified{}
	var err error
	if m.PublicKey != nil {
		if v.Key, err = b.signer(keys); err != nil {
			return nil, err
		}
		v.Testimony, err = w.Examine(data, &v.Key)
	} else {
		if !w.Identifies() {
			return nil, fault.New(fault.Identity, "verificationMaterial.certificate", "it is signed by somebody with a certificate, and no such identity is accepted")
		}
		v.Testimony, err = w.Examine(data, nil)
	}
	if err != nil {
		return nil, asFault(err)
	}
	if m.Certificate != nil && (v.Testimony.Signer == "" || len(v.Testimony.Times) == 0) {
		return nil, fault.New(fault.Identity, "verificationMaterial.certificate", "nothing proves who signed, or that the certificate was valid then")
	}
	if f := v.Key.validAt(v.Testimony.Times); f != nil {
		return nil, f
	}
	if v.Statement, err = ParseStatement(b.Envelope.Payload); err != nil {
		return nil, inPayload(err)
	}
	return v, nil
}

// nobodyTrusted says why a bundle does not count that is whole, and that carries what nobody is trusted for; nil for any other reason.
func nobodyTrusted(data []byte, why error) *fault.Fault {
	if !errors.Is(why, fault.VerificationMaterial) {
		return nil
	}
	var wide witnessedBundle
	m := &wide.VerificationMaterial
	if strictjson.Unmarshal(data, limits.BundleBytes, &wide) != nil || m.bare() || m.check() != nil {
		return nil
	}
	var carries []string
	for what, there := range map[string]bool{"a certificate": m.Certificate != nil, "a log entry": m.TlogEntries != nil, "a timestamp": m.Timestamps != nil} {
		if there {
			carries = append(carries, what)
		}
	}
	slices.Sort(carries)
	return fault.New(fault.VerificationMaterial, "verificationMaterial", "it carries "+strings.Join(carries, " and ")+
		", and nobody is trusted for that: name whom to trust, with --trusted-root or --timestamp-roots")
}

// Signer names who signed: the key's hint, or the identity in the certificate.
func (v *Verified) Signer() string {
	if v.Testimony.Signer != "" {
		return v.Testimony.Signer
	}
	return v.Key.Hint()
}

// SignerText names a signer in a sentence, as Attestation.Key gives it: a key by its hint, or an identity.
func SignerText(signer string) string {
	if strings.HasPrefix(signer, "identity ") {
		return "the " + signer
	}
	return "the key " + signer
}

// validAt refuses a key that is limited to a span of time, unless every trusted time lies in it and there is one.
func (p PublicKey) validAt(times []TrustedTime) *fault.Fault {
	if !p.limited {
		return nil
	}
	if len(times) == 0 {
		return fault.New(fault.KeyValidity, "verificationMaterial", "the key is limited to a span of time, and nothing in the bundle proves when it was used")
	}
	for _, t := range times {
		if (!p.from.IsZero() && t.Time.Before(p.from)) || (!p.until.IsZero() && t.Time.After(p.until)) {
			return fault.New(fault.KeyValidity, "verificationMaterial", "the key was used outside of its span of time: "+t.String())
		}
	}
	return nil
}

// possible compares trusted times with the record: what is signed is about a run that was over. A clock of the host that is wrong by more
// than a second shows here too.
func possible(r *record.Record, times []TrustedTime) *fault.Fault {
	for _, t := range times {
		for _, end := range []struct{ field, value string }{{"started", r.Started}, {"finished", r.Finished}} {
			at, err := time.Parse(time.RFC3339Nano, end.value)
			if err != nil {
				return fault.New(fault.SigningTime, "", fmt.Sprintf("the record's %s %q is no time", end.field, shorten(end.value)))
			}
			if t.Time.Add(timeGranularity).Before(at) {
				return fault.New(fault.SigningTime, "verificationMaterial", fmt.Sprintf("it was signed by %s, and the record says that the run %s at %s: one of them is wrong",
					t, end.field, end.value))
			}
		}
	}
	return nil
}

// signingTime adds the check of trusted times, where somebody judges them.
func (v *verifier) signingTime(judged []*judgedBundle, x expectation, faults []*fault.Fault) {
	if v.policy.Witness == nil && !v.policy.RequireTime {
		return
	}
	for _, e := range x.predicates {
		if v.policy.RequireTime && !slices.ContainsFunc(judged, func(j *judgedBundle) bool {
			return j.Status == Holds && j.PredicateType == e.kind && len(j.Times) > 0
		}) {
			faults = append(faults, fault.New(fault.Policy, "verificationMaterial",
				"the policy demands a trusted time, and no bundle that holds carries one for "+e.kind).In("bundle "+e.kind))
		}
	}
	var seen []string
	for _, j := range judged {
		for _, t := range j.Times {
			if s := "no later than " + t.String(); j.Status == Holds && !slices.Contains(seen, s) {
				seen = append(seen, s)
			}
		}
	}
	class, evidence := record.Witnessed, "the statements were signed "+strings.Join(seen, "; ")+", and after the end of the run that the record gives"
	if len(seen) == 0 {
		class, evidence = record.HostOnly, "no statement that holds carries a timestamp or a log's time that is accepted"
	}
	_ = v.add("signing-time", class, evidence, "that the run took place when the record says: it was over by then", faults)
}

// Trust is what verifies the bundles that a signer makes.
type Trust struct {
	Keys    []PublicKey
	Witness Witness
}

// Signer makes bundles. *PrivateKey is one; package sigstore has those that ask third parties.
type Signer interface {
	// SignPayload signs the payload of an envelope of the given type and returns the bundle that carries it.
	SignPayload(ctx context.Context, payloadType string, payload []byte) ([]byte, error)
	// Trust is what the bundles verify with.
	Trust() Trust
}

// SignPayload returns a bundle with nothing but the signature by this key.
func (k *PrivateKey) SignPayload(_ context.Context, payloadType string, payload []byte) ([]byte, error) {
	sig, err := k.sign(preAuthEncoding(payloadType, payload))
	if err != nil {
		return nil, err
	}
	return strictjson.Marshal(bundle{
		MediaType:            oci.BundleType,
		VerificationMaterial: verificationMaterial{PublicKey: publicKeyHint{Hint: k.Public().Hint()}},
		Envelope:             envelope{Payload: payload, PayloadType: payloadType, Signatures: []envelopeSignature{{Sig: sig}}},
	})
}

// Trust is the public half.
func (k *PrivateKey) Trust() Trust { return Trust{Keys: []PublicKey{k.Public()}} }

// AddTimestamps returns a bundle with RFC 3161 timestamps that stamp makes of its signature.
func AddTimestamps(raw []byte, stamp func(signature []byte) ([][]byte, error)) ([]byte, error) {
	var b witnessedBundle
	if err := strictjson.Unmarshal(raw, limits.BundleBytes, &b); err != nil {
		return nil, bundleFault(err)
	}
	if n := len(b.Envelope.Signatures); n != 1 || b.VerificationMaterial.Timestamps != nil {
		return nil, fmt.Errorf("add timestamps: expected a bundle with one signature and no timestamps, found %d signatures", n)
	}
	all, err := stamp(b.Envelope.Signatures[0].Sig)
	if err != nil {
		return nil, err
	}
	b.VerificationMaterial.Timestamps = &timestampData{}
	for _, one := range all {
		b.VerificationMaterial.Timestamps.RFC3161 = append(b.VerificationMaterial.Timestamps.RFC3161, signedTimestamp{one})
	}
	return strictjson.Marshal(b)
}
