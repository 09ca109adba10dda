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
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin"

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
// module, a key service. That program is found on PATH, is run for every signature until ctx ends, two
// minutes at most, and gets what is signed.
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
func programKey(ctx context.Context, ref string) (PublicKey, *keyProgram, error) {
	name, rest, _ := strings.Cut(ref, "://")
	if !scheme.MatchString(name) || rest == "" || len(ref) > limits.KeyReferenceBytes {
		return PublicKey{}, nil, fmt.Errorf("key %q: %w: expected a file, env://NAME, or SCHEME://KEY with a scheme of small letters, digits and dashes",
			shorten(ref), ErrKeyFile)
	}
	fail := func(err error) (PublicKey, *keyProgram, error) {
		if errors.Is(err, exec.ErrNotFound) {
			return PublicKey{}, nil, fmt.Errorf("key %s: %w, %s%s, is not on PATH; install Sigstore's plug-in for it, or give a key file", ref, ErrKeyProgram,
				cliplugin.PluginBinaryPrefix, name)
		}
		return PublicKey{}, nil, fmt.Errorf("key %s: %w: %w", ref, ErrKeyProgram, err)
	}
	program, err := findKeyProgram(name, rest, limits.KeyProgramSeconds*time.Second)
	if err != nil {
		return fail(err)
	}
	key, err := program.publicKey(ctx)
	if err != nil {
		return fail(err)
	}
	public, err := NewPublicKey(key)
	if err != nil {
		return PublicKey{}, nil, fmt.Errorf("key %s: %w", ref, err)
	}
	program.hash = public.hash()
	return public, program, nil
}

// programSigner signs with the program that keeps the key.
type programSigner struct {
	ctx     context.Context // of the command that signs: the interface hands none on
	ref     string
	program *keyProgram
}

// PublicKey asks the program for the public half.
func (s programSigner) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return s.program.publicKey(s.ctx)
}

// SignMessage has the program sign a message.
func (s programSigner) SignMessage(message io.Reader, opts ...signature.SignOption) ([]byte, error) {
	sig, err := s.program.sign(s.ctx, message, opts)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w: %w", s.ref, ErrKeyProgram, err)
	}
	return sig, nil
}
