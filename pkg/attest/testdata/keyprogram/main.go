// Command keyprogram follows Sigstore's plug-in protocol v1 for keys in unencrypted PKCS #8 files: SCHEME://FILE. Before the file's name
// may stand how it is to misbehave: "lie:" answers nothing, "garbage:" no JSON, "another:" shows and signs with two different new keys.
package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/handler"
)

// keeper is as much of a key service as the protocol needs.
type keeper struct{ signature.SignerVerifier }

func (keeper) CreateKey(context.Context, string) (crypto.PublicKey, error) { return nil, os.ErrInvalid }

func (keeper) CryptoSigner(context.Context, func(error)) (crypto.Signer, crypto.SignerOpts, error) {
	return nil, nil, os.ErrInvalid
}

func (keeper) SupportedAlgorithms() []string { return nil }

func (keeper) DefaultAlgorithm() string { return "" }

func main() {
	if err := answer(); err != nil {
		_ = handler.WriteErrorResponse(os.Stdout, err)
		os.Exit(1)
	}
}

func answer() error {
	args, err := handler.GetPluginArgs(os.Args)
	if err != nil {
		return err
	}
	how, name, misbehaves := strings.Cut(args.InitOptions.KeyResourceID, ":")
	if !misbehaves {
		how, name = "", args.InitOptions.KeyResourceID
	}
	var key any
	switch how {
	case "lie":
		fmt.Print("{}")
		return nil
	case "garbage":
		fmt.Print("no JSON")
		return nil
	case "another":
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
	default:
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		block, _ := pem.Decode(data)
		if block == nil {
			return os.ErrInvalid
		}
		if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			return err
		}
	}
	sv, err := signature.LoadSignerVerifier(key, args.InitOptions.HashFunc)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if _, err := handler.Dispatch(&out, os.Stdin, args, keeper{sv}); err != nil {
		return err
	}
	_, err = os.Stdout.Write(out.Bytes())
	return err
}
