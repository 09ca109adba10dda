package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
	"github.com/opencontainers/go-digest"
	"github.com/zeebo/blake3"
)

// Digests identify content: its size in bytes and both digests of its bytes.
type Digests struct {
	SHA256 [32]byte
	Blake3 [32]byte
	Size   int64
}

// Hex returns the SHA-256 as 64 lower-case hex digits: the name of the content's file in a layout.
func (g Digests) Hex() string { return hex.EncodeToString(g.SHA256[:]) }

// SHA256Digest returns the SHA-256 as "sha256:<hex>".
func (g Digests) SHA256Digest() digest.Digest {
	return digest.NewDigestFromEncoded(digest.SHA256, g.Hex())
}

// Blake3Digest returns the BLAKE3 as "blake3:<hex>".
func (g Digests) Blake3Digest() digest.Digest {
	return digest.NewDigestFromEncoded(digest.BLAKE3, hex.EncodeToString(g.Blake3[:]))
}

func digestsOf(b []byte) Digests {
	return Digests{SHA256: sha256.Sum256(b), Blake3: blake3.Sum256(b), Size: int64(len(b))}
}

// DigestsOf returns the digests of bytes in memory.
func DigestsOf(b []byte) Digests { return digestsOf(b) }

// Blob is content that was read once, with the digests computed from exactly the bytes that it serves. It is held in memory, or,
// when large, in a temporary file that has no name, so that nobody can change it between the check and the use. It is safe for
// concurrent use until its layout is closed.
type Blob struct {
	Digests
	content io.ReaderAt
}

// ReadAt reads from the verified copy.
func (b *Blob) ReadAt(p []byte, off int64) (int, error) { return b.content.ReadAt(p, off) }

// Bytes returns all content when it has at most limit bytes, else an error.
func (b *Blob) Bytes(limit int64) ([]byte, error) {
	if b.Size > limit {
		return nil, fmt.Errorf("%d bytes, at most %d are read", b.Size, limit)
	}
	out := make([]byte, b.Size)
	if n, err := b.ReadAt(out, 0); int64(n) < b.Size {
		return nil, fmt.Errorf("read the staged copy: %w", err)
	}
	return out, nil
}

// copyBytes is the size of one read while hashing.
const copyBytes = 256 << 10

// stager keeps the copies of one layout: small ones in memory while there is room, all others one after the other in one file.
type stager struct {
	memory int64 // bytes held in memory
	file   *os.File
	end    int64
}

// room is the size of the largest copy that would be held in memory now.
func (s *stager) room() int64 { return min(limits.MemoryBlobBytes, limits.MemoryBytes-s.memory) }

// stage reads r to its end, once, and returns a copy with its digests. When it fails, the space that it took is free again.
func (s *stager) stage(ctx context.Context, r io.Reader) (*Blob, error) {
	head := new(bytes.Buffer)
	room := s.room()
	g, err := hashCopy(ctx, head, io.LimitReader(r, room+1))
	if err != nil {
		return nil, err
	}
	if g.Size <= room {
		s.memory += g.Size
		return &Blob{Digests: g, content: bytes.NewReader(head.Bytes())}, nil
	}
	if s.file == nil {
		if s.file, err = unnamedFile(); err != nil {
			return nil, fmt.Errorf("stage content for verification (set TMPDIR to a folder with room): %w", err)
		}
	}
	g, err = hashCopy(ctx, s.file, io.LimitReader(io.MultiReader(head, r), limits.BlobBytes+1))
	if err != nil {
		_, back := s.file.Seek(s.end, io.SeekStart)
		return nil, fmt.Errorf("stage content for verification (set TMPDIR to a folder with room): %w", errors.Join(err, back, s.file.Truncate(s.end)))
	}
	b := &Blob{Digests: g, content: io.NewSectionReader(s.file, s.end, g.Size)}
	s.end += g.Size
	return b, nil
}

func (s *stager) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}

// unnamedFile is a temporary file that nobody else can open, and that is gone when it is closed.
func unnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "benchpin-verify-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// hashCopy copies r to w and returns the digests of what went through.
func hashCopy(ctx context.Context, w io.Writer, r io.Reader) (Digests, error) {
	sha, b3 := sha256.New(), blake3.New()
	buf := make([]byte, copyBytes)
	var g Digests
	for {
		if err := ctx.Err(); err != nil {
			return Digests{}, err
		}
		n, err := r.Read(buf)
		// Neither hash returns an error from Write.
		sha.Write(buf[:n])
		b3.Write(buf[:n])
		if _, werr := w.Write(buf[:n]); werr != nil {
			return Digests{}, werr
		}
		g.Size += int64(n)
		if errors.Is(err, io.EOF) {
			sha.Sum(g.SHA256[:0])
			b3.Sum(g.Blake3[:0])
			return g, nil
		}
		if err != nil {
			return Digests{}, err
		}
	}
}
