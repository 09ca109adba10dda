package attest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/record"
)

// A second signer adds the same statements under another key; what the first one said, byte for byte, stays.
func TestAttestArchive(t *testing.T) {
	ctx := context.Background()
	a, b := newKey(t, attest.ECDSAP256), newKey(t, attest.ECDSAP384)
	dir := newArchive(t, newRun(t, nil), a)
	before, _ := archiveParts(t, dir)
	asked := 0
	info, err := attest.AttestArchive(ctx, dir, b, func(_ context.Context, v *attest.Verification) error {
		asked++
		if v.Record == nil || v.Manifest == nil || !v.OK() {
			t.Error("the caller's checks do not get verified content")
		}
		return nil
	})
	must(t, err)
	if asked != 1 || len(info.PredicateTypes) != 3 {
		t.Errorf("asked %d times, added %v", asked, info.PredicateTypes)
	}
	for _, keys := range [][]attest.PublicKey{{a.Public()}, {b.Public()}, {a.Public(), b.Public()}} {
		v := verify(t, dir, attest.Policy{}, keys...)
		hold := 0
		for _, one := range v.Attestations {
			if one.Status == attest.Holds {
				hold++
			}
		}
		if !v.OK() || hold != 3*len(keys) || v.Archive != info.Archive {
			t.Errorf("%d keys, %d hold:\n%s", len(keys), hold, describe(v))
		}
	}
	l, err := oci.Read(ctx, dir)
	must(t, err)
	defer l.Close()
	var after [][]byte
	for _, one := range l.Bundles {
		raw, err := one.Blob.Bytes(1 << 20)
		must(t, err)
		after = append(after, raw)
	}
	for kind, raw := range before {
		if !slices.ContainsFunc(after, func(found []byte) bool { return slices.Equal(found, raw) }) {
			t.Errorf("the first signer's %s is gone", kind)
		}
	}
	// Both keys again: nothing is added.
	for _, k := range []*attest.PrivateKey{a, b} {
		if info, err := attest.AttestArchive(ctx, dir, k, nil); err != nil || len(info.PredicateTypes) != 0 {
			t.Errorf("again: %v, added %v", err, info.PredicateTypes)
		}
	}
	if v := verify(t, dir, attest.Policy{}, a.Public()); len(v.Attestations) != 6 {
		t.Errorf("%d bundles", len(v.Attestations))
	}
}

// Nobody's key is put to an archive that does not hold, whatever does not.
func TestAttestArchiveRefuses(t *testing.T) {
	ctx := context.Background()
	a, b := newKey(t, attest.Ed25519), newKey(t, attest.Ed25519)
	refused := func(name, dir string, class error, also func(context.Context, *attest.Verification) error) {
		t.Helper()
		index, err := os.ReadFile(filepath.Join(dir, "index.json"))
		must(t, err)
		if _, err := attest.AttestArchive(ctx, dir, b, also); !errors.Is(err, class) {
			t.Errorf("%s: expected %v, found %v", name, class, err)
		}
		if now, err := os.ReadFile(filepath.Join(dir, "index.json")); err != nil || !slices.Equal(index, now) {
			t.Errorf("%s: the archive was changed", name)
		}
	}
	dir := newArchive(t, newRun(t, nil), a)
	refused("a check of the caller's", dir, attest.ErrVerification, func(_ context.Context, v *attest.Verification) error {
		v.Add(attest.NewCheck("figures", record.Recomputable, "", "", fault.New(fault.Record, "metrics", "other")))
		return nil
	})
	canceled := errors.New("canceled")
	refused("an error of the caller's", dir, canceled, func(context.Context, *attest.Verification) error { return canceled })

	good := takeApart(t, dir)
	lying := forgery{layers: good.layers, bundles: append(slices.Clone(good.bundles),
		forgedBundle{good.bundles[0].announced, resigned(t, good, a, b, func(s *attest.Statement) { s.Predicate = []byte(`{"n":1}`) })})}
	if _, err := attest.AttestArchive(ctx, lying.putTogether(t, a), b, nil); err == nil {
		t.Error("signed beside a statement by the same key that says otherwise")
	}

	file := filepath.Join(dir, "blobs", "sha256", oci.DigestsOf([]byte(`{"metric":{}}`)).Hex())
	must(t, os.Chmod(file, 0o644))
	must(t, os.WriteFile(file, []byte(`{"metric":[]}`), 0o644))
	refused("a damaged file", dir, fault.DigestMismatch, nil)
	if _, err := attest.AttestArchive(ctx, dir, nil, nil); err == nil {
		t.Error("no key")
	}
}

// Signers that come at the same time do not lose each other's attestations.
func TestAttestArchiveTogether(t *testing.T) {
	dir := newArchive(t, newRun(t, nil), newKey(t, attest.Ed25519))
	keys := make([]attest.PublicKey, 4)
	var all sync.WaitGroup
	for i := range keys {
		k := newKey(t, attest.Ed25519)
		keys[i] = k.Public()
		all.Go(func() {
			// One that reads while another moves its files in finds a file too many, and may come again.
			for {
				_, err := attest.AttestArchive(context.Background(), dir, k, nil)
				if err == nil {
					return
				}
				if !errors.Is(err, fault.FileUnexpected) && !errors.Is(err, fault.FileMissing) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if v := verify(t, dir, attest.Policy{}, keys...); !v.OK() || len(v.Attestations) != 15 || len(v.Keys) != 4 {
		t.Errorf("%d bundles, %d keys:\n%s", len(v.Attestations), len(v.Keys), describe(v))
	}
}

func TestAttachAllKnowsTheArchive(t *testing.T) {
	a := newKey(t, attest.Ed25519)
	dir := newArchive(t, newRun(t, nil), a)
	other := oci.DigestsOf([]byte("another archive"))
	if err := oci.AttachAll(context.Background(), dir, &other, nil); !errors.Is(err, oci.ErrChanged) {
		t.Errorf("expected ErrChanged, found %v", err)
	}
}
