// Package stream gives deterministic pseudo-random bytes and numbers with random access.
//
// A family of streams is named by a domain, a generator version and a seed. Within a family every stream has a 64-bit
// index (of a file, of a rank), and every byte of a stream is a pure function of (domain, version, seed, index, offset):
// it may be computed alone, in any order, by any number of goroutines or machines, and is the same on every
// architecture and Go release. docs/stream.md specifies it in full.
//
// The package never keeps a position, never reads a clock or an entropy source, and is no source of secrets.
package stream

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/blake3"
)

// Version is the version of the construction that this package implements, as docs/stream.md specifies it. It is
// part of the derivation context, so two versions never share a byte. It changes only when output would change.
const Version = 1

// keyContext is the BLAKE3 key derivation context. The construction's version is its last word.
const keyContext = "github.com/benchpin/benchpin 2026-11-30 seeded stream v1"

const blockSize = aes.BlockSize

// Seeded is a family of streams under one key. It is safe for concurrent use and never changes.
type Seeded struct {
	bytes cipher.Block // key of Fill
	draws cipher.Block // key of the numbers; another one, so that numbers never repeat file content
	// chains holds scratch blocks: calls through cipher.Block let their arguments escape, and a draw must not allocate.
	chains sync.Pool
	zero   [16 << 10]byte // read only: what the key stream is laid over, small enough for the first cache
}

// New returns the family named by domain (what the bytes are for, such as "benchpin/datagen"), version (of the caller's
// generator, not of this package) and seed. Any values are allowed; different values give unrelated streams.
func New(domain string, version uint32, seed uint64) *Seeded {
	material := binary.BigEndian.AppendUint64(nil, uint64(len(domain)))
	material = append(material, domain...)
	material = binary.BigEndian.AppendUint32(material, version)
	material = binary.BigEndian.AppendUint64(material, seed)
	var key [32]byte
	blake3.DeriveKey(keyContext, material, key[:])
	return &Seeded{bytes: mustAES(key[:16]), draws: mustAES(key[16:])}
}

// mustAES returns AES-128 under a key of 16 bytes. Its only error is a wrong key length, which cannot occur here.
func mustAES(key []byte) cipher.Block {
	b, err := aes.NewCipher(key)
	if err != nil {
		panic(fmt.Sprintf("stream: AES key of %d bytes: %v", len(key), err))
	}
	return b
}

// Fill writes the bytes [off, off+len(dst)) of stream index into dst: AES-128-CTR key stream, counter block = index
// (64 bits, big-endian) || off/16 (64 bits, big-endian). A stream has 2^64 bytes; reading over its end starts it again.
func (s *Seeded) Fill(dst []byte, index, off uint64) {
	for len(dst) > 0 {
		n := len(dst)
		if left := -off; left != 0 && uint64(n) > left { // bytes up to 2^64, where the stream starts again
			n = int(left)
		}
		s.fill(dst[:n], index, off)
		dst, off = dst[n:], off+uint64(n)
	}
}

func (s *Seeded) fill(dst []byte, index, off uint64) {
	var iv [blockSize]byte
	binary.BigEndian.PutUint64(iv[:8], index)
	binary.BigEndian.PutUint64(iv[8:], off/blockSize)
	ctr := cipher.NewCTR(s.bytes, iv[:])
	if skip := off % blockSize; skip != 0 {
		var drop [blockSize]byte
		ctr.XORKeyStream(drop[:skip], drop[:skip])
	}
	for len(dst) > 0 {
		n := min(len(dst), len(s.zero))
		ctr.XORKeyStream(dst[:n], s.zero[:n])
		dst = dst[n:]
	}
}

// Stream is one endless stream of a family: the bytes of one index. It is a small value, safe for concurrent use.
type Stream struct {
	family *Seeded
	index  uint64
}

var _ io.ReaderAt = Stream{}

// At returns stream index of the family.
func (s *Seeded) At(index uint64) Stream { return Stream{family: s, index: index} }

// ReadAt fills p with the stream's bytes from off on. It never reaches an end; its only error is a negative offset.
func (st Stream) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("stream %d: read at offset %d: an offset must be 0 or more", st.index, off)
	}
	st.family.Fill(p, st.index, uint64(off))
	return len(p), nil
}
