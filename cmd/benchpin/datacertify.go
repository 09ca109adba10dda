package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/certificate"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

func (a *app) dataCertifyCommand() *cobra.Command {
	var (
		data   dataFlags
		sample int64
		all    bool
		out    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "certify",
		Short: "Measure how much of a data set repeats and how far it compresses",
		Long: `Measure on the data themselves what storage could make of them that deduplicates and compresses: the share of blocks of 512 and of 4096
bytes that are there more than once, of whole files too, and what zstd makes of pieces of 128 KiB, of 1 MiB and of whole files. The result is a
certificate, bound to the root of the manifest; every file that is read is hashed and must be the one that the manifest lists (exit code 4).

By default everything is read. --sample-bytes reads files drawn by the root until they have as many bytes: repeats are then those among what was
read, at least as many as that are there. The same data give the same certificate everywhere. "attest --certificate" puts it into an archive.`,
		Example: `  benchpin data certify --data ./qs --out ./certificate.json
  benchpin data certify --data ./qs --sample-bytes 1000000 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := data.complete(nil); err != nil {
				return err
			}
			switch {
			case all && cmd.Flags().Changed("sample-bytes"):
				return usagef("--all and --sample-bytes contradict each other")
			case cmd.Flags().Changed("sample-bytes") && sample < 1:
				return usagef("--sample-bytes %d: expected 1 or more", sample)
			}
			notify, end := a.notify()
			defer end()
			c, err := pipeline.Certify(cmd.Context(), pipeline.CertifyOptions{Data: data.data, Manifest: data.manifest, SampleBytes: sample,
				Workers: data.workers, Out: out, Notify: notify})
			end()
			if err != nil {
				return err
			}
			if asJSON {
				b, err := c.Canonical()
				if err != nil {
					return err
				}
				_, err = a.stdout.Write(b)
				return err
			}
			a.printCertificate(c)
			return nil
		},
	}
	data.add(cmd)
	cmd.Flags().Int64Var(&sample, "sample-bytes", 0, "read files until they have `N` bytes, drawn by the root (default: all)")
	cmd.Flags().BoolVar(&all, "all", false, "read everything (the default)")
	cmd.Flags().StringVar(&out, "out", "", "`file` that the certificate is written to")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the certificate")
	return cmd
}

// printCertificate prints a certificate for people.
func (a *app) printCertificate(c *certificate.Certificate) {
	a.printf("data root   %s\n", c.Dataset.Root)
	a.printf("read        %s: %d of %d files, %d of %d bytes, every file hashed and as the manifest lists it\n", c.Scope.Mode, int64(c.Scope.Files),
		int64(c.Dataset.Files), int64(c.Scope.Bytes), int64(c.Dataset.Bytes))
	about := func(d certificate.Distinct) string {
		if d.Exact {
			return "counted"
		}
		return "estimated, standard error " + percent(d.Error)
	}
	among := ""
	if c.Scope.Mode == certificate.Sample {
		among = " among what was read"
	}
	for _, b := range c.Repeats.Blocks {
		a.printf("repeated    %s of %d blocks of %d bytes%s, %d of them zeros (%s)\n", percent(b.Share), int64(b.Count), b.Size, among, int64(b.Zero), about(b.Distinct))
	}
	a.printf("            %s of %d files (%s)\n", percent(c.Repeats.Files.Share), int64(c.Repeats.Files.Count), about(c.Repeats.Files))
	for _, k := range c.Compression.Chunks {
		what := "whole files"
		if k.Size > 0 {
			what = fmt.Sprintf("pieces of %d KiB", k.Size>>10)
		}
		a.printf("compressed  %s : 1 by zstd %d, %s\n", strconv.FormatFloat(k.Ratio, 'f', 4, 64), c.Compression.Level, what)
	}
	class := "H: the host says so; whoever has the data measures the same"
	if c.Class == "C" {
		class = "C: the recipe of the manifest makes the data again, and anyone measures the same"
	}
	a.printf("class       %s\n", class)
}

// percent writes a share with enough digits to tell it from none.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 4, 64) + " %" }
