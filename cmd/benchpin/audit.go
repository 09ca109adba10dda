package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/audit"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Ask for chunks of a data set by a public value, answer, and check the answer", GroupID: groupParts, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.auditChallengeCommand(), a.auditAnswerCommand(), a.auditCheckCommand())
	return cmd
}

func (a *app) auditChallengeCommand() *cobra.Command {
	var (
		from  string
		count int
		out   string
	)
	cmd := &cobra.Command{
		Use:   "challenge ARCHIVE|MANIFEST",
		Short: "Pick chunks of a data set by a public value",
		Long: `Pick chunks of a data set, of up to 1 MiB each, by a public value that nobody knew when the manifest was signed: the next value of a randomness
beacon, or the hash of a block of a public chain. Every byte is as likely to be picked as any other. The same value, root and count pick the
same chunks everywhere, so that anyone can draw them again.

The challenge is a JSON document (schemas/audit-challenge-v1.schema.json), printed, or written to --out; then its digest is printed.`,
		Example: "  benchpin audit challenge ./demo/archive --from 8f6a21c0e5 --count 300 --out ./challenge.json",
		Args:    exactly("ARCHIVE|MANIFEST"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if from == "" {
				return usagef("expected --from VALUE, a public value that nobody knew before")
			}
			if count < 1 || count > audit.MaxChunks || len(from) > audit.MaxFrom {
				return usagef("--count %d, --from of %d bytes: expected 1 to %d chunks, and a value of at most %d bytes", count, len(from), audit.MaxChunks, audit.MaxFrom)
			}
			m, done, err := pipeline.OpenManifest(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			c, err := audit.NewChallenge(cmd.Context(), m, from, count)
			if err != nil {
				return err
			}
			b, err := c.Encode()
			if err != nil {
				return err
			}
			if out == "" {
				a.printf("%s", b)
			} else if err := writeNew(out, b); err != nil {
				return err
			} else {
				a.printf("%s\n", c.Digest())
			}
			a.notef("%d of %d chunks, %d of %d bytes, of the data set %s", len(c.Chunks), c.Groups, c.ChunkBytes(), c.Bytes, c.Root)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "public `value` that nobody knew before")
	cmd.Flags().IntVar(&count, "count", 300, "chunks to pick; 300 find damage of 1 % with 95 %")
	cmd.Flags().StringVar(&out, "out", "", "`file` of the challenge (default: standard output)")
	return cmd
}

// writeNew writes a file that must not be there yet.
func writeNew(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// answerDocument is what "audit answer" prints with --json.
type answerDocument struct {
	Root   string     `json:"root"`
	From   string     `json:"from"`
	Form   audit.Form `json:"form"`
	Chunks int        `json:"chunks"`
	Bytes  int64      `json:"bytes"`
	Size   int64      `json:"answer_bytes"`
}

func (a *app) auditAnswerCommand() *cobra.Command {
	var (
		o      pipeline.AuditAnswerOptions
		form   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "answer CHALLENGE",
		Short: "Read the chunks of a challenge, and write the answer that shows that they are there",
		Long: `Read the chunks that a challenge asks for, hold them against the manifest, and write the answer. With --form digests it has a digest of
each chunk under a key that follows from the challenge, for a checker who has the recipe; with --form bytes it has the bytes, for any
checker. The default is digests for a generated data set, and bytes for any other.

Exit code 4, and no answer, when the data set does not hold what its manifest pins; file and place of each chunk are named.`,
		Example: "  benchpin audit answer ./challenge.json --data ./demo/data --manifest ./demo/manifest.json --out ./answer.jsonl",
		Args:    exactly("CHALLENGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Data == "" || o.Out == "" {
				return usagef("expected --data FOLDER and --out FILE")
			}
			if o.Form = audit.Form(form); form != "" && o.Form != audit.Bytes && o.Form != audit.Digests {
				return usagef("--form %s: expected %s or %s", form, audit.Bytes, audit.Digests)
			}
			if o.Manifest == "" {
				o.Manifest = pipeline.ManifestBeside(o.Data)
			}
			notify, end := a.notify()
			defer end()
			o.Challenge, o.Notify = args[0], notify
			c, used, size, err := pipeline.AuditAnswer(cmd.Context(), o)
			end()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(answerDocument{Root: c.Root, From: c.From, Form: used, Chunks: len(c.Chunks), Bytes: c.ChunkBytes(), Size: size})
			}
			a.printf("%s: %d chunks, %d bytes, as %s: %d bytes of answer\n", o.Out, len(c.Chunks), c.ChunkBytes(), used, size)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Data, "data", "", "`folder` of the data set, or s3://BUCKET[/PREFIX]")
	cmd.Flags().StringVar(&o.Manifest, "manifest", "", "`file` of the manifest's header (default: the data folder's path with .manifest.json)")
	cmd.Flags().StringVar(&o.Out, "out", "", "`file` of the answer; it must not be there yet")
	cmd.Flags().StringVar(&form, "form", "", "what the answer holds: digests or bytes (default: digests where the manifest has a recipe)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) auditCheckCommand() *cobra.Command {
	var (
		o      pipeline.AuditCheckOptions
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check ANSWER",
		Short: "Check an answer, and say what damage the audit would have found",
		Long: `Check an answer to a challenge: every chunk is the one asked for, its file is an entry of the data set with the root, and its bytes are those
that the manifest pins. It says which share of damaged bytes the audit would have found with 95 % and with 99 %.

With --manifest, an archive or the header of a manifest, the chunks are drawn again from the value, and answers of keyed digests are
checked by making the chunks from the recipe. With --root alone the challenge must be your own, and the answer must hold bytes.

Exit code 4 when anything does not hold; each file is named.`,
		Example: "  benchpin audit check ./answer.jsonl --challenge ./challenge.json --manifest ./demo/archive",
		Args:    exactly("ANSWER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Challenge == "" || o.Root == "" && o.Manifest == "" {
				return usagef("expected --challenge FILE, and --root ROOT or --manifest ARCHIVE|MANIFEST")
			}
			if _, err := manifest.ParseDigest(o.Root); o.Root != "" && err != nil {
				return usagef("--root: %w", err)
			}
			notify, end := a.notify()
			defer end()
			o.Answer, o.Notify = args[0], notify
			report, err := pipeline.AuditCheck(cmd.Context(), o)
			end()
			if err != nil {
				return err
			}
			if asJSON {
				if err := a.printJSON(report); err != nil {
					return err
				}
			}
			return a.judgeAudit(report, asJSON)
		},
	}
	cmd.Flags().StringVar(&o.Challenge, "challenge", "", "`file` of the challenge")
	cmd.Flags().StringVar(&o.Root, "root", "", "root of the data set, from an attestation (blake3:...)")
	cmd.Flags().StringVar(&o.Manifest, "manifest", "", "archive, or `file` of the manifest's header")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) judgeAudit(r *audit.Report, quiet bool) error {
	if !r.OK() {
		for _, f := range r.Failures {
			a.notef("benchpin: %s, bytes %d to %d: %s", f.Path, f.Offset, f.Offset+f.Length, f.Problem)
		}
		return &codedError{exitVerify, fmt.Errorf("%w: %d of %d chunks do not hold", audit.ErrAudit, len(r.Failures), len(r.Failures)+r.Chunks)}
	}
	if quiet {
		return nil
	}
	a.printf("%d of %d chunks, %d of %d bytes, are there as the root %s pins them (%s)\n", r.Chunks, r.OfChunks, r.Bytes, r.OfBytes, r.Root, r.Form)
	if r.Redrawn {
		a.printf("drawn again from %q: these are the chunks that the value picks\n", r.From)
	} else {
		a.printf("not drawn again: the challenge must be your own (--manifest draws it again)\n")
	}
	for _, s := range r.Assurance {
		if s.Method == audit.All {
			a.printf("every chunk was checked: any damage would have been found\n")
			return nil
		}
		a.printf("damage of at least %.4g %% of the bytes would have been found with %g %% (%s)\n", 100*s.Share, 100*s.Confidence, s.Method)
	}
	return nil
}
