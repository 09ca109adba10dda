package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/store"
)

func (a *app) dataProveCommand() *cobra.Command {
	var (
		data    dataFlags
		span    string
		sample  int
		outPath string
	)
	cmd := &cobra.Command{
		Use:   "prove FILE",
		Short: "Make a small proof that a file, or a part of it, belongs to a data set",
		Long: `Make a small proof that a file, or a part of it, belongs to the data set of a manifest. "benchpin data check-proof" checks it with the root
alone. FILE is the path as the manifest has it. With --data the bytes that the proof is about are read and held to the manifest; with
--manifest alone nothing else is read, and the proof is about a whole file.

--range A:B is about the bytes from A up to but not including B, --sample N about those of a sample, counted from 0, where they are one
stretch of the file (else about the whole file, which standard error says). Of a large file only the groups of 1 MiB that the range touches are
read, if the manifest has its group digests beside it; the proof has a few kilobytes.`,
		Example: `  benchpin data prove train/img_001_of_160.npz --data ./qs --out whole.proof.json
  benchpin data prove train/img_001_of_160.npz --data ./qs --range 1000:5000 --out range.proof.json`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if data.data == "" && data.manifest == "" {
				return usagef("expected --data FOLDER, or --manifest FILE alone")
			}
			o := pipeline.ProveOptions{Data: data.data, Manifest: data.manifest, File: args[0], Workers: data.workers}
			if data.data != "" {
				if err := data.complete(nil); err != nil {
					return err
				}
				o.Manifest = data.manifest
			}
			switch {
			case span != "" && cmd.Flags().Changed("sample"):
				return usagef("--range and --sample: expected one of them")
			case cmd.Flags().Changed("sample"):
				o.Sample = &sample
			case span != "":
				r, err := parseRange(span)
				if err != nil {
					return err
				}
				o.Range = &r
			}
			if o.Range != nil && o.Data == "" {
				return usagef("--range: expected --data FOLDER: a range is proven from the bytes of the file")
			}
			if err := mustBeNew(outPath); err != nil {
				return err
			}
			notify, end := a.notify()
			defer end()
			o.Notify = notify
			proof, err := pipeline.Prove(cmd.Context(), o)
			if err != nil {
				return asUsage(err)
			}
			end()
			b, err := proof.Encode()
			if err != nil {
				return err
			}
			if outPath == "" {
				a.printf("%s", b)
				return nil
			}
			return writeProof(outPath, b)
		},
	}
	data.add(cmd)
	cmd.Flags().StringVar(&span, "range", "", "first byte and the one after the last, `A:B`")
	cmd.Flags().IntVar(&sample, "sample", 0, "number of a sample in the file, from 0 on")
	cmd.Flags().StringVar(&outPath, "out", "", "`file` for the proof (default: standard output)")
	return cmd
}

// asUsage makes what a file does not have a fault of the command line.
func asUsage(err error) error {
	if errors.Is(err, manifest.ErrRange) || errors.Is(err, pipeline.ErrNoSample) {
		return &usageError{err}
	}
	return err
}

func parseRange(s string) (r [2]int64, err error) {
	from, to, ok := strings.Cut(s, ":")
	if ok {
		var errs [2]error
		r[0], errs[0] = strconv.ParseInt(from, 10, 64)
		r[1], errs[1] = strconv.ParseInt(to, 10, 64)
		ok = errs[0] == nil && errs[1] == nil && 0 <= r[0] && r[0] < r[1]
	}
	if !ok {
		return r, usagef("--range %s: expected A:B, the first byte and the one after the last, such as 0:1048576", s)
	}
	return r, nil
}

// writeProof writes a new file, and nothing over one that is there.
func writeProof(path string, b []byte) error {
	if err := pipeline.WriteFile(path, b); err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	return nil
}

// proofDocument is what "data check-proof --json" prints.
type proofDocument struct {
	Root   string `json:"root"`
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
	// From and To are there where the proof is about a range.
	From *int64 `json:"from,omitempty"`
	To   *int64 `json:"to,omitempty"`
	// Compared is true when bytes were held to the proof.
	Compared bool `json:"compared"`
}

func (a *app) dataCheckProofCommand() *cobra.Command {
	var (
		root, file string
		asJSON     bool
	)
	cmd := &cobra.Command{
		Use:   "check-proof PROOF",
		Short: "Check a proof that a file, or a part of it, belongs to a data set",
		Long: `Check a proof of "benchpin data prove" with the root of the data set, and nothing else. It says path, size and digest of the file that the
proof shows to belong to the data set. With --file the bytes of the file, or those of the range at their place in it, are held to the proof too;
without it, what is shown is which bytes belong there, and no more.

Exit code 4 when the proof does not hold, or the bytes are not those that it is about.`,
		Example: `  benchpin data check-proof whole.proof.json --root blake3:617a20b99733759a669504d1a1de45aa9d006e02a73ccd9399b11dd3207f5ec0
  benchpin data check-proof range.proof.json --root blake3:617a20b99733759a669504d1a1de45aa9d006e02a73ccd9399b11dd3207f5ec0 --file ./qs/train/img_001_of_160.npz`,
		Args: exactly("PROOF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if root == "" {
				return usagef("expected --root ROOT: what the proof is checked with, from whoever says which data set it is")
			}
			want, err := manifest.ParseDigest(root)
			if err != nil {
				return usagef("--root %s: expected blake3: and 64 lower-case hex digits", root)
			}
			b, err := store.ReadRegular(args[0], manifest.MaxProofBytes)
			if err != nil {
				return err
			}
			p, err := manifest.ParseFileProof(b)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			e, err := p.Check(want)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if file != "" {
				if err := a.holdFile(cmd, p, e, file); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			return a.printProof(p, e, root, file != "", asJSON)
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "`root` of the data set")
	cmd.Flags().StringVar(&file, "file", "", "`file` whose bytes are held to the proof")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// holdFile compares a file at hand with what a proof that holds says of it.
func (a *app) holdFile(cmd *cobra.Command, p *manifest.FileProof, e manifest.Entry, path string) error {
	if p.Range != nil {
		f, err := store.OpenRegular(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return p.Range.CheckRange(e, f)
	}
	st, err := store.NewFolder(filepath.Dir(path), store.FolderOptions{Uncached: true, Resident: true})
	if err != nil {
		return err
	}
	defer st.Close()
	h, err := manifest.HashFile(cmd.Context(), st, filepath.Base(path), manifest.HashOptions{})
	if err != nil {
		return err
	}
	if h.Digest != e.Digest || h.Info.Size != e.Size {
		return fmt.Errorf("%w: it is not %s of the data set: expected %d bytes %s, found %d bytes %s", manifest.ErrProof, e.Path,
			e.Size, manifest.FormatDigest(e.Digest), h.Info.Size, manifest.FormatDigest(h.Digest))
	}
	return nil
}

func (a *app) printProof(p *manifest.FileProof, e manifest.Entry, root string, compared, asJSON bool) error {
	d := proofDocument{Root: root, Path: e.Path, Size: e.Size, Digest: manifest.FormatDigest(e.Digest).String(), Compared: compared}
	what := "the whole file"
	if r := p.Range; r != nil {
		d.From, d.To = &r.From, &r.To
		what = fmt.Sprintf("bytes %d to %d", r.From, r.To)
	}
	if asJSON {
		return a.printJSON(d)
	}
	a.printf("%q, %d bytes, %s, belongs to %s\n", e.Path, e.Size, d.Digest, root)
	if compared {
		a.printf("%s: compared, they are those of the data set\n", what)
	} else {
		a.printf("%s: what belongs there is known; no bytes were compared (--file FILE does)\n", what)
	}
	return nil
}
