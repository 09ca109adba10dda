package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

// replayFlags are those of the command replay.
type replayFlags struct {
	o            pipeline.ReplayOptions
	accept       acceptFlags
	remote       registryFlags
	sign         signFlags
	journal      string
	attach       bool
	dataOnly     bool
	scheduleOnly bool
	watch        liveFlags
	asJSON       bool
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay ARCHIVE|REFERENCE",
		Short:   "Repeat an attested result: verify it, make its data set again, run, and compare",
		GroupID: groupMain,
		Long: `Repeat a result that somebody attested. The archive is verified as "benchpin verify" does it; its data set is generated from its recipe, or the
one at hand is compared with its manifest; its workload is run on it; and everything is compared, a line for each item:

  attestation    the archive verifies
  data           the same bytes, by the root of the manifest
  schedule       the same samples in the same order, by the transcript
  checkpoints    the same bytes written
  tool           the same program, or how they differ
  environment    the same machine and settings, or how they differ
  performance    the rate is within the tolerance, by the noise between the steps of both runs

The last line is the level that was reached: attested, data reproduced, schedule reproduced, result reproduced, each with all before it.

Exit code 5 when data, schedule or checkpoints differ, which must be the same to the bit. 4 when the archive does not verify: then nothing is
replayed, unless --unverified, which the replay's record says. Another tool, another environment and another performance are no failure: the
level says it. A workload whose thresholds are missed is compared all the same.

With --sign, or --fulcio-url without a key, the replay's own run gets an archive, and the replay an attestation of its own, which --attach attaches to what was replayed.`,
		Example: `  benchpin replay ./demo/archive --key ./demo/keys/benchpin.pub --dir ./again
  BENCHPIN_PASSWORD=secret benchpin replay localhost:5000/results/quickstart:v1 --key ./demo/keys/benchpin.pub --sign me.key --attach`,
		Args: exactly("ARCHIVE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd, args[0], &f) },
	}
	f.remote.add(cmd)
	flags := cmd.Flags()
	f.accept.addTrust(cmd, "public `KEY` that the archive must verify with; may be repeated, any of them is accepted")
	f.accept.policy.add(cmd)
	flags.BoolVar(&f.o.Unverified, "unverified", false, "replay an archive that does not verify, or without --key; the replay's record says so")
	flags.StringVar(&f.o.Dir, "dir", "replay", "`folder` of the replay: data set, manifest, runs, checkpoints")
	flags.StringVar(&f.o.Data, "data", "", "`folder` of the data set, which is generated there, or compared where it holds files; or s3://BUCKET[/PREFIX] that holds it (default: data in the replay's folder)")
	flags.BoolVar(&f.dataOnly, "data-only", false, "make the data set again, or compare it, and run nothing")
	flags.BoolVar(&f.scheduleOnly, "schedule-only", false, "compute plan and transcript again, and read and write no data")
	flags.Float64Var(&f.o.Tolerance, "tolerance", pipeline.ReplayTolerance, "how far the rate may be off: 0.05 is from 1/1.05 to 1.05 times the original's")
	flags.IntVar(&f.o.Workers, "workers", 0, "files generated or hashed at once (default: by the number of cores)")
	flags.BoolVar(&f.o.OverwriteCheckpoints, "overwrite-checkpoints", false, overwriteUsage)
	flags.StringVar(&f.journal, "journal", "", "`file` of the journal that the attempt is entered into, or none (default: journal.jsonl in the replay's folder)")
	flags.BoolVar(&f.o.Redact, "redact", false, "leave host names and serial numbers out of the replay's record")
	f.sign.add(cmd, "sign", "to attest the replay with"+keyForms, &f.accept.trust)
	flags.BoolVar(&f.attach, "attach", false, "attach the attestation of the replay to the archive that was replayed, there where it is")
	f.watch.add(cmd)
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON document")
	return cmd
}

// completeReplay checks the flags and loads what they name.
func (a *app) completeReplay(cmd *cobra.Command, f *replayFlags) error {
	switch {
	case f.dataOnly && f.scheduleOnly:
		return usagef("--data-only and --schedule-only: expected at most one of them")
	case f.attach && !f.sign.asked():
		return usagef("--attach: expected --sign KEY, the key that attests the replay, or --fulcio-url")
	case f.sign.asked() && (f.dataOnly || f.scheduleOnly):
		return usagef("--sign: a replay without a run has no record that could be attested; leave --data-only and --schedule-only out")
	case !(f.o.Tolerance > 0) || math.IsInf(f.o.Tolerance, 0):
		return usagef("--tolerance %v: expected a number above 0, such as 0.05", f.o.Tolerance)
	}
	if f.dataOnly {
		f.o.Scope = pipeline.ReplayData
	} else if f.scheduleOnly {
		f.o.Scope = pipeline.ReplaySchedule
	}
	var err error
	if f.o.Keys, f.o.Policy, err = f.accept.resolve(cmd.Context(), a, f.o.Unverified); err != nil {
		return err
	}
	// Before anything is done: a key that cannot be read, or an authority that does not answer, would cost a replay.
	if f.o.Key, err = a.signerTrusting(cmd.Context(), &f.sign, f.o.Policy.Trusted); err != nil {
		return err
	}
	if f.journal == "" {
		f.journal = pipeline.Layout{Dir: f.o.Dir}.Journal()
	}
	f.o.Journal = journalFile(f.journal)
	f.o.Tool, err = environment.Tool(a.toolVersion(), commit)
	return err
}

func (a *app) replay(cmd *cobra.Command, arg string, f *replayFlags) error {
	if err := notRunFolder(arg); err != nil {
		return err
	}
	if err := a.completeReplay(cmd, f); err != nil {
		return err
	}
	dir, done, err := a.archiveAt(cmd.Context(), arg, &f.remote)
	if err != nil {
		return err
	}
	defer done()
	f.o.Archive = dir
	notify, end := a.notify()
	defer end()
	unlive, err := f.watch.start(a, &notify, cmp.Or(f.o.Data, pipeline.Layout{Dir: f.o.Dir}.Data()), append(ofLayout(f.o.Dir), f.o.Archive, f.o.Journal)...)
	if err != nil {
		return err
	}
	defer unlive()
	f.o.Notify = notify
	result, err := pipeline.Replay(cmd.Context(), f.o)
	end()
	if result.Bundle != nil && err == nil {
		err = a.keepReplay(cmd, arg, f, result)
	}
	if errors.Is(err, pipeline.ErrReplayDiffers) {
		err = &codedError{exitDiffers, err}
	}
	if len(result.Items) == 0 {
		return err
	}
	if result.Folder != "" {
		a.notef("run folder: %s", result.Folder)
	}
	if f.asJSON {
		return errors.Join(err, a.printJSON(result))
	}
	a.printReplay(result)
	return err
}

// keepReplay writes the attestation of a replay beside its archive, and attaches it where that is asked for.
func (a *app) keepReplay(cmd *cobra.Command, to string, f *replayFlags, result *pipeline.ReplayResult) error {
	path := filepath.Clean(pipeline.Layout{Dir: f.o.Dir}.ReplayArchive(result.Replay.Run)) + ".sigstore.json"
	if err := os.WriteFile(path, result.Bundle, 0o644); err != nil {
		return fmt.Errorf("attestation of the replay: %w", err)
	}
	a.notef("attestation: %s", path)
	if !f.attach {
		return nil
	}
	attached, err := a.attach(cmd.Context(), to, []string{path}, &f.remote)
	if err != nil {
		return fmt.Errorf("%w; \"benchpin attach %s %s\" attaches it", err, to, path)
	}
	a.notef("attached to %s", attached.Archive)
	return nil
}

// printReplay prints the verdict: a line for each item, and the level as the last one.
func (a *app) printReplay(r *pipeline.ReplayResult) {
	a.printf("replay of run %s, archive %s\n", r.Original.Run, r.Archive)
	for _, i := range r.Items {
		a.printf("%-12s %-10s %s\n", i.Name, strings.ToUpper(strings.ReplaceAll(string(i.Outcome), "-", " ")), i.Detail)
	}
	a.printf("level: %s\n", levelText(r.Level))
}

func levelText(l attest.ReplayLevel) string { return strings.ReplaceAll(string(l), "-", " ") }

// replayNote says on the page of a verdict who replayed the result.
func replayNote(key string, p *attest.ReplayPredicate) string {
	word := "replayed"
	if p.Level == attest.LevelResult {
		word = "reproduced"
	}
	text := fmt.Sprintf("%s by the holder of %s: %s, in run %s with benchpin %s, whose record is %s", word, attest.SignerText(key), levelText(p.Level), p.Replay.Run,
		fault.Printable(p.Tool.Version), p.Replay.Record)
	if p.Unverified {
		text += "; the archive did not verify for them"
	}
	return text + "; whether that is true is not judged here"
}
