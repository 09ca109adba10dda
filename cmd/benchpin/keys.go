package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/benchpin/benchpin/pkg/attest"
)

// passwordVariable holds the password of a private key where no terminal can be asked, as COSIGN_PASSWORD does for cosign.
const passwordVariable = "BENCHPIN_PASSWORD"

func (a *app) keyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Make keys to sign and verify with", GroupID: groupParts, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.keyGenerateCommand())
	return cmd
}

func (a *app) keyGenerateCommand() *cobra.Command {
	var out, kind string
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make a key pair: PREFIX.key (private, encrypted, in cosign's format) and PREFIX.pub",
		Long: `Make a key pair: PREFIX.key, private, encrypted with a password, in cosign's format, and PREFIX.pub, public. Nothing is overwritten.

The password is asked for on the terminal, or taken from $BENCHPIN_PASSWORD (set to the empty text: a key without protection).`,
		Example: "  BENCHPIN_PASSWORD=secret benchpin key generate --out ./auditor",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k := attest.KeyKind(kind)
			if !slices.Contains(attest.SigningKinds(), k) {
				return usagef("--kind %q: expected one of %v", kind, attest.SigningKinds())
			}
			if base := filepath.Base(out); base == "." || base == ".." || strings.HasSuffix(out, string(filepath.Separator)) {
				return usagef("--out %q names a folder: expected the beginning of two file names, such as %q", out, filepath.Join(out, "benchpin"))
			}
			password, err := a.newPassword()
			if err != nil {
				return err
			}
			key, err := attest.GenerateKey(k)
			if err != nil {
				return err
			}
			if err := attest.SaveKeyPair(key, out+".key", out+".pub", password); err != nil {
				return err
			}
			a.notef("wrote %s (keep it secret) and %s (hand it out: whoever verifies needs it)", out+".key", out+".pub")
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "benchpin", "`PREFIX` of the two files")
	cmd.Flags().StringVar(&kind, "kind", string(attest.ECDSAP256), "ecdsa-p256, ecdsa-p384 or ed25519")
	return cmd
}

// password gets the password of a key that exists.
func (a *app) password() ([]byte, error) {
	if p, ok := a.passwordFromEnvironment(); ok {
		return p, nil
	}
	return a.askPassword("password of the private key: ")
}

// newPassword gets the password of a key to be made, typed twice.
func (a *app) newPassword() ([]byte, error) {
	if p, ok := a.passwordFromEnvironment(); ok {
		return p, nil
	}
	first, err := a.askPassword("password for the new private key: ")
	if err != nil {
		return nil, err
	}
	second, err := a.askPassword("once more: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, second) {
		return nil, usagef("the two passwords differ; nothing was written")
	}
	return first, nil
}

func (a *app) passwordFromEnvironment() ([]byte, bool) {
	p, ok := a.lookupenv(passwordVariable)
	return []byte(p), ok
}

func (a *app) askPassword(prompt string) ([]byte, error) {
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, usagef("the key needs a password and there is no terminal to ask on; set $%s (to the empty text for none)", passwordVariable)
	}
	fmt.Fprint(a.stderr, prompt)
	p, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.stderr)
	if err != nil {
		return nil, fmt.Errorf("read the password: %w", err)
	}
	return p, nil
}

// privateKey loads the key to sign with. Keys that a pipeline made have the empty password, which nobody is asked for.
func (a *app) privateKey(ctx context.Context, ref string) (*attest.PrivateKey, error) {
	from := attest.KeySource{Getenv: a.lookupenv}
	if _, given := a.passwordFromEnvironment(); !given {
		from.Password = func() ([]byte, error) { return []byte{}, nil }
		key, err := attest.LoadSigner(ctx, ref, from)
		if !errors.Is(err, attest.ErrPassword) {
			return key, usageOfKey(err)
		}
	}
	from.Password = a.password
	key, err := attest.LoadSigner(ctx, ref, from)
	return key, usageOfKey(err)
}

// usageOfKey makes what is no usable key a matter of usage.
func usageOfKey(err error) error {
	if errors.Is(err, attest.ErrKeyFile) || errors.Is(err, attest.ErrKeyKind) {
		return &usageError{err}
	}
	return err
}

// publicKeys loads the keys to verify with.
func (a *app) publicKeys(ctx context.Context, refs []string) ([]attest.PublicKey, error) {
	if len(refs) == 0 {
		return nil, usagef("%w: verification without a key would prove nothing; give --key FILE.pub, from a source you trust and not from the archive", attest.ErrNoKey)
	}
	var keys []attest.PublicKey
	for _, ref := range refs {
		key, err := attest.LoadVerifier(ctx, ref, attest.KeySource{Getenv: a.lookupenv})
		if err != nil {
			return nil, usageOfKey(err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// publicHalf is the file of a private key's public half where it stands beside it under the usual name, else "".
func publicHalf(privatePath string, key attest.Signer) string {
	prefix, usual := strings.CutSuffix(privatePath, ".key")
	if !usual || key == nil || len(key.Trust().Keys) != 1 {
		return ""
	}
	public, err := attest.LoadPublic(prefix + ".pub")
	if err != nil || public.Hint() != key.Trust().Keys[0].Hint() {
		return ""
	}
	return prefix + ".pub"
}
