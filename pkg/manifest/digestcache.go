package manifest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/manifest/blake"
	"github.com/benchpin/benchpin/pkg/store"
)

// A cache of digests is a sequence of blocks of records, in the order of paths:
//
//	magic, version (uint32)
//	block: length of its payload (uint32), BLAKE3(number of the block (uint64) || payload), payload; ...
//	an empty block
//
// Numbers are little-endian. A record is its path (length, bytes), size, mtime, ctime, inode, device, digest, and the digests of its
// groups, if it has some; all numbers of it are varints. It stays on the machine that wrote it: nothing but pinning reads it.
const (
	cacheMagic    = "benchpin/digests\n"
	cacheVersion  = 2       // before, pages that were changed through mappings were not written back first
	cacheBlock    = 1 << 20 // bytes from which a block is written
	maxCacheBlock = 1 << 30
)

// racyMargin is how much older than the moment of hashing the last change of a file must be for its digest to be cached: more than any
// file system's time stamps are coarse (FAT counts in steps of two seconds), and so more than a write could hide in. Git has the
// same rule for its index.
const racyMargin = 3 * time.Second

// errCache is wrapped by errors about a cache that is damaged, or of another version.
var errCache = errors.New("the cache of digests is damaged, or of another version")

// DigestCache lets Build take the digest of a file from an earlier run where path, size, mtime, ctime, inode and device are the same. It
// is a convenience and no evidence, since whoever can write to the machine can write to it: verifying never looks at it.
//
// Damage never gives a digest: every block is held to its own before anything of it is used, and what follows a damaged one is hashed.
// A file that changed shortly before it was hashed is not cached, since another change within the same step of the clock would leave
// its identity as it is.
//
// Its source should write changed pages back before it describes a file (store.FolderOptions.Settle), or a mapping that stood before can
// change a file whose digest is cached without a trace.
type DigestCache struct {
	// Blind, if not nil, is true for devices whose files can change without a trace in their identity, as in memory. Their digests are
	// neither kept nor taken. It may be called from two goroutines at once.
	Blind func(device uint64) bool

	path string

	// What is read.
	in     *os.File
	reader *bufio.Reader
	left   int64 // bytes of the file that were not read
	block  uint64
	rest   []byte // of the current block
	next   *cacheRecord
	last   string
	notice error

	// What is written.
	out         *os.File
	writer      *bufio.Writer
	payload     []byte
	blocks      uint64
	hits, files int64
	blind       int64 // of files, how many were not looked for
	done        bool
}

// cacheRecord is what is known of one file.
type cacheRecord struct {
	info   store.Info
	digest [32]byte
	groups [][32]byte
}

// OpenDigestCache opens the cache at a path, which need not exist, for one Build and then Commit or Abort.
func OpenDigestCache(path string) (*DigestCache, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("cache of digests: %w", err)
	}
	c := &DigestCache{path: path}
	f, err := store.OpenRegular(path)
	switch {
	case err == nil:
		c.in, c.reader = f, bufio.NewReaderSize(f, 64<<10)
		if info, err := f.Stat(); err == nil {
			c.left = info.Size()
		}
		c.begin()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cache of digests: %w", err)
	}
	if c.out, err = temporary(path); err != nil {
		c.closeIn()
		return nil, fmt.Errorf("cache of digests: %w", err)
	}
	c.writer = bufio.NewWriterSize(c.out, 64<<10)
	_, _ = c.writer.Write(cacheHead()) // the writer keeps its error
	return c, nil
}

func cacheHead() []byte { return binary.LittleEndian.AppendUint32([]byte(cacheMagic), cacheVersion) }

// Used says how many of the files of the data set had their digests taken from the cache.
func (c *DigestCache) Used() (hits, files int64) { return c.hits, c.files }

// Unseen says how many of the files lie on devices that are Blind.
func (c *DigestCache) Unseen() int64 { return c.blind }

// Notice returns what was wrong with the cache, nil if nothing was: it is made anew then.
func (c *DigestCache) Notice() error { return c.notice }

func (c *DigestCache) closeIn() {
	if c.in != nil {
		_ = c.in.Close()
		c.in = nil
	}
}

// give up reading: what comes is hashed.
func (c *DigestCache) give(up error) {
	if c.notice == nil && up != nil {
		c.notice = fmt.Errorf("%s: %w: %w", c.path, errCache, up)
	}
	c.rest, c.next = nil, nil
	c.closeIn()
}

func (c *DigestCache) begin() {
	head := cacheHead()
	found := make([]byte, len(head))
	if _, err := io.ReadFull(c.reader, found); err != nil || string(found) != string(head) {
		c.give(fmt.Errorf("expected it to begin with %q, found %q", head, found))
	}
	c.left -= int64(len(head))
}

// load reads the next block.
func (c *DigestCache) load() error {
	var head [36]byte
	if _, err := io.ReadFull(c.reader, head[:]); err != nil {
		return fmt.Errorf("block %d: %w", c.block, err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if c.left -= int64(len(head)); n > c.left || n > maxCacheBlock {
		return fmt.Errorf("block %d: %d bytes, %d are left", c.block, n, c.left)
	}
	b := make([]byte, 8, 8+n)
	binary.LittleEndian.PutUint64(b, c.block)
	b = b[:8+n]
	if _, err := io.ReadFull(c.reader, b[8:]); err != nil {
		return fmt.Errorf("block %d: %w", c.block, err)
	}
	if sum := blake3.Sum256(b); string(sum[:]) != string(head[4:]) {
		return fmt.Errorf("block %d: expected %x, found %x", c.block, head[4:], sum)
	}
	c.left -= n
	c.block++
	if c.rest = b[8:]; n == 0 {
		c.closeIn() // the end, as it should be
	}
	return nil
}

// record returns the next record, nil at the end and after damage.
func (c *DigestCache) record() *cacheRecord {
	if c.next != nil {
		return c.next
	}
	if len(c.rest) == 0 && c.in != nil {
		if err := c.load(); err != nil {
			c.give(err)
		}
	}
	if len(c.rest) == 0 {
		return nil
	}
	r, rest, err := parseRecord(c.rest)
	if err == nil && r.info.Path <= c.last {
		err = fmt.Errorf("block %d: %q stands after %q", c.block, r.info.Path, c.last)
	}
	if err != nil {
		c.give(err)
		return nil
	}
	c.last, c.rest, c.next = r.info.Path, rest, r
	return r
}

// lookup returns what is known of a file that is as described. Paths must ascend from call to call.
func (c *DigestCache) lookup(i store.Info) *cacheRecord {
	c.files++
	if c.Blind != nil && c.Blind(i.Device) {
		c.blind++
		return nil
	}
	for r := c.record(); r != nil; r = c.record() {
		switch {
		case r.info.Path > i.Path:
			return nil
		case r.info.Path == i.Path && r.info.Same(i):
			c.hits++
			return r
		}
		c.next = nil
	}
	return nil
}

// keep adds a file in the order of paths. begun is a moment before its bytes were read.
func (c *DigestCache) keep(h FileHash, path string, begun time.Time) {
	if c.Blind != nil && c.Blind(h.Info.Device) {
		return
	}
	newest := time.Unix(0, max(h.Info.ModTime, h.Info.ChangeTime))
	if !newest.Before(begun.Add(-racyMargin)) {
		return
	}
	h.Info.Path = path
	c.add(&cacheRecord{h.Info, h.Digest, h.Groups})
}

func (c *DigestCache) add(r *cacheRecord) {
	c.payload = r.append(c.payload)
	if len(c.payload) >= cacheBlock {
		c.flush()
	}
}

// flush writes a block, an empty one too.
func (c *DigestCache) flush() {
	if len(c.payload) > maxCacheBlock { // of a file of tens of terabytes: not worth it
		c.payload = c.payload[:0]
		return
	}
	h := blake3.New()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, c.blocks))
	_, _ = h.Write(c.payload)
	_, _ = c.writer.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(c.payload))))
	_, _ = c.writer.Write(h.Sum(nil))
	_, _ = c.writer.Write(c.payload)
	c.blocks++
	c.payload = c.payload[:0]
}

// Commit puts what Build saw in place of the cache.
func (c *DigestCache) Commit() (err error) {
	if c.done {
		return errClosed
	}
	defer func() {
		if aerr := c.Abort(); err == nil {
			err = aerr
		}
	}()
	if len(c.payload) > 0 {
		c.flush()
	}
	c.flush()
	if err = c.writer.Flush(); err == nil {
		err = c.out.Sync()
	}
	if err == nil {
		err = os.Rename(c.out.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("save the cache of digests %s: %w", c.path, err)
	}
	return nil
}

// Abort leaves the cache as it was. After Commit it does nothing, so that it can be deferred.
func (c *DigestCache) Abort() error {
	if c.done {
		return nil
	}
	c.done = true
	c.closeIn()
	err := c.out.Close()
	if rerr := os.Remove(c.out.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

func (r *cacheRecord) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.info.Path)))
	b = append(b, r.info.Path...)
	b = binary.AppendVarint(b, r.info.Size)
	b = binary.AppendVarint(b, r.info.ModTime)
	b = binary.AppendVarint(b, r.info.ChangeTime)
	b = binary.AppendUvarint(b, r.info.Inode)
	b = binary.AppendUvarint(b, r.info.Device)
	b = append(b, r.digest[:]...)
	for i := range r.groups {
		b = append(b, r.groups[i][:]...)
	}
	return b
}

var errRecord = errors.New("a record is not one")

func parseRecord(b []byte) (*cacheRecord, []byte, error) {
	r := &cacheRecord{}
	n, k := binary.Uvarint(b)
	if k <= 0 || n > store.MaxName || int(n) > len(b)-k {
		return nil, nil, errRecord
	}
	r.info.Path, b = string(b[k:k+int(n)]), b[k+int(n):]
	for _, to := range []*int64{&r.info.Size, &r.info.ModTime, &r.info.ChangeTime} {
		if *to, k = binary.Varint(b); k <= 0 {
			return nil, nil, errRecord
		}
		b = b[k:]
	}
	for _, to := range []*uint64{&r.info.Inode, &r.info.Device} {
		if *to, k = binary.Uvarint(b); k <= 0 {
			return nil, nil, errRecord
		}
		b = b[k:]
	}
	if len(b) < 32 || r.info.Size < 0 || r.info.Size > math.MaxInt64-GroupSize {
		return nil, nil, errRecord
	}
	copy(r.digest[:], b)
	b = b[32:]
	groups := GroupCount(r.info.Size)
	if groups > int64(len(b)/32) {
		return nil, nil, errRecord
	}
	for range groups {
		r.groups = append(r.groups, [32]byte(b))
		b = b[32:]
	}
	if groups > 0 && blake.Digest(r.groups) != r.digest {
		return nil, nil, errRecord
	}
	return r, b, nil
}
