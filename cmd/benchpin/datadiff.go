package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

func (a *app) dataDiffCommand() *cobra.Command {
	var (
		asJSON  bool
		workers int
	)
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two data sets: added, removed, changed and renamed files",
		Long: `Compare two data sets, each given by its manifest, or by its folder or its bucket (s3://BUCKET/PREFIX), whose files are hashed then. Exit code 0 when both have the same files with
the same bytes, 5 when they differ.

A file that only one has and the manifest of the other excludes is no difference. Files with the same bytes under another path are renamed; they
are looked for while at most 65,536 files were added or removed, and beyond that the last line says that they were not.`,
		Example: `  benchpin data diff ./qs.manifest.json ./pinned.json
  benchpin data diff ./qs.manifest.json ./qs`,
		Args: exactly("A", "B"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 0 {
				return usagef("--workers %d: expected 0 or more", workers)
			}
			first, second, err := a.openBoth(cmd.Context(), args, workers)
			if err != nil {
				return err
			}
			defer first.Close()
			defer second.Close()
			changes := changeList{a: a}
			yield := func(c manifest.Change) error { a.printf("%s\n", describeChange(c)); return nil }
			if asJSON {
				yield = changes.add
			}
			summary, err := manifest.Diff(cmd.Context(), first, second, yield)
			if err != nil {
				return err
			}
			if asJSON {
				if err := changes.end(summary); err != nil {
					return err
				}
			} else if summary.Excluded.Files > 0 {
				a.notef("benchpin: %s that only one of them has, and the other excludes", tally(summary.Excluded))
			}
			if summary.Equal() {
				return nil
			}
			text := fmt.Errorf("they differ: %s removed, %s added, %s changed to %d bytes, %s renamed, %s the same", tally(summary.Removed), tally(summary.Added),
				tally(summary.Changed), summary.ChangedTo, tally(summary.Renamed), tally(summary.Same))
			if !summary.RenamesSearched {
				text = fmt.Errorf("%w; renamed files were not looked for, since more than %d were removed or added", text, manifest.MaxRenames)
			}
			return &codedError{exitDiffers, text}
		},
	}
	cmd.Flags().IntVar(&workers, "workers", 0, "files of a folder that are hashed at once (0: as many as the cores keep busy)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func tally(t manifest.Tally) string {
	if t.Files == 1 {
		return fmt.Sprintf("1 file (%d bytes)", t.Bytes)
	}
	return fmt.Sprintf("%d files (%d bytes)", t.Files, t.Bytes)
}

// openBoth opens two data sets. What is no manifest is pinned into a manifest that is gone when it is closed, with what the other one excludes.
func (a *app) openBoth(ctx context.Context, args []string, workers int) (first, second *manifest.Manifest, err error) {
	var both [2]*manifest.Manifest
	defer func() {
		for _, m := range both {
			if err != nil && m != nil {
				_ = m.Close()
			}
		}
	}()
	var exclude []string
	for i, path := range args {
		if isData(path) {
			continue
		}
		if both[i], err = manifest.Open(path); err != nil {
			return nil, nil, err
		}
		exclude = both[i].Header().Exclude
	}
	for i, path := range args {
		if both[i] != nil {
			continue
		}
		if both[i], err = a.pinForNow(ctx, path, exclude, workers); err != nil {
			return nil, nil, err
		}
	}
	return both[0], both[1], nil
}

// isData reports whether an argument is a data set itself, a folder or a bucket, and no manifest.
func isData(path string) bool {
	if pipeline.IsBucket(path) {
		return true
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// pinForNow opens a manifest of a data set that has no name any more.
func (a *app) pinForNow(ctx context.Context, data string, exclude []string, workers int) (m *manifest.Manifest, err error) {
	dir, err := os.MkdirTemp("", "benchpin-diff-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	notify, end := a.notify()
	defer end()
	path := filepath.Join(dir, "m.json")
	if _, err := pipeline.Pin(ctx, pipeline.PinOptions{Data: data, Manifest: path, Exclude: exclude, Workers: workers, Notify: notify}); err != nil {
		return nil, err
	}
	return manifest.Open(path)
}

// changeList prints the document of "data diff --json" while differences come, since there may be more than memory holds.
type changeList struct {
	a *app
	n int
}

func (l *changeList) add(c manifest.Change) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	begin := ",\n    "
	if l.n == 0 {
		begin = "{\n  \"changes\": [\n    "
	}
	l.n++
	l.a.printf("%s%s", begin, b)
	return nil
}

func (l *changeList) end(s manifest.Summary) error {
	b, err := json.MarshalIndent(struct {
		Equal           bool           `json:"equal"`
		Same            manifest.Tally `json:"same"`
		Removed         manifest.Tally `json:"removed"`
		Added           manifest.Tally `json:"added"`
		Changed         manifest.Tally `json:"changed"`
		ChangedTo       int64          `json:"changed_to_bytes"`
		Renamed         manifest.Tally `json:"renamed"`
		Excluded        manifest.Tally `json:"excluded"`
		RenamesSearched bool           `json:"renames_searched"`
	}{s.Equal(), s.Same, s.Removed, s.Added, s.Changed, s.ChangedTo, s.Renamed, s.Excluded, s.RenamesSearched}, "", "  ")
	if err != nil {
		return err
	}
	begin := "\n  ],"
	if l.n == 0 {
		begin = "{\n  \"changes\": [],"
	}
	l.a.printf("%s%s\n", begin, b[1:])
	return nil
}

// describeChange is one line: kind, path and what changed.
func describeChange(c manifest.Change) string {
	switch {
	case c.Old != nil && c.New != nil && c.To != "":
		return fmt.Sprintf("%-8s %q to %q", c.Kind, c.Path, c.To)
	case c.Old != nil && c.New != nil:
		return fmt.Sprintf("%-8s %q: %s, now %s", c.Kind, c.Path, c.Old, c.New)
	case c.Old != nil:
		return fmt.Sprintf("%-8s %q: %s", c.Kind, c.Path, c.Old)
	default:
		return fmt.Sprintf("%-8s %q: %s", c.Kind, c.Path, c.New)
	}
}
