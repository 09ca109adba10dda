package attest

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// signAll signs a statement for every predicate, over the same subjects.
func signAll(ctx context.Context, key Signer, subjects []Subject, predicates []typedPredicate) ([]oci.Attestation, error) {
	var all []oci.Attestation
	for _, p := range predicates {
		s, err := NewStatement(subjects, p.kind, p.value)
		if err != nil {
			return nil, err
		}
		signed, err := signStatement(ctx, key, s)
		if err != nil {
			return nil, fmt.Errorf("attest %s: %w", p.kind, err)
		}
		all = append(all, oci.Attestation{PredicateType: p.kind, Bundle: signed})
	}
	return all, nil
}

// absent reports whether there is no signer, also where a nil key was given for one.
func absent(s Signer) bool {
	k, isKey := s.(*PrivateKey)
	return s == nil || (isKey && k == nil)
}

// AttestArchive signs, with another key, what an archive that stands at dir attests: the same statements, made again from what it holds.
// Everything that verification checks is checked first, but for the signatures that are there: what stands beside it, under keys that the
// new signer need not know, is left alone. also is as ArchiveInput.Also; an archive that fails is not signed (ErrVerification), a run that was
// not verified may be, as in WriteArchive.
//
// Predicates that the key attests already are left out, so that signing twice adds nothing; PredicateTypes of the result are those added.
func AttestArchive(ctx context.Context, dir string, key Signer, also func(context.Context, *Verification) error) (info ArchiveInfo, err error) {
	if absent(key) {
		return ArchiveInfo{}, errors.New("attest archive: no private key was given; make one with `benchpin key generate`")
	}
	trust := key.Trust()
	v, err := newVerifier(ctx, dir, trust.Keys, Policy{AllowUnverified: true, Witness: trust.Witness})
	if err != nil {
		return ArchiveInfo{}, fmt.Errorf("attest archive %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, v.v.Close()) }()
	if err := v.run(v.layout, v.record, v.manifest, v.files, v.certificate, v.judge); err != nil {
		return ArchiveInfo{}, fmt.Errorf("attest archive %s: %w", dir, err)
	}
	if also != nil {
		if err := also(ctx, v.v); err != nil {
			return ArchiveInfo{}, fmt.Errorf("attest archive %s: %w", dir, err)
		}
	}
	if err := v.v.Err(); err != nil {
		return ArchiveInfo{}, fmt.Errorf("attest archive %s: nothing is signed: %w", dir, err)
	}
	// What follows is whole: every check of it passed.
	l := v.v.layout
	var bad []error
	x, wrongSubjects, wrongPredicates := v.expect()
	for _, f := range append(wrongSubjects, wrongPredicates...) {
		bad = append(bad, f)
	}
	if err := errors.Join(bad...); err != nil {
		return ArchiveInfo{}, fmt.Errorf("attest archive %s: %w", dir, err)
	}
	missing, err := v.missing(x)
	if err != nil {
		return ArchiveInfo{}, fmt.Errorf("attest archive %s: %w", dir, err)
	}
	info = ArchiveInfo{Archive: l.Manifest, Record: l.Layer(TitleRecord).Blob.Digests, Manifest: l.Layer(TitleManifest).Blob.Digests}
	signed, err := signAll(ctx, key, x.subjects, missing)
	if err != nil || len(signed) == 0 {
		return info, err
	}
	for _, one := range signed {
		info.PredicateTypes = append(info.PredicateTypes, one.PredicateType)
	}
	return info, oci.AttachAll(ctx, dir, &l.Manifest, signed)
}

// missing are the predicates that no bundle by the given keys attests. A bundle by such a key that contradicts the archive is an error.
func (v *verifier) missing(x expectation) ([]typedPredicate, error) {
	holds := map[string]bool{}
	for _, b := range v.v.layout.Bundles {
		j := &judgedBundle{Attestation: Attestation{Part: b.Part, Status: NotCounted}}
		if err := v.judgeBundle(j, b, x); err != nil {
			return nil, err
		}
		switch j.Status {
		case Refused:
			return nil, fmt.Errorf("%s, signed by this key, contradicts the archive: %s", j.Part, j.Detail)
		case Holds:
			holds[j.PredicateType] = true
		}
	}
	var out []typedPredicate
	for _, p := range x.predicates {
		if !holds[p.kind] {
			out = append(out, p)
		}
	}
	return out, nil
}
