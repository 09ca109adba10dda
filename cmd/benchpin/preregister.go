package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

func (a *app) preregisterCommand() *cobra.Command {
	var (
		flags                    workloadFlags
		pinned                   pinnedFlags
		verify                   verifyFlags
		sign                     signFlags
		manifestPath, out, rules string
		asJSON                   bool
	)
	cmd := &cobra.Command{
		Use:     "preregister WORKLOAD [OVERRIDE...]",
		Short:   "Sign, before a run, what it will be judged by",
		GroupID: groupMain,
		Long: `Sign what a run of this workload on the data set with this manifest will be judged by: the digest of the resolved workload, the data set's
root, seeds, accelerators, epochs, verification and thresholds. Nothing is run.

"run --preregistered FILE" and "pipeline --preregistered FILE" refuse to run anything else, and their record names the file's digest; the
archive carries the file, and "verify" holds the record to it. A bare signature has no time: that the file was there before the result is
shown by whoever got it before, or by a timestamp (--timestamp-url), and not by the archive alone.`,
		Example: `  BENCHPIN_PASSWORD=secret benchpin preregister quickstart --manifest ./qs.manifest.json --out ./bar.json --key ./auditor.key
  benchpin run quickstart --data ./qs --checkpoints ./checkpoints --preregistered ./bar.json --out ./registered`,
		Args: oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			for name, value := range map[string]string{"manifest": manifestPath, "out": out, "key": sign.key + sign.fulcio} {
				if value == "" {
					return usagef("expected --%s (see %q)", name, cmd.CommandPath()+" --help")
				}
			}
			verify.set(&flags)
			if err := pinned.set(cmd, &flags); err != nil {
				return err
			}
			resolved, err := a.load(cmd, &flags, args)
			if err != nil {
				return err
			}
			if err := verify.check(resolved.Workload); err != nil {
				return err
			}
			if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
				return usagef("--out %s is there already: what was registered is not written over", out)
			}
			key, err := a.signer(cmd.Context(), &sign)
			if err != nil {
				return err
			}
			signed, p, err := pipeline.Preregister(cmd.Context(), resolved, manifestPath, rules, key)
			if err != nil {
				return err
			}
			if err := pipeline.WriteFile(out, signed); err != nil {
				return err
			}
			s, err := attest.ParsePreregistration(signed)
			if err != nil {
				return err
			}
			a.notef("registered in %s: workload %s, data set %s; hand it to whoever will judge before you run", out, p.Workload.Digest, p.Dataset.Root)
			if asJSON {
				return a.printJSON(map[string]any{"digest": s.Digest, "preregistration": p})
			}
			a.printf("%s\n", s.Digest)
			return nil
		},
	}
	flags.add(cmd)
	pinned.add(cmd)
	verify.add(cmd)
	cmd.Flags().StringVar(&manifestPath, "manifest", "", "`file` of the manifest's header")
	cmd.Flags().StringVar(&rules, "rule-edition", "", "`edition` of the rules by which the result will be judged, as their publisher writes it, such as mlperf-storage-v2.0")
	cmd.Flags().StringVar(&out, "out", "", "new `file` of the pre-registration")
	sign.add(cmd, "key", "to sign with"+keyForms, nil)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
