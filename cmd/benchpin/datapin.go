package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/store"
)

func (a *app) dataPinCommand() *cobra.Command {
	var (
		data        dataFlags
		exclude     []string
		derivedFrom []string
		by          string
		layout      pinLayoutFlags
		cache       string
		asJSON      bool
	)
	cmd := &cobra.Command{
		Use:   "pin",
		Short: "Pin a data set as it is: hash every file and write the manifest",
		Long: `Pin a data set as it is: hash every file and write the manifest. A manifest that stands there already is never replaced: it stays where it
lists the same files with the same bytes, and is an error otherwise.

--exclude leaves out what is no part of the data set, in the language of .gitignore: *.tmp (a name, anywhere), .cache/ (a folder, with all
that is in it), /raw/*.csv (from the root), a/**/b. The patterns become part of the manifest, so that verifying leaves out the same.

With --format the manifest also says how samples lie in the files, and runs read them so; otherwise a run decides by the workload and by
the names of the files. Samples are counted by looking into every file where the format says it, unless --samples-per-file does.

--digest-cache keeps digests of files in a file of yours ("auto": one for this folder, among the user's caches), and does not read files again whose
size, times, inode and device are the same: for data sets that are pinned again and again. It is not used for evidence: verifying always
hashes.

--derived-from and --by record which pinned data sets this one was made from, and what made it. "benchpin data lineage" follows them.`,
		Example: `  benchpin data pin --data ./qs --manifest ./pinned.json
  benchpin data pin --data ./qs --manifest ./silver.json --exclude .cache/ --derived-from ./pinned.json --by clean.py-1.2`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := data.complete(nil); err != nil {
				return err
			}
			if _, err := manifest.ParseExclude(exclude); err != nil {
				return usagef("--exclude: %w", err)
			}
			lineage, err := lineageOf(derivedFrom, by)
			if err != nil {
				return err
			}
			lies, err := layout.layout(cmd)
			if err != nil {
				return err
			}
			notify, end := a.notify()
			defer end()
			h, err := pipeline.Pin(cmd.Context(), pipeline.PinOptions{Data: data.data, Manifest: data.manifest, Workers: data.workers,
				Exclude: exclude, Lineage: lineage, Layout: lies, DigestCache: cache, Notify: notify})
			if errors.Is(err, store.ErrIrregular) {
				return &codedError{exitFailure, err} // there is no manifest yet that it could differ from
			}
			if err != nil {
				return err
			}
			end()
			return a.printHeader(h, asJSON)
		},
	}
	data.add(cmd)
	layout.add(cmd)
	cmd.Flags().StringArrayVar(&exclude, "exclude", nil, "leave out files and folders of this `pattern`; may be repeated")
	cmd.Flags().StringArrayVar(&derivedFrom, "derived-from", nil, "`file` of the manifest of a data set that this one was made from; may be repeated")
	cmd.Flags().StringVar(&cache, "digest-cache", "", "take digests of files that did not change from this `file`, or from auto")
	cmd.Flags().StringVar(&by, "by", "", "what made it from those: one line of `text`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// lineageOf reads the manifests that a data set was derived from.
func lineageOf(manifests []string, by string) (*manifest.Lineage, error) {
	switch {
	case len(manifests) == 0 && by == "":
		return nil, nil
	case len(manifests) == 0:
		return nil, usagef("--by %q: expected --derived-from MANIFEST beside it", by)
	case by == "":
		return nil, usagef("--derived-from: expected --by TEXT beside it, which says what made the data set from those")
	}
	parents := make([]manifest.Parent, len(manifests))
	for i, path := range manifests {
		var err error
		if parents[i], err = manifest.ParentOf(path); err != nil {
			return nil, err
		}
	}
	l, err := manifest.NewLineage(by, parents...)
	if err != nil {
		return nil, usagef("--derived-from, --by: %w", err)
	}
	return l, nil
}
