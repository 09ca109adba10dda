package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

func (a *app) attestCommand() *cobra.Command {
	var manifestPath, archive, certificate string
	var sign signFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "attest [RUN]",
		Short:   "Sign the result of a run and pack it into an archive, or sign an archive with another key",
		GroupID: groupMain,
		Long: `Sign the result of a complete run and pack it, with the manifest of its data set, into an archive: a folder in OCI image layout that holds
the record, what it needs, and its attestations. Standard output is the archive's digest.

Without RUN, the archive is there already: everything in it is verified but the signatures, and the same is attested with your key too. The
attestations of others stay as they are.

Nobody is contacted, unless --timestamp-url asks an authority for timestamps of the signatures: it learns their digests. With
--fulcio-url there is no key to keep: an authority certifies one for this call, and --rekor-url publishes the certificate, your name in it.`,
		Example: `  BENCHPIN_PASSWORD=secret benchpin key generate --out ./me
  BENCHPIN_PASSWORD=secret benchpin attest ./results --manifest ./qs.manifest.json --archive ./archive --key ./me.key
  BENCHPIN_PASSWORD=secret benchpin attest --archive ./archive --key ./auditor.key`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.attestAgain(cmd, archive, &sign, manifestPath+certificate != "", asJSON)
			}
			if err := exactly("RUN")(cmd, args); err != nil {
				return err
			}
			if manifestPath == "" {
				// A run without a data set has its own.
				if own := filepath.Join(args[0], pipeline.NoDataManifest); fileExists(own) {
					manifestPath = own
				}
			}
			for name, value := range map[string]string{"manifest": manifestPath, "archive": archive, "key": sign.key + sign.fulcio} {
				if value == "" {
					return usagef("expected --%s (see %q)", name, cmd.CommandPath()+" --help")
				}
			}
			key, err := a.signer(cmd.Context(), &sign)
			if err != nil {
				return err
			}
			info, err := pipeline.Attest(cmd.Context(), pipeline.AttestOptions{Run: args[0], Manifest: manifestPath, Certificate: certificate, Archive: archive,
				Key: key})
			if err != nil {
				return err
			}
			return a.printAttested(info, asJSON)
		},
	}
	cmd.Flags().StringVar(&manifestPath, "manifest", "", "`file` of the manifest's header (default: that beside the record, of a run without a data set, or whose data set was removed)")
	cmd.Flags().StringVar(&archive, "archive", "", "`folder` of the archive; new or empty, or, without RUN, that of one that is there")
	cmd.Flags().StringVar(&certificate, "certificate", "", "`file` of the data set's certificate, made by \"data certify\", to be attested too")
	sign.add(cmd, "key", "to sign with"+keyForms, nil)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// attestAgain signs an archive that is there with another key.
func (a *app) attestAgain(cmd *cobra.Command, archive string, sign *signFlags, superfluous, asJSON bool) error {
	switch {
	case archive == "":
		return usagef("expected RUN, or --archive with an archive that is there (see %q)", cmd.CommandPath()+" --help")
	case sign.key == "" && sign.fulcio == "":
		return usagef("expected --key (see %q)", cmd.CommandPath()+" --help")
	case superfluous:
		return usagef("without RUN, --manifest and --certificate have no meaning: the archive holds both")
	}
	key, err := a.signer(cmd.Context(), sign)
	if err != nil {
		return err
	}
	info, err := pipeline.AttestArchive(cmd.Context(), archive, key)
	if err != nil {
		return err
	}
	if len(info.PredicateTypes) == 0 {
		a.notef("nothing was added: this key attests the archive already")
	}
	return a.printAttested(info, asJSON)
}

func (a *app) printAttested(info attest.ArchiveInfo, asJSON bool) error {
	if asJSON {
		return a.printJSON(map[string]any{"archive": info.Archive.SHA256Digest(), "predicate_types": append([]string{}, info.PredicateTypes...)})
	}
	a.printf("%s\n", info.Archive.SHA256Digest())
	return nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
