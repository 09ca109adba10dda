package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/manifest"
)

func (a *app) dataLineageCommand() *cobra.Command {
	var (
		search []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "lineage MANIFEST [PARENT-MANIFEST...]",
		Short: "Print which pinned data sets a data set was derived from, and those from which",
		Long: `Print the chain of data sets that the data set of a manifest was derived from, as "benchpin data pin --derived-from" recorded it. Manifests are
found by the digest that the record names, whatever they are called now: among those given, beside MANIFEST, and in the folders of --search.
Folders below these are not looked into.

A data set whose manifest is not found is said to be missing; what is printed of it is what its descendant says. Exit code 4 when something
cannot be true: a manifest of a parent's name with another digest, or one that is not what its descendant says of it.`,
		Example: "  benchpin data lineage ./silver.json --search ./qs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected MANIFEST (see %q)", cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var known []manifest.Known
			for _, path := range args {
				h, d, err := manifest.ReadHeader(path)
				if err != nil {
					return err
				}
				known = append(known, manifest.Known{Path: path, Digest: d, Header: h})
			}
			for _, folder := range append([]string{filepath.Dir(args[0])}, search...) {
				found, err := manifest.FindHeaders(folder, func(err error) { a.notef("benchpin: passed over: %v", err) })
				if err != nil {
					return err
				}
				known = append(known, found...)
			}
			ancestry := manifest.Trace(known[0], known)
			if asJSON {
				if err := a.printJSON(lineageOutput(ancestry)); err != nil {
					return err
				}
			} else {
				a.printLineage(ancestry)
			}
			return ancestry.Err()
		},
	}
	cmd.Flags().StringArrayVar(&search, "search", nil, "`folder` in which manifests are looked for; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// lineageDocument is what "data lineage --json" prints.
type lineageDocument struct {
	Complete bool          `json:"complete"`
	Datasets []lineageItem `json:"datasets"`
}

type lineageItem struct {
	Name      string         `json:"name"`
	State     manifest.State `json:"state"`
	Manifest  string         `json:"manifest"`
	Root      string         `json:"root"`
	Files     int64          `json:"files"`
	Bytes     int64          `json:"bytes"`
	Path      string         `json:"path,omitempty"`
	Generated bool           `json:"generated,omitempty"`
	By        string         `json:"by,omitempty"`
	From      []string       `json:"from,omitempty"`
	Problem   string         `json:"problem,omitempty"`
}

func lineageOutput(ancestry manifest.Ancestry) lineageDocument {
	doc := lineageDocument{Complete: ancestry.Missing() == 0}
	for _, s := range ancestry.Sets {
		item := lineageItem{Name: s.Name, State: s.State, Manifest: s.Manifest.String(), Root: s.Root.String(), Files: s.Count, Bytes: s.Bytes,
			Path: s.Path, Generated: s.Generated, Problem: s.Problem}
		if s.Lineage != nil {
			item.By = s.Lineage.By
			for _, p := range s.Lineage.From {
				item.From = append(item.From, p.Manifest.String())
			}
		}
		doc.Datasets = append(doc.Datasets, item)
	}
	return doc
}

// printLineage prints the names in their order, and then what is known of each.
func (a *app) printLineage(ancestry manifest.Ancestry) {
	var names []string
	for _, s := range ancestry.Sets {
		names = append(names, s.Name)
	}
	between := ", " // names of a chain are joined by arrows; where data sets were joined, the lines below tell
	if isChain(ancestry) {
		between = " -> "
	}
	a.printf("%s\n", strings.Join(names, between))
	for _, s := range ancestry.Sets {
		a.printf("\n%s: %d files, %d bytes\n  root      %s\n  manifest  %s\n", s.Name, s.Count, s.Bytes, s.Root, s.Manifest)
		switch {
		case s.State == manifest.StateMissing:
			a.printf("  MISSING   its manifest was not found: this is what the data set made from it says\n")
		case s.State == manifest.StateDiffers:
			a.printf("  DIFFERS   its manifest was not found: this is what the data set made from it says\n")
		default:
			a.printf("  file      %s\n", s.Path)
		}
		if s.Generated {
			a.printf("  made      from the recipe in its manifest\n")
		}
		if s.Lineage != nil {
			var from []string
			for _, p := range s.Lineage.From {
				from = append(from, p.Name)
			}
			a.printf("  made      from %s by %s\n", strings.Join(from, ", "), s.Lineage.By)
		}
		if s.Problem != "" {
			a.printf("  PROBLEM   %s\n", s.Problem)
		}
	}
}

// isChain reports whether every data set was made from the one before it.
func isChain(ancestry manifest.Ancestry) bool {
	for i, s := range ancestry.Sets {
		switch {
		case i == 0 && s.Lineage != nil:
			return false
		case i > 0 && (s.Lineage == nil || len(s.Lineage.From) != 1 || s.Lineage.From[0].Manifest != ancestry.Sets[i-1].Manifest):
			return false
		}
	}
	return true
}
