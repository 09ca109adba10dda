package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchpin/benchpin/pkg/audit"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/store"
)

// OpenManifest opens the manifest of an archive, or the one whose header is at path. done closes it.
func OpenManifest(ctx context.Context, path string) (m *manifest.Manifest, done func() error, err error) {
	if _, err := os.Lstat(filepath.Join(path, "oci-layout")); err != nil {
		m, err := manifest.Open(path)
		if err != nil {
			return nil, nil, err
		}
		return m, m.Close, nil
	}
	r, err := OpenResult(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	if m, err = r.Manifest(""); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return m, func() error { return errors.Join(m.Close(), r.Close()) }, nil
}

// AuditAnswerOptions says what to answer, from where.
type AuditAnswerOptions struct {
	// Challenge is the file of the challenge, Data the data set, Manifest the path of its manifest, Out the file of the answer.
	Challenge, Data, Manifest, Out string
	// Form is what the answer holds; "" is keyed digests for a generated data set, and bytes for any other.
	Form audit.Form
	Notify
}

// AuditAnswer writes the answer to a challenge: see audit.Answer. The data set is read around the page cache. Nothing is written at Out where
// the data set does not hold what was asked for. It returns the challenge, the form and the size of the answer.
func AuditAnswer(ctx context.Context, o AuditAnswerOptions) (c *audit.Challenge, form audit.Form, size int64, err error) {
	raw, err := store.ReadRegular(o.Challenge, audit.MaxChallenge)
	if err != nil {
		return nil, "", 0, fmt.Errorf("challenge: %w", err)
	}
	if c, err = audit.ParseChallenge(raw); err != nil {
		return nil, "", 0, fmt.Errorf("%s: %w", o.Challenge, err)
	}
	if !IsBucket(o.Data) {
		if err := apart(o.Data, place{o.Out, "--out"}); err != nil {
			return nil, "", 0, err
		}
	}
	m, err := manifest.Open(o.Manifest)
	if err != nil {
		return nil, "", 0, err
	}
	defer m.Close()
	if form = o.Form; form == "" {
		form = audit.Bytes
		if m.Header().Recipe != nil {
			form = audit.Digests
		}
	}
	if form == audit.Digests && m.Header().Recipe == nil {
		return nil, "", 0, fmt.Errorf("%s: %w: its data set has no recipe, so nobody could check an answer of digests; answer with the bytes (--form bytes)",
			o.Manifest, audit.ErrNeedBytes)
	}
	groups, err := manifest.OpenGroupsIfAny(o.Manifest, m)
	if err != nil {
		return nil, "", 0, err
	}
	if groups != nil {
		defer groups.Close()
	}
	st, err := OpenData(ctx, o.Data, store.FolderOptions{Uncached: true})
	if err != nil {
		return nil, "", 0, err
	}
	defer st.Close()
	total := c.ChunkBytes()
	size, err = streamFile(o.Out, func(w io.Writer) error {
		return audit.Answer(ctx, raw, m, st, w, audit.AnswerOptions{Form: form, Groups: groups, Progress: func(chunks, bytes int64) {
			o.progress("answer", chunks, int64(len(c.Chunks)), bytes, total)
		}})
	})
	return c, form, size, err
}

// streamFile writes a new file that is there whole or not at all, and returns its size. A file that is there already is an error.
func streamFile(path string, write func(io.Writer) error) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("%s is there already; name another file", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err = write(f); err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if info, serr := f.Stat(); serr == nil {
		size = info.Size()
	} else if err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return size, err
}

// AuditCheckOptions says what to check, and with what.
type AuditCheckOptions struct {
	// Answer and Challenge are the files.
	Answer, Challenge string
	// Root is the root of the data set; "" is that of Manifest.
	Root string
	// Manifest is an archive, or the header of a manifest: the challenge is drawn again with it, and its recipe makes the chunks of keyed
	// digests. "" has neither.
	Manifest string
	Notify
}

// AuditCheck checks an answer: see audit.Check.
func AuditCheck(ctx context.Context, o AuditCheckOptions) (report *audit.Report, err error) {
	if o.Root == "" && o.Manifest == "" {
		return nil, errors.New("audit: expected the root of the data set, or its manifest")
	}
	raw, err := store.ReadRegular(o.Challenge, audit.MaxChallenge)
	if err != nil {
		return nil, fmt.Errorf("challenge: %w", err)
	}
	var check audit.CheckOptions
	if o.Root != "" {
		if check.Root, err = manifest.ParseDigest(o.Root); err != nil {
			return nil, fmt.Errorf("root: %w", err)
		}
	}
	if o.Manifest != "" {
		m, done, err := OpenManifest(ctx, o.Manifest)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, done()) }()
		if root := m.Header().Root.String(); o.Root != "" && root != o.Root {
			return nil, refused{fmt.Errorf("%s is the manifest of the data set %s, expected %s", o.Manifest, root, o.Root)}
		}
		check.Root, check.Manifest = m.Root(), m
		if check.Maker, err = recipeMaker(m.Header().Recipe, raw); err != nil {
			return nil, err
		}
	}
	f, err := store.OpenRegular(o.Answer)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	defer f.Close()
	if c, err := audit.ParseChallenge(raw); err == nil {
		total := c.ChunkBytes()
		check.Progress = func(chunks, bytes int64) { o.progress("check", chunks, int64(len(c.Chunks)), bytes, total) }
	}
	if report, err = audit.Check(ctx, raw, f, check); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Answer, err)
	}
	return report, nil
}

// maker makes the files of a recipe that a challenge names.
type maker struct {
	recipe datagen.Recipe
	number map[string]int
}

// recipeMaker finds the numbers of the files of a challenge; without a recipe it is nil.
func recipeMaker(raw []byte, challenge []byte) (audit.Maker, error) {
	if raw == nil {
		return nil, nil
	}
	recipe, err := datagen.ParseRecipe(raw)
	if err != nil {
		return nil, err
	}
	c, err := audit.ParseChallenge(challenge)
	if err != nil {
		return nil, err
	}
	m := &maker{recipe: recipe, number: map[string]int{}}
	for _, chunk := range c.Chunks {
		m.number[chunk.Path] = -1
	}
	for i, f := range recipe.Sorted() {
		if _, asked := m.number[f.Path]; asked {
			m.number[f.Path] = i
		}
	}
	return m, nil
}

// Chunks makes stretches of one file.
func (m *maker) Chunks(ctx context.Context, path string, offsets, lengths []int64, yield func(i int, b []byte) error) error {
	i, ok := m.number[path]
	if !ok || i < 0 {
		return errors.New("the recipe makes no such file")
	}
	return m.recipe.Ranges(ctx, i, offsets, lengths, yield)
}
