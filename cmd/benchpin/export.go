package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/export"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

func (a *app) exportCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "export", Short: "Describe a data set or a result for other programs", GroupID: groupParts, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.exportCroissantCommand(), a.exportCrateCommand(), a.exportModelCommand())
	return cmd
}

// exportFlags are those of every export: where from, and what only people know.
type exportFlags struct {
	manifest string
	remote   registryFlags
	card     export.Card
}

func (f *exportFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.manifest, "manifest", "", "`file` of the manifest's header, for a run folder")
	f.remote.add(cmd)
}

func (f *exportFlags) addCard(cmd *cobra.Command, of string) {
	c := &f.card
	cmd.Flags().StringVar(&c.Name, "name", "", "`name` of "+of+" (default: made of what is known)")
	cmd.Flags().StringVar(&c.Description, "description", "", "`text` that describes "+of+" (default: made of what is known)")
	cmd.Flags().StringVar(&c.License, "license", "", "`URL` of the licence of "+of+", such as https://spdx.org/licenses/CC-BY-4.0")
	cmd.Flags().StringVar(&c.URL, "url", "", "`URL` of the page of "+of)
	cmd.Flags().StringArrayVar(&c.Persons, "creator", nil, "`name` of a person who made "+of+"; may be repeated")
	cmd.Flags().StringArrayVar(&c.Organizations, "organization", nil, "`name` of an organization that made "+of+"; may be repeated")
	cmd.Flags().StringVar(&c.Publisher, "publisher", "", "`name` of the organization that publishes "+of)
	cmd.Flags().StringVar(&c.Published, "published", "", "`day` of publication, YYYY-MM-DD")
	cmd.Flags().StringVar(&c.Version, "as-version", "", "semantic `version` of "+of)
	cmd.Flags().StringVar(&c.Citation, "citation", "", "`text` by which to cite "+of+", BibTeX for preference")
}

// exportFrom opens what is exported to out, "" for standard output. done closes it.
func (a *app) exportFrom(ctx context.Context, arg, out string, f *exportFlags) (s *export.Source, done func() error, err error) {
	var path string
	var free func() error
	if pipeline.IsBucket(arg) {
		if path, free, err = pipeline.FetchManifest(ctx, arg); err != nil {
			return nil, nil, err
		}
	} else {
		dir, remove, err := a.archiveAt(ctx, arg, &f.remote)
		if err != nil {
			return nil, nil, err
		}
		path, free = dir, func() error { remove(); return nil }
	}
	if s, err = export.Open(ctx, path, f.manifest); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	done = func() error { return errors.Join(s.Close(), free()) }
	if out != "" {
		err = s.CheckPlace(ctx, out)
	}
	if errors.Is(err, export.ErrPlace) {
		err = &usageError{err}
	}
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return s, done, nil
}

func (a *app) exportCroissantCommand() *cobra.Command {
	var flags exportFlags
	var out, data string
	cmd := &cobra.Command{
		Use:   "croissant ARCHIVE|REFERENCE|RUN|MANIFEST",
		Short: "Describe a data set in the Croissant format of MLCommons",
		Long: `Describe a pinned data set in the Croissant format 1.1, for catalogues and loaders: its files as sets, its manifest with its digest, its recipe
or lineage as provenance. The document belongs beside manifest.json; --data is where the files lie from there. In their folder it would be
one file more of the data set, and is refused there unless the manifest excludes it ("data pin --exclude").

Croissant demands a licence, a page, a creator and a day of publication, which no manifest knows: they are asked for and never made up.
Nothing is verified but digests. Standard output is the document.`,
		Example: "  benchpin export croissant ./qs.manifest.json --data ./qs --license https://spdx.org/licenses/CC0-1.0 " +
			"--url https://example.com/qs --organization Example --published 2026-11-30",
		Args: exactly("ARCHIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := mustBeNew(out); err != nil {
				return err
			}
			s, done, err := a.exportFrom(cmd.Context(), args[0], out, &flags)
			if err != nil {
				return err
			}
			doc, err := export.Croissant(cmd.Context(), s, flags.card, data)
			if err = errors.Join(err, done()); err != nil {
				return err
			}
			if out == "" {
				_, err = a.stdout.Write(doc)
				return err
			}
			return pipeline.WriteFile(out, doc)
		},
	}
	flags.add(cmd)
	flags.addCard(cmd, "the data set")
	cmd.Flags().StringVar(&data, "data", "data", "`path` of the data set's folder from the document, . for the same")
	cmd.Flags().StringVar(&out, "out", "", "new `file` of the document (default: standard output)")
	return cmd
}

func (a *app) exportCrateCommand() *cobra.Command {
	var flags exportFlags
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ro-crate ARCHIVE|REFERENCE|RUN",
		Short: "Pack a run into an RO-Crate",
		Long: `Pack a run into a new folder that is an RO-Crate 1.1 with the Process Run Crate profile 0.5: record, manifest, step times and attestations as
files, and ro-crate-metadata.json, which says of each what it is, what was run on which data set, and every figure with what it rests on.

RO-Crate demands a licence and a day of publication, which no record knows: they are asked for and never made up. Nothing is verified but
digests. Standard output is the folder.`,
		Example: "  benchpin export ro-crate ./demo/archive --out ./crate --license https://spdx.org/licenses/CC-BY-4.0 --published 2026-11-30",
		Args:    exactly("ARCHIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("expected --out FOLDER, a new folder for the crate")
			}
			if err := mustBeNew(out); err != nil {
				return err
			}
			s, done, err := a.exportFrom(cmd.Context(), args[0], out, &flags)
			if err != nil {
				return err
			}
			info, err := export.WriteCrate(cmd.Context(), out, s, flags.card)
			if err = errors.Join(err, done()); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(info)
			}
			a.printf("%s\n", info.Folder)
			return nil
		},
	}
	flags.add(cmd)
	flags.addCard(cmd, "the crate")
	cmd.Flags().StringVar(&out, "out", "", "new `folder` for the crate")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) exportModelCommand() *cobra.Command {
	var flags exportFlags
	var out, key string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "model-signing ARCHIVE|REFERENCE|RUN|MANIFEST",
		Short: "Sign a data set in the OpenSSF model signing format",
		Long: `Sign a pinned data set in the OpenSSF model signing format 1.0: a Sigstore bundle that lists every file with its BLAKE3. Whoever has the files and
your public key verifies them with that format's own program:

  model_signing verify key FOLDER --signature FILE --public-key KEY.pub

You sign what the manifest says; nothing is read of the data set here: "benchpin data verify" compares it. The key must be an ECDSA key, and
the data set must have at most 1,048,576 files. Standard output is the digest over all files' digests.`,
		Example: "  BENCHPIN_PASSWORD=secret benchpin export model-signing ./qs.manifest.json --key ./me.key --out ./qs.sig",
		Args:    exactly("ARCHIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, needed := range []struct{ name, value string }{{"key", key}, {"out", out}} {
				if needed.value == "" {
					return usagef("expected --%s (see %q)", needed.name, cmd.CommandPath()+" --help")
				}
			}
			if err := mustBeNew(out); err != nil {
				return err
			}
			private, err := a.privateKey(cmd.Context(), key)
			if err != nil {
				return err
			}
			s, done, err := a.exportFrom(cmd.Context(), args[0], out, &flags)
			if err != nil {
				return err
			}
			bundle, info, err := export.ModelSigning(cmd.Context(), s, flags.card.Name, private)
			if err = errors.Join(usageOfKey(err), done()); err != nil {
				return err
			}
			if err := pipeline.WriteFile(out, bundle); err != nil {
				return err
			}
			info.File = out
			if asJSON {
				return a.printJSON(info)
			}
			a.printf("%s\n", info.Digest)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.card.Name, "name", "data", "`name` of the data set, for people")
	cmd.Flags().StringVar(&key, "key", "", "private `KEY` to sign with: a file, env://NAME or SCHEME://KEY")
	cmd.Flags().StringVar(&out, "out", "", "new `file` of the signature")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// mustBeNew refuses a place where something stands, before anything is read.
func mustBeNew(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return usagef("--out %s is there already: nothing is written over", path)
	}
	return nil
}
