package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/benchpin/benchpin/pkg/attest/internal/strictjson"
)

// FromBytes is a layer whose content is in memory.
func FromBytes(title, mediaType string, content []byte) Source {
	return Source{Title: title, MediaType: mediaType, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

// FromFile is a layer whose content is a file. It is streamed, in memory that does not depend on its size.
func FromFile(title, mediaType, path string) Source {
	return Source{Title: title, MediaType: mediaType, Open: func() (io.ReadCloser, error) { return OpenRegular(path) }}
}

// FromPartOfFile is a layer whose content is at most size bytes of a file, from an offset on. It is streamed.
func FromPartOfFile(title, mediaType, path string, offset, size int64) Source {
	return Source{Title: title, MediaType: mediaType, Open: func() (io.ReadCloser, error) {
		f, err := OpenRegular(path)
		if err != nil {
			return nil, err
		}
		return partOfFile{io.NewSectionReader(f, offset, size), f}, nil
	}}
}

// partOfFile reads a stretch of a file, and closes the file.
type partOfFile struct {
	io.Reader
	io.Closer
}

// OpenRegular opens a file for reading without waiting for a pipe's other end; what is not a regular file is refused.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: expected a regular file, found %s", path, modeName(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writeBlob streams r into a temporary file of staging and, once its digest is known, moves it into the layout under that name.
func writeBlob(ctx context.Context, staging, layout string, r io.Reader) (Digests, error) {
	f, err := os.CreateTemp(staging, ".blob-*")
	if err != nil {
		return Digests{}, err
	}
	g, err := hashCopy(ctx, f, io.LimitReader(r, limits.BlobBytes+1))
	if err == nil && g.Size > limits.BlobBytes {
		err = fmt.Errorf("content is larger than %d bytes, the most that an archive holds in one layer", int64(limits.BlobBytes))
	}
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(layout, filepath.FromSlash(blobsFolder), g.Hex()))
	}
	if err != nil {
		return Digests{}, errors.Join(err, os.Remove(f.Name()))
	}
	return g, nil
}

func writeBytes(ctx context.Context, staging, layout string, b []byte) (Digests, error) {
	return writeBlob(ctx, staging, layout, bytes.NewReader(b))
}

func writeDocument(ctx context.Context, staging, layout string, m manifest) (Digests, error) {
	raw, err := strictjson.Marshal(m)
	if err != nil {
		return Digests{}, err
	}
	if len(raw) > limits.ManifestBytes {
		return Digests{}, fmt.Errorf("the manifest has %d bytes, registries take at most %d: use fewer layers", len(raw), limits.ManifestBytes)
	}
	// What is written must be readable: the same code judges both.
	var again manifest
	if err := readDocument(raw, &again); err != nil {
		return Digests{}, fmt.Errorf("the manifest would not be readable: %w", err)
	}
	return writeBytes(ctx, staging, layout, raw)
}

func writeFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
