package pipeline

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/zeebo/blake3"

	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
)

// openCache opens the cache of digests that is asked for, nil where none is.
func (o PinOptions) openCache() (*manifest.DigestCache, error) {
	path := o.DigestCache
	switch {
	case path == "":
		return nil, nil
	case IsBucket(o.Data):
		return nil, fmt.Errorf("pin %s: a cache of digests tells files by inode and change time, which objects of a bucket do not have; leave it out", o.Data)
	case path == CacheAuto:
		dir, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("cache of digests: %w; name a file instead of %s", err, CacheAuto)
		}
		data, err := filepath.Abs(o.Data)
		if err != nil {
			return nil, fmt.Errorf("cache of digests: %w", err)
		}
		name := blake3.Sum256([]byte(data))
		path = filepath.Join(dir, "benchpin", "digests-"+hex.EncodeToString(name[:16])+".bin")
	}
	if err := apart(o.Data, place{path, "--digest-cache"}); err != nil {
		return nil, err
	}
	c, err := manifest.OpenDigestCache(path)
	if err == nil {
		c.Blind = inMemory(o.Data)
	}
	return c, err
}

// inMemory says of devices of a folder's files whether they are memory, which writes no changed pages back.
func inMemory(data string) func(device uint64) bool {
	var known sync.Map
	return func(device uint64) bool {
		blind, ok := known.Load(device)
		if !ok {
			blind, _ = known.LoadOrStore(device, record.InMemory(environment.NewMeter(data, device).FileSystem))
		}
		return blind.(bool)
	}
}

// keepCache saves the cache of a data set that was pinned, and says what it was good for.
func (o PinOptions) keepCache(c *manifest.DigestCache) error {
	if err := c.Notice(); err != nil {
		o.stage("cache    %v; it is made anew", err)
	}
	hits, files := c.Used()
	o.stage("cache    %d of %s as they were when they were hashed before", hits, counted(files, "file"))
	if n := c.Unseen(); n > 0 {
		o.stage("cache    %s in memory (tmpfs, ramfs), where a change through a mapping leaves no trace: not cached", counted(n, "file"))
	}
	return c.Commit()
}
