package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// ErrPart is returned by AddPart when content is not what it must be.
var ErrPart = errors.New("content is not what the manifest says")

// Resume is Create for an archive whose manifest is known by its SHA-256 in hex: it goes on with the blobs that an earlier attempt at the
// same archive in the same place kept (see Keep). Whatever is found there is read again before it counts. Two attempts at once are refused.
func Resume(dir, manifestHex string) (*Writer, error) {
	dir = filepath.Clean(dir)
	if len(manifestHex) != 64 || strings.Trim(manifestHex, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("create archive %s: expected 64 lower-case hex digits for its manifest, found %q", dir, manifestHex)
	}
	if err := mustBeFree(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, fmt.Errorf("create archive %s: %w", dir, err)
	}
	// The name depends on the place too: the same archive may be pulled to two places at once.
	staging := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".benchpin-"+manifestHex[:16])
	w := &Writer{dir: dir, staging: staging, used: map[string]bool{}}
	if err := w.enter(); err != nil {
		return nil, errors.Join(fmt.Errorf("create archive %s: %w", dir, err), w.unlock())
	}
	return w, nil
}

// enter makes the folder of the attempt or takes over the one that is there, if it is this user's own and nobody works in it, and removes
// everything from it that is not a whole blob.
func (w *Writer) enter() error {
	if err := os.Mkdir(w.staging, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var err error
	if w.lock, err = os.OpenFile(w.staging, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0); err != nil {
		return err
	}
	info, err := w.lock.Stat()
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: remove it or choose another place", w.staging, owner.Uid)
	}
	if err := syscall.Flock(int(w.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another pull of this archive to this place is under way (%s): %w", w.staging, err)
	}
	root, err := os.OpenRoot(w.staging)
	if err != nil {
		return err
	}
	defer root.Close()
	// Links are removed and never followed: what the folders below are named must be folders.
	for _, folder := range []string{blobsName, blobsFolder} {
		if info, err := root.Lstat(folder); err == nil && !info.IsDir() {
			if err := root.Remove(folder); err != nil {
				return err
			}
		}
		if err := root.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for folder, keep := range map[string]func(fs.DirEntry) bool{
		".":         func(e fs.DirEntry) bool { return e.Name() == blobsName },
		blobsName:   func(e fs.DirEntry) bool { return e.Name() == "sha256" },
		blobsFolder: func(e fs.DirEntry) bool { return e.Type().IsRegular() && len(e.Name()) == 64 },
	} {
		entries, err := fs.ReadDir(root.FS(), folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !keep(e) {
				if err := root.RemoveAll(folder + "/" + e.Name()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// AddPart adds the next layer of a manifest that is known: from what an earlier attempt kept, where it is whole, and else from open. It can
// be repeated after an error. ErrPart says that the content was other than p says.
func (w *Writer) AddPart(ctx context.Context, p Part, open func() (io.ReadCloser, error)) error {
	if w.sealed || len(w.layers) == limits.Layers {
		return fmt.Errorf("add layer %s: the archive's manifest is written, or has %d layers", p.Title, limits.Layers)
	}
	if err := checkTitles(append(w.titles[:len(w.titles):len(w.titles)], p.Title)); err != nil {
		return fmt.Errorf("add layer: %w", err)
	}
	d := descriptor{MediaType: p.MediaType, Digest: sha256Digest("sha256:" + p.Hex), Size: p.Size, Annotations: map[string]string{annotationTitle: p.Title}}
	if !w.has(ctx, p) {
		r, err := open()
		if err != nil {
			return fmt.Errorf("add layer %s: %w", p.Title, err)
		}
		g, err := writeBlob(ctx, w.staging, w.staging, io.LimitReader(r, p.Size+1))
		if err = errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("add layer %s: %w", p.Title, err)
		}
		if g.Hex() != p.Hex || g.Size != p.Size {
			return errors.Join(fmt.Errorf("add layer %s: %w: expected %d bytes with sha256 %s, found %d with %s", p.Title, ErrPart, p.Size, p.Hex, g.Size, g.Hex()),
				os.Remove(filepath.Join(w.staging, filepath.FromSlash(blobsFolder), g.Hex())))
		}
	}
	w.layers, w.titles = append(w.layers, d), append(w.titles, p.Title)
	w.uses(p.Hex)
	return nil
}

// has reports whether the content of a layer is there and whole. What is not is removed.
func (w *Writer) has(ctx context.Context, p Part) bool {
	name := filepath.Join(w.staging, filepath.FromSlash(blobsFolder), p.Hex)
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	g, err := hashCopy(ctx, io.Discard, io.LimitReader(f, p.Size+1))
	return err == nil && g.Hex() == p.Hex && g.Size == p.Size
}

// Keep ends an attempt that may be taken up again with Resume, and returns the folder in which its blobs are.
func (w *Writer) Keep() (string, error) {
	staging := w.staging
	w.staging = ""
	return staging, w.unlock()
}

func (w *Writer) uses(hex ...string) {
	for _, h := range hex {
		if w.used != nil {
			w.used[h] = true
		}
	}
}

// sweep removes what an earlier attempt left and this one has no use for.
func (w *Writer) sweep() error {
	if w.used == nil {
		return nil
	}
	folder := filepath.Join(w.staging, filepath.FromSlash(blobsFolder))
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !w.used[e.Name()] {
			if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) unlock() error {
	if w.lock == nil {
		return nil
	}
	f := w.lock
	w.lock = nil
	return f.Close()
}
