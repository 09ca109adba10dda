package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/workload"
)

func (a *app) dataCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "data", Short: "Generate, pin, verify and compare data sets", GroupID: groupParts, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.dataGenerateCommand(), a.dataPinCommand(), a.dataVerifyCommand(), a.dataCertifyCommand(), a.dataDiffCommand(), a.dataLineageCommand(),
		a.dataProveCommand(), a.dataCheckProofCommand())
	return cmd
}

// dataFlags are the flags of the commands that touch a data set.
type dataFlags struct {
	data, manifest string
	workers        int
}

func (f *dataFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.data, "data", "", "`folder` of the data set, or s3://BUCKET[/PREFIX]")
	cmd.Flags().StringVar(&f.manifest, "manifest", "", "`file` of the manifest's header, or s3://BUCKET/NAME.json (default: the data folder's path with .manifest.json; for a bucket its last element, in the working folder)")
	cmd.Flags().IntVar(&f.workers, "workers", 0, "files that are generated or hashed at once (0: as many as the cores keep busy)")
}

// complete fills in what follows from the rest. w may be nil for commands without a workload.
func (f *dataFlags) complete(w *workload.Workload) error {
	if f.data == "" && w != nil {
		f.data = pipeline.DataFolder(w)
	}
	if f.data == "" {
		return usagef("expected --data FOLDER")
	}
	if f.workers < 0 {
		return usagef("--workers %d: expected 0 or more", f.workers)
	}
	if f.manifest == "" {
		f.manifest = pipeline.ManifestBeside(f.data)
	}
	return nil
}

// dataDocument is what the data commands print with --json.
type dataDocument struct {
	Root  string `json:"root"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
	// MetadataOnly is true when no file was hashed: only "data verify --metadata-only" sets it.
	MetadataOnly bool `json:"metadata_only,omitempty"`
	// Mismatches are the differences between data and manifest; only "data verify" has them.
	Mismatches []*manifest.MismatchError `json:"mismatches,omitempty"`
}

func (a *app) printHeader(h manifest.Header, asJSON bool) error {
	if asJSON {
		return a.printJSON(dataDocument{Root: h.Root.String(), Files: h.Count, Bytes: h.Bytes})
	}
	a.printf("%s\n", h.Root)
	return nil
}

func (a *app) dataGenerateCommand() *cobra.Command {
	var (
		flags  workloadFlags
		data   dataFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "generate WORKLOAD [OVERRIDE...]",
		Short: "Generate a workload's data set from its seed, with its manifest",
		Long: `Generate a workload's data set from its seed and write its manifest, hashing while writing. The same workload and seed give the same
bytes on every machine. Standard output is the root of the manifest.

An interrupted generation is resumed by the same command. A folder that holds anything else is refused.

Started by an MPI launcher (mpirun -np 4 benchpin data generate ...), each process makes its share of the files.`,
		Example:     "  benchpin data generate quickstart --data ./qs",
		Args:        oneWorkload,
		Annotations: map[string]string{several: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			world, ctx, free, err := a.together(cmd)
			if err != nil {
				return err
			}
			defer free()
			tool, err := a.tool(world)
			if err != nil {
				return err
			}
			resolved, err := a.load(cmd, &flags, args)
			if err != nil {
				return err
			}
			if err := data.complete(resolved.Workload); err != nil {
				return err
			}
			notify, end := a.notify()
			defer end()
			h, err := pipeline.Generate(ctx, pipeline.GenerateOptions{Workload: resolved.Workload, Data: data.data,
				Manifest: data.manifest, Workers: data.workers, World: world, Tool: tool, Notify: notify})
			if err != nil {
				return err
			}
			end()
			return a.printHeader(h, asJSON)
		},
	}
	flags.add(cmd)
	data.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) dataVerifyCommand() *cobra.Command {
	var (
		data         dataFlags
		asJSON       bool
		metadataOnly bool
	)
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare every file of a data set with its manifest",
		Long: `Compare every file of a data set with its manifest: all are hashed, none may be missing, changed, renamed or there in addition. Digests of groups,
where the manifest has some beside it, are checked too. The page cache is left no warmer than it was. Exit code 4 when anything differs; every difference is named. What the manifest excludes may be there.

--metadata-only opens no file and compares which files are there, and their sizes: soon done, and no evidence of any byte.

Started by an MPI launcher, each process hashes its share of the files.

Objects of a bucket (--data s3://BUCKET/PREFIX) are read with the server and the credentials that the environment names: AWS_ENDPOINT_URL,
AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, or the shared credentials file.`,
		Example:     "  benchpin data verify --data ./qs",
		Args:        noArguments,
		Annotations: map[string]string{several: ""},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := data.complete(nil); err != nil {
				return err
			}
			world, ctx, free, err := a.together(cmd)
			if err != nil {
				return err
			}
			defer free()
			tool, err := a.tool(world)
			if err != nil {
				return err
			}
			notify, end := a.notify()
			defer end()
			h, report, err := pipeline.VerifyData(ctx, pipeline.VerifyDataOptions{Data: data.data, Manifest: data.manifest, Workers: data.workers,
				MetadataOnly: metadataOnly, World: world, Tool: tool, Notify: notify})
			end()
			var mismatch *manifest.MismatchError
			if err != nil && !errors.As(err, &mismatch) {
				return err
			}
			switch {
			case asJSON:
				doc := dataDocument{Root: h.Root.String(), Files: report.Files, Bytes: report.Bytes, Mismatches: report.Mismatches, MetadataOnly: metadataOnly}
				if metadataOnly {
					doc.Files = report.Skipped
				}
				if perr := a.printJSON(doc); perr != nil {
					return perr
				}
			case err == nil && metadataOnly:
				a.printf("%d files are there with the sizes that the manifest says; no byte of them was read, so this is no evidence\n", report.Skipped)
			case err == nil:
				a.printf("%s\n", h.Root)
			}
			if len(report.Mismatches) > 1 {
				for _, other := range report.Mismatches[:len(report.Mismatches)-1] {
					a.notef("benchpin: %s", other)
				}
				more := ""
				if report.Stopped {
					more = ", and verifying stopped there"
				}
				return &codedError{exitVerify, fmt.Errorf("%w (%d files differ%s)", report.Mismatches[len(report.Mismatches)-1], len(report.Mismatches), more)}
			}
			return err
		},
	}
	data.add(cmd)
	cmd.Flags().BoolVar(&metadataOnly, "metadata-only", false, "compare presence and size of every file, and hash none: no evidence")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
