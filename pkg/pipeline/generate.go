package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/workload"
)

// GenerateOptions says which data set to make and where.
type GenerateOptions struct {
	Workload *workload.Workload
	// Data is the folder of the data set, or the address of the bucket that it is to be written into, s3://BUCKET[/PREFIX]; Manifest is
	// the path of the manifest's header.
	Data, Manifest string
	// Workers is how many files are written at once; below 1: the number of cores.
	Workers int
	// World are the processes that make the data set together, this one among them; nil: it alone does. All are given the same options;
	// process 0 writes the manifest, and alone returns its header and is told what goes on.
	World *cluster.World
	// Tool identifies this program, where World has several processes: all must be the same.
	Tool record.Tool
	Notify
}

// Generate makes the data set of a workload and its manifest, hashing while it writes. Files that are there already are compared with
// what the recipe says and kept when equal; a folder that holds anything else is refused. The error wraps ErrVerification where the
// manifest says that this data set was made there, and it was altered since. A manifest of an address s3://BUCKET/[PREFIX/]NAME.json is
// written here and put there when the data set is complete.
func Generate(ctx context.Context, o GenerateOptions) (h manifest.Header, err error) {
	if several(o.World) {
		var free context.CancelFunc
		ctx, free = o.World.Context(ctx)
		defer free()
		defer func() { failAlone(o.World, err) }()
		if err := sameTool(ctx, o.World, o.Tool); err != nil {
			return h, err
		}
	}
	if !leads(o.World) {
		o.Notify, o.Manifest = Notify{}, ""
		return generate(ctx, o)
	}
	p, err := placeManifest(ctx, o.Workload, o.Data, o.Manifest)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	o.Manifest = p.path
	if h, err = generate(ctx, o); err != nil {
		return h, err
	}
	return h, p.keep(ctx)
}

func generate(ctx context.Context, o GenerateOptions) (manifest.Header, error) {
	if err := placed(o.Workload, o.Data, false); err != nil {
		return manifest.Header{}, err
	}
	recipe, err := datagen.FromWorkload(o.Workload)
	if err != nil {
		return manifest.Header{}, err
	}
	if err := available(recipe); err != nil {
		return manifest.Header{}, err
	}
	if err := apart(o.Data, place{o.Manifest, "--manifest"}); err != nil {
		return manifest.Header{}, err
	}
	st, err := openPlace(ctx, o.Workload, o.Data, false, store.FolderOptions{Begin: true})
	if err != nil {
		return manifest.Header{}, err
	}
	defer st.Close()
	o.stage("generate %s into %s", counted(recipe.Files(), "file"), o.Data)
	start := time.Now()
	h, err := datagen.Generate(ctx, st, recipe, datagen.Options{
		Workers: generators(o.Data, o.Workers), Manifest: o.Manifest, World: o.World,
		Progress: func(p datagen.Progress) { o.progress("generate", p.Files, p.AllFiles, p.Bytes, p.AllBytes) },
	})
	if err != nil {
		return manifest.Header{}, asVerification(fmt.Errorf("generate: %w", err))
	}
	if !leads(o.World) {
		return h, nil
	}
	took := time.Since(start).Seconds()
	o.stage("pinned   %s, %s, root %s (%.1f s, %s/s)", counted(h.Count, "file"), gigabytes(h.Bytes), h.Root, took, gigabytes(int64(float64(h.Bytes)/took)))
	return h, nil
}

// available refuses, before anything is made, data sets whose files this build can neither write nor read.
func available(r datagen.Recipe) error {
	if err := r.Available(); err != nil {
		return unfit(err)
	}
	return nil
}

// mostGenerators is how many objects are written at once if nobody says: a bucket takes its time for each, and each may hold several
// parts in memory (s3.Options).
const mostGenerators = 8

// generators is how many files are made at once: as asked, or the package's own choice (0) for a folder.
func generators(data string, asked int) int {
	if asked > 0 || !IsBucket(data) {
		return asked
	}
	return max(mostGenerators, runtime.GOMAXPROCS(0))
}

// PinOptions says which data set to pin: a folder, or the objects of s3://BUCKET[/PREFIX].
type PinOptions struct {
	Data, Manifest string
	// Workload says how the bucket is reached, beside the environment; nil: the environment alone.
	Workload *workload.Workload
	Workers  int
	// Exclude is what is no part of the data set (manifest.ParseExclude); it becomes part of the manifest.
	Exclude []string
	// Lineage is what the data set was derived from; nil where nobody says.
	Lineage *manifest.Lineage
	// Layout says how samples lie in the files; nil: the manifest does not.
	Layout *PinLayout
	// DigestCache is the file of a cache of digests (manifest.DigestCache) for files that did not change since an earlier pinning; "":
	// every file is hashed, CacheAuto: a file of this data set in the user's folder of caches.
	DigestCache string
	Notify
}

// CacheAuto is the DigestCache that is found by the data set's folder.
const CacheAuto = "auto"

// ErrPinned is wrapped by the error about a manifest that Pin would have to replace.
var ErrPinned = errors.New("a manifest of other content stands there")

// errNothingBelow is the error about an address that no object is below: a bucket has no folders that could be missing.
var errNothingBelow = errors.New("there is no object below it; correct the address")

// Pin hashes every file of a folder as it is, and writes the manifest. A manifest that stands there already is never replaced, since it
// may hold a recipe that pinning cannot find again: when it lists the same files with the same bytes, and excludes and
// was derived from what o says, its header is returned, and otherwise the error wraps ErrPinned. Group
// digests that it lacks are written then. A manifest of an address s3://BUCKET/[PREFIX/]NAME.json is written here and put there.
func Pin(ctx context.Context, o PinOptions) (h manifest.Header, err error) {
	p, err := placeManifest(ctx, o.Workload, o.Data, o.Manifest)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	o.Manifest = p.path
	if h, err = pin(ctx, o); err != nil {
		return h, err
	}
	return h, p.keep(ctx)
}

func pin(ctx context.Context, o PinOptions) (manifest.Header, error) {
	if err := apart(o.Data, place{o.Manifest, "--manifest"}); err != nil {
		return manifest.Header{}, err
	}
	exclude, err := manifest.ParseExclude(o.Exclude)
	if err != nil {
		return manifest.Header{}, err
	}
	layout, err := newLayoutOf(o.Layout)
	if err != nil {
		return manifest.Header{}, err
	}
	there, err := standing(o.Manifest)
	if err != nil {
		return manifest.Header{}, err
	}
	if there != nil {
		if err := sameTerms(o, exclude, there); err != nil {
			return manifest.Header{}, err
		}
	}
	st, err := openPlace(ctx, o.Workload, o.Data, false, store.FolderOptions{Uncached: true, Resident: true, Settle: o.DigestCache != ""})
	if err != nil {
		return manifest.Header{}, err
	}
	defer st.Close()
	cache, err := o.openCache()
	if err != nil {
		return manifest.Header{}, err
	}
	if cache != nil {
		defer cache.Abort()
	}
	build := func(dst manifest.Adder) error {
		err := manifest.Build(ctx, st, layout.to(dst), manifest.BuildOptions{Workers: o.Workers, Exclude: exclude, Cache: cache, Progress: func(files, bytes int64) {
			o.progress("pin", files, -1, bytes, -1)
		}})
		if err == nil && layout.files == 0 && IsBucket(o.Data) {
			err = errNothingBelow
		}
		if err == nil {
			err = layout.find(ctx, st)
		}
		if err == nil && cache != nil {
			err = o.keepCache(cache)
		}
		if err != nil {
			return fmt.Errorf("pin %s: %w", o.Data, err)
		}
		return nil
	}
	if there != nil {
		w := again{manifest.NewWriter(io.Discard, manifest.Meta{}), nil}
		if _, err := os.Lstat(manifest.GroupsPath(o.Manifest)); errors.Is(err, fs.ErrNotExist) {
			w.groups = manifest.CreateGroups(o.Manifest)
			defer w.groups.Abort()
		}
		if err := build(w); err != nil {
			return manifest.Header{}, err
		}
		h, err := w.Close()
		if err != nil {
			return manifest.Header{}, err
		}
		if h.Root != there.Root || h.Count != there.Count || h.Bytes != there.Bytes {
			return manifest.Header{}, fmt.Errorf("pin %s: %s: %w: it lists %d files, %d bytes, root %s, and the folder has %d files, %d bytes, root %s; "+
				"give --manifest another file", o.Data, o.Manifest, ErrPinned, there.Count, there.Bytes, there.Root, h.Count, h.Bytes, h.Root)
		}
		if !layout.same(there.Layout) {
			return manifest.Header{}, fmt.Errorf("pin %s: %s: %w: it lists the same files with another layout, %+v; give --manifest another file", o.Data, o.Manifest,
				ErrPinned, there.Layout)
		}
		if err := w.commitGroups(there); err != nil {
			return manifest.Header{}, err
		}
		o.stage("pinned   by %s already, which stays as it is", o.Manifest)
		return *there, nil
	}
	f, err := manifest.Create(o.Manifest, manifest.Meta{Layout: layout.layout, Exclude: o.Exclude, Lineage: o.Lineage})
	if err != nil {
		return manifest.Header{}, err
	}
	defer f.Abort()
	if err := build(f); err != nil {
		return manifest.Header{}, err
	}
	return f.Commit()
}

// sameTerms checks that a manifest that stands there excludes what is asked for, and was derived from what is said. A lineage that nobody
// gives is not asked for.
func sameTerms(o PinOptions, exclude *manifest.Exclude, there *manifest.Header) error {
	if !slices.Equal(exclude.Patterns(), there.Exclude) {
		return fmt.Errorf("pin %s: %s: %w: it excludes %q, expected %q; give --manifest another file, or the same --exclude",
			o.Data, o.Manifest, ErrPinned, there.Exclude, exclude.Patterns())
	}
	if o.Lineage != nil && !o.Lineage.Equal(there.Lineage) {
		return fmt.Errorf("pin %s: %s: %w: its lineage is another than the one given; give --manifest another file", o.Data, o.Manifest, ErrPinned)
	}
	return nil
}

// again pins what a manifest pins that stands there, and makes the group digests that it lacks.
type again struct {
	*manifest.Writer
	groups *manifest.GroupsFile // nil where there are some
}

func (a again) AddGroups(e manifest.Entry, groups [][32]byte) error {
	if a.groups != nil {
		if err := a.groups.AddGroups(e, groups); err != nil {
			return err
		}
	}
	return a.Add(e)
}

// commitGroups saves the group digests of a data set that turned out to be the one that is pinned.
func (a again) commitGroups(h *manifest.Header) error {
	if a.groups == nil {
		return nil
	}
	root, err := manifest.ParseDigest(h.Root.String())
	if err != nil {
		return err
	}
	return a.groups.Commit(root)
}

// standing returns the header of the manifest at a path, or nil where there is none.
func standing(path string) (*manifest.Header, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m, err := manifest.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s stands there and cannot be read: %w; move it away, or give --manifest another file", path, err)
	}
	defer m.Close()
	return m.Header(), nil
}
