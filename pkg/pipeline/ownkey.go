package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/attest"
)

// ErrKeyPair is wrapped by the error about a pipeline's own key pair whose halves are not of one pair.
var ErrKeyPair = errors.New("the key pair is not one")

// ownKey returns the key pair of the folder, and whether it was made now. The public half that stands there is the one that people are
// told to verify with: it must be that of the private key, and is written again where it is missing.
func ownKey(l Layout) (key *attest.PrivateKey, made bool, err error) {
	noPassword := func() ([]byte, error) { return []byte{}, nil }
	key, err = attest.LoadPrivate(l.PrivateKey(), noPassword)
	if err == nil {
		return key, false, samePair(l, key)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, false, err
	}
	if _, err := os.Lstat(l.PublicKey()); err == nil {
		return nil, false, fmt.Errorf("%w: %s has %s and no %s; move it away, or give --key", ErrKeyPair, filepath.Dir(l.PublicKey()),
			filepath.Base(l.PublicKey()), filepath.Base(l.PrivateKey()))
	}
	if key, err = attest.GenerateKey(attest.ECDSAP256); err != nil {
		return nil, false, err
	}
	if err := os.MkdirAll(filepath.Dir(l.PrivateKey()), 0o700); err != nil {
		return nil, false, fmt.Errorf("make the folder of keys: %w", err)
	}
	return key, true, attest.SaveKeyPair(key, l.PrivateKey(), l.PublicKey(), []byte{})
}

// samePair compares the public half that stands in the folder with that of the private key.
func samePair(l Layout, key *attest.PrivateKey) error {
	public, err := attest.LoadPublic(l.PublicKey())
	if errors.Is(err, os.ErrNotExist) {
		return writeFile(l.PublicKey(), key.Public().PEM())
	}
	if err != nil {
		return err
	}
	if public.Hint() != key.Public().Hint() {
		return fmt.Errorf("%w: %s is not the public half of %s, so that what is signed would not verify with it; remove it to have the right one "+
			"written, or give --key", ErrKeyPair, l.PublicKey(), l.PrivateKey())
	}
	return nil
}
