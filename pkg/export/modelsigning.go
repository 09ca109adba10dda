package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/manifest"
)

// ModelSigningType is the predicate type of the OpenSSF model signing specification 1.0.
const ModelSigningType = "https://model_signing/signature/v1.0"

// MaxModelFiles is the number of files above which no model signature is made: it holds a line a file, and every reader holds it in memory.
const MaxModelFiles = 1 << 20

// ErrModelSigning is wrapped by errors about data sets that the format cannot describe.
var ErrModelSigning = errors.New("the model signing format cannot describe this data set")

// gitPaths are left out of every signature by the format's program unless it is told otherwise.
var gitPaths = [...]string{".git", ".gitattributes", ".github", ".gitignore"}

type modelStatement struct {
	Type          string         `json:"_type"`
	Subject       []modelSubject `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     modelPredicate `json:"predicate"`
}

type modelSubject struct {
	Name   string      `json:"name"`
	Digest modelDigest `json:"digest"`
}

type modelDigest struct {
	SHA256 string `json:"sha256"`
}

type modelPredicate struct {
	Serialization modelSerialization `json:"serialization"`
	Resources     []modelResource    `json:"resources"`
}

type modelSerialization struct {
	Method        string `json:"method"`
	HashType      string `json:"hash_type"`
	AllowSymlinks bool   `json:"allow_symlinks"`
}

type modelResource struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Digest    string `json:"digest"`
}

// ModelInfo says what a model signature is about.
type ModelInfo struct {
	// File is where it was written.
	File string `json:"file,omitempty"`
	// Files is the number of files.
	Files int `json:"files"`
	// Digest is the SHA-256 of all their digests, in the order of the signature: the one subject of the statement, "sha256:<hex>".
	Digest string `json:"digest"`
}

// ModelSigning signs the data set of a source in the OpenSSF model signing format 1.0: a Sigstore bundle with an in-toto statement that lists every file
// with its BLAKE3, which is one of that format's digests. Whoever has the files verifies it with "model_signing verify key". name is the
// name of its subject, for people.
//
// The signature says what the manifest says: nothing is read of the data set. Data sets of more than MaxModelFiles files, and those with files that
// the format's program never looks at, are refused (ErrModelSigning); keys other than ECDSA, which is all that program verifies with, are
// attest.ErrKeyKind.
func ModelSigning(ctx context.Context, s *Source, name string, key *attest.PrivateKey) ([]byte, ModelInfo, error) {
	payload, info, err := modelPayload(ctx, s.Manifest, name)
	if err != nil {
		return nil, info, fmt.Errorf("export model-signing: %w", err)
	}
	bundle, err := attest.SignModel(key, payload)
	if err != nil {
		return nil, info, fmt.Errorf("export model-signing: %w", err)
	}
	return bundle, info, nil
}

// modelPayload writes the statement.
func modelPayload(ctx context.Context, m *manifest.Manifest, name string) ([]byte, ModelInfo, error) {
	h := m.Header()
	if h.Count > MaxModelFiles {
		return nil, ModelInfo{}, fmt.Errorf("%w: it has %d files, at most %d are signed", ErrModelSigning, h.Count, MaxModelFiles)
	}
	resources := make([]modelResource, 0, h.Count)
	err := m.Entries(ctx, func(e manifest.Entry) error {
		top, _, _ := strings.Cut(e.Path, "/")
		if slices.Contains(gitPaths[:], top) {
			return fmt.Errorf("%w: its programs leave out what stands under %s, and %q does", ErrModelSigning, top, e.Path)
		}
		resources = append(resources, modelResource{Name: e.Path, Algorithm: "blake3", Digest: hex.EncodeToString(e.Digest[:])})
		return nil
	})
	if err != nil {
		return nil, ModelInfo{}, err
	}
	// The format sorts by path element, where a manifest sorts by byte: "a/b" stands before "a.b".
	slices.SortFunc(resources, func(a, b modelResource) int {
		return slices.Compare(strings.Split(a.Name, "/"), strings.Split(b.Name, "/"))
	})
	all := sha256.New()
	for _, r := range resources {
		raw, err := hex.DecodeString(r.Digest)
		if err != nil {
			return nil, ModelInfo{}, err
		}
		all.Write(raw)
	}
	sum := hex.EncodeToString(all.Sum(nil))
	payload, err := encode(modelStatement{
		Type: attest.StatementType, PredicateType: ModelSigningType,
		Subject: []modelSubject{{Name: name, Digest: modelDigest{sum}}},
		Predicate: modelPredicate{
			Serialization: modelSerialization{Method: "files", HashType: "blake3"},
			Resources:     resources,
		},
	})
	return payload, ModelInfo{Files: len(resources), Digest: "sha256:" + sum}, err
}
