package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// archives is the folder of the archives of replays.
func (l Layout) archives() string { return filepath.Join(l.Dir, "archives") }

// ReplayArchive is the archive of the run of a replay that is signed.
func (l Layout) ReplayArchive(id string) string { return filepath.Join(l.archives(), id) }

// place makes the folder of the replay and puts the archived manifest there, byte for byte.
func (r *replay) place() error {
	if err := r.l.apartFrom(r.data); err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o777); err != nil {
		return fmt.Errorf("make the folder of the replay: %w", err)
	}
	header := r.l.Manifest()
	// The header comes last: a manifest is there when it is.
	for _, f := range []struct{ title, path string }{
		{attest.TitleGroups, manifest.GroupsPath(header)}, {attest.TitleEntries, manifest.EntriesPath(header)}, {attest.TitleManifest, header},
	} {
		b := r.v.File(f.title)
		if b == nil {
			continue // an archive need not have group digests
		}
		if err := placeFile(b, f.path); err != nil {
			return err
		}
	}
	return nil
}

// placeFile writes what an archive holds to a file. One of other content is not replaced.
func placeFile(b *oci.Blob, path string) error {
	if info, err := os.Stat(path); err == nil {
		sum, err := fileOf(filepath.Dir(path), filepath.Base(path))
		if err != nil {
			return err
		}
		if info.Size() == b.Size && sum.Blake3 == b.Blake3Digest().String() {
			return nil
		}
		return fmt.Errorf("%s stands there and is not that of the archive; give --dir another folder", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("manifest of the archive: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("manifest of the archive: %w", err)
	}
	_, err = io.Copy(f, io.NewSectionReader(b, 0, b.Size))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("manifest of the archive: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// dataAgain makes the data set from its recipe, or compares the one at hand with its manifest, and reports whether it may be run on.
func (r *replay) dataAgain(ctx context.Context) (bool, error) {
	w, h := r.w.Workload, r.v.Manifest.Header()
	if bench.CheckpointOnly(w) {
		r.item(itemData, attest.ReplayAbsent, "the workload reads no data set")
		return true, nil
	}
	there, err := r.dataThere()
	switch {
	case err != nil:
		return false, err
	case there && w.Benchpin.Verify == workload.VerifyBefore && r.Scope == ReplayAll:
		// The run hashes every file before it begins: once is enough.
		return true, nil
	case there:
		return r.dataAtHand(ctx)
	case h.Recipe == nil:
		return false, fmt.Errorf("%w: nobody generated it, so that no recipe makes it again; give the folder that holds it with --data", ErrNeedData)
	}
	return r.generate(ctx)
}

// dataThere reports whether there is a data set, instead of nothing or one that is not complete yet.
func (r *replay) dataThere() (bool, error) {
	if IsBucket(r.data) {
		return true, nil
	}
	list, err := os.ReadDir(r.data)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("data set: %w", err)
	}
	for _, e := range list {
		if e.Name() == datagen.Marker {
			return false, nil
		}
	}
	return len(list) > 0, nil
}

func (r *replay) generate(ctx context.Context) (bool, error) {
	h := r.v.Manifest.Header()
	recipe, err := datagen.ParseRecipe(h.Recipe)
	if err != nil {
		return false, refused{fmt.Errorf("recipe of the manifest: %w", err)}
	}
	if err := available(recipe); err != nil {
		return false, err
	}
	st, err := store.NewFolder(r.data, store.FolderOptions{Begin: true})
	if err != nil {
		return false, err
	}
	defer st.Close()
	r.stage("generate %s into %s", counted(recipe.Files(), "file"), r.data)
	made, err := datagen.Generate(ctx, st, recipe, datagen.Options{Workers: r.Workers,
		Progress: func(p datagen.Progress) { r.progress("generate", p.Files, p.AllFiles, p.Bytes, p.AllBytes) }})
	if err != nil {
		return false, asVerification(fmt.Errorf("generate: %w", err))
	}
	if made.Root == h.Root {
		r.item(itemData, attest.ReplaySame, "root %s; %s generated from the recipe", h.Root, counted(h.Count, "file"))
		return true, nil
	}
	// Which file it is tells the comparison with the archived manifest.
	return r.dataAtHand(ctx)
}

// dataAtHand compares the data set in its place with the archived manifest.
func (r *replay) dataAtHand(ctx context.Context) (bool, error) {
	st, err := OpenData(ctx, r.data, store.FolderOptions{Uncached: true, Resident: true})
	if err != nil {
		return false, err
	}
	defer st.Close()
	h := r.v.Manifest.Header()
	r.stage("verify   %s, %s, against %s", counted(h.Count, "file"), gigabytes(h.Bytes), h.Root)
	_, err = manifest.Verify(ctx, r.v.Manifest, st, manifest.VerifyOptions{Workers: r.Workers, Limit: 1,
		Progress: func(n, done int64) { r.progress("verify", n, h.Count, done, h.Bytes) }})
	if r.dataDiffers(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	r.dataHeld()
	return true, nil
}

// dataDiffers makes the item of a data set that is not what its manifest says, where that is what err is about.
func (r *replay) dataDiffers(err error) bool {
	var mismatch *manifest.MismatchError
	if !errors.As(err, &mismatch) {
		return false
	}
	r.item(itemData, attest.ReplayDiffers, "%v", mismatch)
	return true
}

// dataHeld makes the item of a data set at hand in which nothing differs.
func (r *replay) dataHeld() {
	h := r.v.Manifest.Header()
	r.item(itemData, attest.ReplaySame, "root %s; %s in %s compared with the manifest", h.Root, counted(h.Count, "file"), r.data)
}

// haveItem reports whether an item was made already.
func (r *replay) haveItem(name string) bool {
	return slices.ContainsFunc(r.out.Items, func(i attest.ReplayItem) bool { return i.Name == name })
}
