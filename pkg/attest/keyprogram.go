package attest

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/common"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/encoding"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// keyProgram asks the program that keeps a key, in Sigstore's plug-in protocol v1. Sigstore's own client reads answers of any size, waits
// for ever, and does not tell a program that failed from one that answered something else.
type keyProgram struct {
	name string // of the executable, on PATH
	rest string // what stands after SCHEME://
	hash crypto.Hash
	// limit is how long one answer may take.
	limit time.Duration
}

// findKeyProgram finds the program of a scheme. Where there is none, the error matches exec.ErrNotFound.
func findKeyProgram(scheme, rest string, limit time.Duration) (*keyProgram, error) {
	p := &keyProgram{name: cliplugin.PluginBinaryPrefix + scheme, rest: rest, hash: crypto.SHA256, limit: limit}
	_, err := exec.LookPath(p.name)
	return p, err
}

// publicKey asks for the public half.
func (p *keyProgram) publicKey(ctx context.Context) (crypto.PublicKey, error) {
	answer, err := p.ask(ctx, nil, &common.MethodArgs{MethodName: common.PublicKeyMethodName,
		PublicKey: &common.PublicKeyArgs{PublicKeyOptions: encoding.PackPublicKeyOptions(nil)}})
	if err != nil {
		return nil, err
	}
	if answer.PublicKey == nil {
		return nil, errors.New("its answer lacks the public key that was asked for")
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(answer.PublicKey.PublicKeyPEM)
	if err != nil {
		return nil, errors.New("its answer holds no public key in PEM form")
	}
	return key, nil
}

// sign has a message signed.
func (p *keyProgram) sign(ctx context.Context, message io.Reader, opts []signature.SignOption) ([]byte, error) {
	answer, err := p.ask(ctx, message, &common.MethodArgs{MethodName: common.SignMessageMethodName,
		SignMessage: &common.SignMessageArgs{SignOptions: encoding.PackSignOptions(opts)}})
	if err != nil {
		return nil, err
	}
	if answer.SignMessage == nil || len(answer.SignMessage.Signature) == 0 {
		return nil, errors.New("its answer lacks the signature that was asked for")
	}
	return answer.SignMessage.Signature, nil
}

// ask runs the program once. What it says on standard error is passed on as it comes, because it may ask for something there.
func (p *keyProgram) ask(parent context.Context, message io.Reader, method *common.MethodArgs) (*common.PluginResp, error) {
	if parent.Err() != nil {
		return nil, context.Cause(parent)
	}
	ctx, cancel := context.WithTimeout(parent, p.limit)
	defer cancel()
	deadline, _ := ctx.Deadline()
	args, err := json.Marshal(&common.PluginArgs{MethodArgs: method, InitOptions: &common.InitOptions{CtxDeadline: &deadline,
		ProtocolVersion: common.ProtocolVersion, KeyResourceID: p.rest, HashFunc: p.hash, RPCOptions: encoding.PackRPCOptions(nil)}})
	if err != nil {
		return nil, err
	}
	var out, said bounded
	out.most, said.most = limits.KeyAnswerBytes, limits.KeyAnswerBytes
	cmd := exec.CommandContext(ctx, p.name, common.ProtocolVersion, string(args))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = message, &out, io.MultiWriter(&said, os.Stderr)
	cmd.WaitDelay = time.Second // for what it started and left behind
	err = cmd.Run()
	switch {
	case parent.Err() != nil:
		return nil, context.Cause(parent)
	case out.over || said.over:
		return nil, fmt.Errorf("%s said more than %d bytes, expected an answer in JSON, and was ended", p.name, limits.KeyAnswerBytes)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s gave no answer within %s and was ended%s", p.name, p.limit, said.quote())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	var answer common.PluginResp
	isAnswer := json.Unmarshal(out.Bytes(), &answer) == nil
	switch {
	case isAnswer && answer.ErrorMessage != "":
		return nil, fmt.Errorf("%s says: %s", p.name, shorten(fault.Printable(answer.ErrorMessage)))
	case exit != nil:
		return nil, fmt.Errorf("%s failed (%s)%s", p.name, exit.ProcessState, said.quote())
	case !isAnswer:
		return nil, fmt.Errorf("%s answered %q, expected an answer in JSON by version %s of Sigstore's plug-in protocol%s", p.name,
			shorten(out.String()), common.ProtocolVersion, said.quote())
	}
	return &answer, nil
}

// bounded keeps what a program says, and refuses more than it may: the program is ended by that.
type bounded struct {
	bytes.Buffer
	most int
	over bool
}

// Write keeps p, or fails.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		b.over = true
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}

// ReadFrom hides that of Buffer, which has no bound.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{b}, r)
}

// quote is what was said, for the end of an error.
func (b *bounded) quote() string {
	text := strings.TrimSpace(b.String())
	if text == "" {
		return ""
	}
	return fmt.Sprintf("; on standard error it said %q", shorten(text))
}
