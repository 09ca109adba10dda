package attest

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// The PEM types of key files. Keys are written as cosign writes them, so that cosign signs and verifies with them too.
const (
	pemEncrypted       = "ENCRYPTED SIGSTORE PRIVATE KEY"
	pemEncryptedCosign = "ENCRYPTED COSIGN PRIVATE KEY"
	pemPlain           = "PRIVATE KEY"
	pemPublic          = "PUBLIC KEY"
)

// Errors about key files, for errors.Is.
var (
	// ErrPassword: the password does not open the key, or the key file is damaged; the format cannot tell the two apart.
	ErrPassword = errors.New("wrong password, or damaged key file")
	// ErrKeyFile: a file, variable or other text does not hold the one key that was expected.
	ErrKeyFile = errors.New("not a usable key")
	// ErrKeyExists: a file is in the place of a new key; keys are never overwritten.
	ErrKeyExists = errors.New("key file exists already")
)

// PrivatePEM returns the key in cosign's encrypted form: PKCS #8 sealed with a key that scrypt derives from the password. An empty
// password is allowed, as it is in cosign, and protects nothing; nil is refused, because it stands for a password that nobody gave.
func (k *PrivateKey) PrivatePEM(password []byte) ([]byte, error) {
	if password == nil {
		return nil, errors.New("write private key: no password was given; use an empty one to leave the key unprotected")
	}
	if k.secret == nil {
		return nil, fmt.Errorf("write private key: %w: a program keeps it, and does not hand it out", ErrKeyKind)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.secret)
	if err != nil {
		return nil, fmt.Errorf("write private key: %w", err)
	}
	sealed, err := encrypted.Encrypt(der, password)
	if err != nil {
		return nil, fmt.Errorf("write private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemEncrypted, Bytes: sealed}), nil
}

// PEM returns the public key in PEM form.
func (p PublicKey) PEM() []byte { return pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: p.der}) }

// ParsePrivate reads a private key: cosign's encrypted form (under its new and its old name), or unencrypted PKCS #8. password is
// asked only when the key is encrypted; it may be nil when it is not.
func ParsePrivate(data []byte, password func() ([]byte, error)) (*PrivateKey, error) {
	block, err := onePEM(data)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w%s", err, convertible(data))
	}
	der := block.Bytes
	switch block.Type {
	case pemPlain:
	case pemEncrypted, pemEncryptedCosign:
		if password == nil {
			return nil, fmt.Errorf("read private key: %w: the key is encrypted and no password was given", ErrPassword)
		}
		secret, err := password()
		if err != nil {
			return nil, fmt.Errorf("read private key: ask for its password: %w", err)
		}
		if der, err = encrypted.Decrypt(block.Bytes, secret); err != nil {
			return nil, fmt.Errorf("read private key: %w: %w", ErrPassword, err)
		}
	default:
		return nil, fmt.Errorf("read private key: %w: it holds %q, expected %q (make one with `benchpin key generate` or `cosign generate-key-pair`), or "+
			"%q without encryption%s", ErrKeyFile, shorten(block.Type), pemEncrypted, pemPlain, convertible(data))
	}
	secret, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w: what %q holds is damaged, or of another kind; use one of %v, in PKCS #8", ErrKeyFile, block.Type, SigningKinds())
	}
	k, err := newPrivateKey(secret)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w", err)
	}
	return k, nil
}

// ParsePublic reads a public key in PEM form.
func ParsePublic(data []byte) (PublicKey, error) {
	block, err := onePEM(data)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read public key: %w", err)
	}
	if block.Type != pemPublic {
		hint := ""
		if strings.HasSuffix(block.Type, pemPlain) {
			hint = "; this is the secret half, give the other one"
		}
		return PublicKey{}, fmt.Errorf("read public key: %w: it holds %q, expected %q%s", ErrKeyFile, shorten(block.Type), pemPublic, hint)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read public key: %w: %s", ErrKeyFile, whyNotPublic(block.Bytes))
	}
	p, err := NewPublicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read public key: %w", err)
	}
	return p, nil
}

// convertible is how to make a key of what data holds, for the end of an error; "" where it holds no private key that could be converted.
func convertible(data []byte) string {
	if !foreignKey.Match(data) {
		return ""
	}
	return "; `openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW` makes a usable one of it"
}

// foreignKey finds the private keys that openssl writes in other forms. Before one of them may stand the parameters of its curve.
var foreignKey = regexp.MustCompile(`-----BEGIN (EC|ENCRYPTED) PRIVATE KEY-----`)

// whyNotPublic says why the content of a public key cannot be used.
func whyNotPublic(der []byte) string {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	ec := asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1} // id-ecPublicKey, RFC 5480 section 2.1.1
	rest, err := asn1.Unmarshal(der, &info)
	switch {
	case err != nil || len(rest) > 0:
		return "its content is damaged"
	case info.Algorithm.Algorithm.Equal(ec) && len(info.Key.Bytes) > 0 && (info.Key.Bytes[0] == 2 || info.Key.Bytes[0] == 3):
		return "its point is compressed; `openssl ec -pubin -in OLD -conv_form uncompressed -out NEW` writes it in full"
	}
	return "its content is damaged, or of another kind; use ECDSA over P-256 or P-384, Ed25519 or RSA"
}

// onePEM returns the one block of a file. Text around it is refused: what reads a file must read all of it.
func onePEM(data []byte) (*pem.Block, error) {
	if len(data) > limits.KeyFileBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrKeyFile, len(data), limits.KeyFileBytes)
	}
	data = bytes.TrimSpace(data)
	block, rest := pem.Decode(data)
	if block == nil || !bytes.HasPrefix(data, []byte("-----BEGIN ")) || len(bytes.TrimSpace(rest)) > 0 || len(block.Headers) > 0 {
		return nil, fmt.Errorf("%w: expected one PEM block and nothing else", ErrKeyFile)
	}
	return block, nil
}

// LoadPrivate reads a private key file; see ParsePrivate.
func LoadPrivate(path string, password func() ([]byte, error)) (*PrivateKey, error) {
	data, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	k, err := ParsePrivate(data, password)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// LoadPublic reads a public key file.
func LoadPublic(path string) (PublicKey, error) {
	data, err := readKeyFile(path)
	if err != nil {
		return PublicKey{}, err
	}
	p, err := ParsePublic(data)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func readKeyFile(path string) ([]byte, error) {
	f, err := oci.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limits.KeyFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return data, nil
}

// SaveKeyPair writes the private key (mode 0600, encrypted with password) and its public key (mode 0644). It never overwrites
// anything, and leaves neither file behind when it fails.
func SaveKeyPair(k *PrivateKey, privatePath, publicPath string, password []byte) error {
	secret, err := k.PrivatePEM(password)
	if err != nil {
		return err
	}
	if err := writeNew(privatePath, secret, 0o600); err != nil {
		return err
	}
	if err := writeNew(publicPath, k.Public().PEM(), 0o644); err != nil {
		return errors.Join(err, os.Remove(privatePath))
	}
	return nil
}

func writeNew(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("write key %s: %w; choose another name, or move the old key away", path, ErrKeyExists)
	}
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	// The mode is set again because the process's umask may have taken bits that a public key needs.
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("write key: %w", err), os.Remove(path))
	}
	return nil
}
