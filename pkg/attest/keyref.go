package attest

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// KeySource says where the parts of a key come from that its reference does not hold.
type KeySource struct {
	// Getenv looks up an environment variable, for env://NAME. nil: there are none.
	Getenv func(name string) (string, bool)
	// Password is asked when a private key is encrypted; see ParsePrivate.
	Password func() ([]byte, error)
}

// ErrKeyProgram: the program that keeps a key is not there, or does not do what it was asked.
var ErrKeyProgram = errors.New("the program that keeps the key")

// environmentScheme is how a reference names an environment variable that holds a key in PEM form, as in cosign.
const environmentScheme = "env"

// scheme is what may stand before "://": it becomes part of a program's name, so that it holds nothing that leads to another folder.
var scheme = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// LoadSigner returns the private key that ref names: a file, env://NAME (an environment variable that holds what the file would), or
// SCHEME://REST, a key that the program sigstore-kms-SCHEME keeps (Sigstore's plug-in protocol v1, as cosign runs it): a hardware
// module, a key service. That program is found on PATH, is run for every signature until ctx ends, and gets what is signed.
func LoadSigner(ctx context.Context, ref string, from KeySource) (*PrivateKey, error) {
	name, rest, isRef := strings.Cut(ref, "://")
	switch {
	case !isRef:
		return LoadPrivate(ref, from.Password)
	case name == environmentScheme:
		data, err := from.variable(rest)
		if err != nil {
			return nil, err
		}
		k, err := ParsePrivate(data, from.Password)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", rest, err)
		}
		return k, nil
	}
	public, program, err := programKey(ctx, ref)
	if err != nil {
		return nil, err
	}
	if public.kind == RSA {
		return nil, fmt.Errorf("%s: %w: %s is verified with and not signed with; use one of %v", ref, ErrKeyKind, public.kind, SigningKinds())
	}
	return &PrivateKey{signer: programSigner{ctx, ref, program}, public: public}, nil
}

// LoadVerifier returns the public key that ref names, as LoadSigner the private one. A program is asked only for the public key;
// signatures are verified here.
func LoadVerifier(ctx context.Context, ref string, from KeySource) (PublicKey, error) {
	name, rest, isRef := strings.Cut(ref, "://")
	switch {
	case !isRef:
		return LoadPublic(ref)
	case name == environmentScheme:
		data, err := from.variable(rest)
		if err != nil {
			return PublicKey{}, err
		}
		k, err := ParsePublic(data)
		if err != nil {
			return PublicKey{}, fmt.Errorf("environment variable %s: %w", rest, err)
		}
		return k, nil
	}
	public, _, err := programKey(ctx, ref)
	return public, err
}

// variable returns the value of an environment variable that must hold a key.
func (s KeySource) variable(name string) ([]byte, error) {
	if s.Getenv != nil {
		if v, ok := s.Getenv(name); ok && v != "" {
			return []byte(v), nil
		}
	}
	return nil, fmt.Errorf("key env://%s: %w: the environment variable %q is not set, or empty; it must hold the key in PEM form", name, ErrKeyFile, name)
}

// programKey asks the program that keeps a key for the public half, and returns what signs with the hash that goes with it.
func programKey(ctx context.Context, ref string) (PublicKey, signature.SignerVerifier, error) {
	name, rest, _ := strings.Cut(ref, "://")
	if !scheme.MatchString(name) || rest == "" || len(ref) > limits.KeyReferenceBytes {
		return PublicKey{}, nil, fmt.Errorf("key %q: %w: expected a file, env://NAME, or SCHEME://KEY with a scheme of small letters, digits and dashes",
			shorten(ref), ErrKeyFile)
	}
	fail := func(err error) (PublicKey, signature.SignerVerifier, error) {
		if errors.Is(err, exec.ErrNotFound) {
			return PublicKey{}, nil, fmt.Errorf("key %s: %w, %s%s, is not on PATH; install Sigstore's plug-in for it, or give a key file", ref, ErrKeyProgram,
				cliplugin.PluginBinaryPrefix, name)
		}
		return PublicKey{}, nil, fmt.Errorf("key %s: %w: %w", ref, ErrKeyProgram, err)
	}
	program, err := cliplugin.LoadSignerVerifier(ctx, ref, crypto.SHA256)
	if err != nil {
		return fail(err)
	}
	var key crypto.PublicKey
	if err := answering(func() (err error) {
		key, err = program.PublicKey(options.WithContext(ctx))
		return err
	}); err != nil {
		return fail(err)
	}
	public, err := NewPublicKey(key)
	if err != nil {
		return PublicKey{}, nil, fmt.Errorf("key %s: %w", ref, err)
	}
	if public.hash() != crypto.SHA256 {
		if program, err = cliplugin.LoadSignerVerifier(ctx, ref, public.hash()); err != nil {
			return fail(err)
		}
	}
	return public, program, nil
}

// programSigner signs with the program that keeps the key.
type programSigner struct {
	ctx     context.Context // of the command that signs: the interface hands none on
	ref     string
	program signature.SignerVerifier
}

// PublicKey asks the program for the public half.
func (s programSigner) PublicKey(opts ...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return s.program.PublicKey(append(opts, options.WithContext(s.ctx))...)
}

// SignMessage has the program sign a message.
func (s programSigner) SignMessage(message io.Reader, opts ...signature.SignOption) (sig []byte, err error) {
	err = answering(func() (err error) {
		sig, err = s.program.SignMessage(message, append(opts, options.WithContext(s.ctx))...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("key %s: %w: %w", s.ref, ErrKeyProgram, err)
	}
	return sig, nil
}

// answering turns the panic with which Sigstore's client meets an answer that lacks what was asked for into an error.
func answering(ask func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("its answer lacks what was asked for")
		}
	}()
	return ask()
}
