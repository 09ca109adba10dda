package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/s3"
	"github.com/benchpin/benchpin/pkg/workload"
)

// manifestParts are the files of a manifest by the name of its header, the header last: a manifest is there when it is.
func manifestParts(header string) []string {
	return []string{manifest.GroupsPath(header), manifest.EntriesPath(header), header}
}

// FetchManifest copies the manifest of an address, s3://BUCKET/[PREFIX/]NAME.json, to a temporary folder, and returns the path of its header
// there. What it is a manifest of shows when it is opened, as with any file. The error matches fs.ErrNotExist where there is none. Call
// free when the manifest is not needed any more.
func FetchManifest(ctx context.Context, address string) (header string, free func() error, err error) {
	return fetchManifest(ctx, nil, address)
}

func fetchManifest(ctx context.Context, w *workload.Workload, address string) (header string, free func() error, err error) {
	b, name, err := openManifestBucket(ctx, w, address)
	if err != nil {
		return "", nil, err
	}
	defer b.Close()
	dir, err := os.MkdirTemp("", "benchpin-manifest-")
	if err != nil {
		return "", nil, fmt.Errorf("manifest of a bucket: %w", err)
	}
	header, free = filepath.Join(dir, name), func() error { return os.RemoveAll(dir) }
	for _, path := range slices.Backward(manifestParts(header)) {
		err := fetchFile(b, filepath.Base(path), path)
		if errors.Is(err, fs.ErrNotExist) && path == manifest.GroupsPath(header) {
			continue // not every manifest has them
		}
		if err != nil {
			return "", nil, errors.Join(fmt.Errorf("manifest: %w", err), free())
		}
	}
	return header, free, nil
}

// heldManifest is the path of a manifest that may be in a bucket, for as long as free is not called.
func heldManifest(ctx context.Context, w *workload.Workload, path string) (header string, free func() error, err error) {
	if !IsBucket(path) {
		return path, func() error { return nil }, nil
	}
	return fetchManifest(ctx, w, path)
}

// openManifestBucket opens the place of a manifest in a bucket.
func openManifestBucket(ctx context.Context, w *workload.Workload, address string) (b *s3.Bucket, name string, err error) {
	at := strings.LastIndexByte(address, '/')
	if at <= len(s3.Scheme) || at == len(address)-1 {
		return nil, "", fmt.Errorf("manifest %q: expected s3://BUCKET/[PREFIX/]NAME.json", address)
	}
	b, err = s3.Open(ctx, address[:at], bucketOptions(w, false))
	return b, address[at+1:], err
}

func fetchFile(b *s3.Bucket, name, path string) (err error) {
	in, err := b.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Info()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, 0, info.Size))
	return errors.Join(err, out.Close())
}

// manifestPlace is where a manifest is written: its own place, or a temporary one whose files are put into a bucket when it is done.
type manifestPlace struct {
	path    string
	address string // "" for a file
	free    func() error
	w       *workload.Workload
	before  map[string][]byte // what the bucket has, by path
}

// placeManifest prepares the place of a manifest of the data set at an address.
func placeManifest(ctx context.Context, w *workload.Workload, data, path string) (*manifestPlace, error) {
	if !IsBucket(path) {
		return &manifestPlace{path: path}, nil
	}
	if IsBucket(data) && strings.HasPrefix(path, strings.TrimSuffix(data, "/")+"/") {
		return nil, fmt.Errorf("--manifest %s: %w %s; choose an address outside of it", path, ErrInsideData, data)
	}
	p := &manifestPlace{address: path, w: w, before: map[string][]byte{}}
	var err error
	p.path, p.free, err = fetchManifest(ctx, w, path)
	if errors.Is(err, fs.ErrNotExist) {
		var dir string
		if dir, err = os.MkdirTemp("", "benchpin-manifest-"); err == nil {
			p.path, p.free = filepath.Join(dir, path[strings.LastIndexByte(path, '/')+1:]), func() error { return os.RemoveAll(dir) }
		}
	}
	if err != nil {
		return nil, err
	}
	for _, part := range manifestParts(p.path) {
		sum, err := fileOf(filepath.Dir(part), filepath.Base(part))
		if err == nil {
			p.before[part] = []byte(sum.Blake3)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, p.free())
		}
	}
	return p, nil
}

// keep puts what was written into the bucket, as far as it is not there already.
func (p *manifestPlace) keep(ctx context.Context) error {
	if p.address == "" {
		return nil
	}
	b, _, err := openManifestBucket(ctx, p.w, p.address)
	if err != nil {
		return err
	}
	defer b.Close()
	for _, part := range manifestParts(p.path) {
		name := filepath.Base(part)
		sum, err := fileOf(filepath.Dir(part), name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && p.before[part] != nil:
			err = b.Remove(name)
		case errors.Is(err, fs.ErrNotExist) && part == manifest.GroupsPath(p.path):
			err = nil
		case err == nil && !bytes.Equal(p.before[part], []byte(sum.Blake3)):
			err = storeFile(b, name, part)
		}
		if err != nil {
			return fmt.Errorf("manifest %s: %w", p.address, err)
		}
	}
	return nil
}

// close removes what is temporary.
func (p *manifestPlace) close() error {
	if p.free == nil {
		return nil
	}
	return p.free()
}

func storeFile(b *s3.Bucket, name, path string) error {
	in, err := store.OpenRegular(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := b.Create(name, info.Size())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Commit()
}
