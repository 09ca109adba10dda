package sigstore

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

// sameEntry compares the parts of a log entry that sigstore-go takes as they come, once it has found what they should be in the log: the kind, and
// for logs of Rekor's version 2 the body, which it makes anew of the bundle instead of reading it. A part that nobody checks would mislead
// whoever reads it.
func sameEntry(e *tlog.Entry) error {
	entry := e.TransparencyLogEntry()
	var body struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(entry.CanonicalizedBody, &body); err != nil {
		return fmt.Errorf("the entry's body is no JSON: %w", err)
	}
	if k := entry.KindVersion; body.Kind != k.GetKind() || body.Version != k.GetVersion() {
		return fmt.Errorf("the entry is said to be %.40q %.40q, and its body is %.40q %.40q", k.GetKind(), k.GetVersion(), body.Kind, body.Version)
	}
	if !e.IsRekorV2() {
		return nil
	}
	// The checkpoint was verified: its lines are the origin, the size and the root.
	lines := strings.SplitN(entry.GetInclusionProof().GetCheckpoint().GetEnvelope(), "\n", 4)
	if len(lines) < 4 {
		return errors.New("the entry has no checkpoint")
	}
	size, err := strconv.ParseUint(lines[1], 10, 63)
	if err != nil {
		return fmt.Errorf("the checkpoint's size: %w", err)
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil {
		return fmt.Errorf("the checkpoint's root: %w", err)
	}
	p := entry.GetInclusionProof()
	if uint64(p.GetTreeSize()) != size || !bytes.Equal(p.GetRootHash(), root) || p.GetLogIndex() != entry.LogIndex {
		return errors.New("the entry's proof is of another tree or place than its checkpoint")
	}
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(entry.LogIndex), size, rfc6962.DefaultHasher.HashLeaf(entry.CanonicalizedBody), p.GetHashes(), root); err != nil {
		return fmt.Errorf("the entry's body is not what was logged: %w", err)
	}
	return nil
}
