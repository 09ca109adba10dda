package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// ErrExists is returned when something stands where a crate or a file is to be written.
var ErrExists = errors.New("it is there already, and nothing is written over")

// CrateInfo says what a crate holds.
type CrateInfo struct {
	// Folder is where it stands.
	Folder string `json:"folder"`
	// Files and Bytes are those of all its files, with their description.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// SHA256 is that of ro-crate-metadata.json, "sha256:<hex>", which names every other file's.
	SHA256 string `json:"digest"`
}

// WriteCrate writes a new folder with the crate of a source: its description, and every file that it describes, compared with the digests
// there. The folder appears when it is whole, and not before. Where something stands, the error is ErrExists.
func WriteCrate(ctx context.Context, folder string, s *Source, card Card) (info CrateInfo, err error) {
	description, err := Crate(s, card)
	if err != nil {
		return info, err
	}
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		return info, fmt.Errorf("export ro-crate: %s: %w", folder, ErrExists)
	}
	parent := filepath.Dir(filepath.Clean(folder))
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return info, fmt.Errorf("export ro-crate: %w", err)
	}
	staging, err := os.MkdirTemp(parent, ".benchpin-crate-*")
	if err != nil {
		return info, fmt.Errorf("export ro-crate: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("export ro-crate: %w", err), os.RemoveAll(staging))
		}
	}()
	g := oci.DigestsOf(description)
	info = CrateInfo{Folder: folder, SHA256: g.SHA256Digest().String()}
	described := &Source{}
	described.addBytes(CrateMetadata, "application/ld+json", description)
	for _, c := range slices.Concat(described.Contents, s.Contents, s.Attestations) {
		if err := writeContent(ctx, staging, c); err != nil {
			return info, err
		}
		info.Files++
		info.Bytes += c.Digests.Size
	}
	// MkdirTemp's folder is for its owner alone; a crate is to be handed on.
	if err := os.Chmod(staging, 0o755); err != nil {
		return info, err
	}
	return info, os.Rename(staging, folder)
}
