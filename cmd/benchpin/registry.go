package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest/oci/registry"
	"github.com/benchpin/benchpin/pkg/pipeline"
)

// registryFlags are the flags of the commands that speak with a registry.
type registryFlags struct {
	plainHTTP bool
	caFile    string
}

func (f *registryFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.plainHTTP, "plain-http", false, "reach the registry without TLS, also when it is not on this host")
	cmd.Flags().StringVar(&f.caFile, "ca-file", "", "`file` of PEM certificates that the registry may be trusted by, beside the system's")
}

func (a *app) registryOptions(f *registryFlags) registry.Options {
	return registry.Options{PlainHTTP: f.plainHTTP, CAFile: f.caFile, UserAgent: "benchpin/" + version, Progress: func(line string) { a.notef("%s", line) }}
}

// archiveAt returns the folder of an archive: the argument itself, or a temporary folder into which the archive was pulled where the
// argument is a reference and no folder has that name. done removes what was made for it.
func (a *app) archiveAt(ctx context.Context, arg string, f *registryFlags) (dir string, done func(), err error) {
	if _, err := os.Lstat(arg); err == nil || !registry.IsReference(arg) {
		return arg, func() {}, nil // whatever is there is meant, also where the name reads as a reference
	}
	temporary, err := os.MkdirTemp("", "benchpin-pull-*")
	if err != nil {
		return "", nil, fmt.Errorf("pull %s (set TMPDIR to a folder with room): %w", arg, err)
	}
	done = func() { os.RemoveAll(temporary) }
	dir = filepath.Join(temporary, "archive")
	o := a.registryOptions(f)
	o.Once = true
	pulled, err := registry.Pull(ctx, arg, dir, o)
	if err != nil {
		done()
		return "", nil, err
	}
	a.noteOthers(pulled)
	return dir, done, nil
}

// notRunFolder refuses a run folder where an archive is needed: nothing there is signed, and nothing but the record could be looked at.
func notRunFolder(arg string) error {
	if _, err := os.Lstat(filepath.Join(arg, "oci-layout")); err == nil {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(arg, pipeline.RecordName)); err != nil {
		return nil
	}
	return usagef("%s is a run folder, and an archive is needed; \"benchpin attest %s --manifest MANIFEST --archive FOLDER --key KEY\" makes one of it", arg, arg)
}

// resultAt is where a result is read from, and what it was asked for by.
type resultAt struct{ name, path string }

// resultsAt finds run folders and archives: the arguments themselves, or temporary folders into which archives were pulled (archiveAt).
func (a *app) resultsAt(ctx context.Context, args []string, f *registryFlags) (found []resultAt, done func(), err error) {
	var ends []func()
	done = func() {
		for _, end := range ends {
			end()
		}
	}
	for _, arg := range args {
		dir, end, err := a.archiveAt(ctx, arg, f)
		if err != nil {
			done()
			return nil, func() {}, err
		}
		ends = append(ends, end)
		found = append(found, resultAt{arg, dir})
	}
	return found, done, nil
}

// noteOthers names what refers to an archive and did not come along.
func (a *app) noteOthers(pulled *registry.Pulled) {
	for _, other := range pulled.Others {
		a.notef("left in the registry: %s (%q): %s", other.Digest, other.ArtifactType, other.Other)
	}
}

func (a *app) pushCommand() *cobra.Command {
	var (
		flags  registryFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "push ARCHIVE REFERENCE",
		Short:   "Push an archive with its attestations to an OCI registry",
		GroupID: groupMain,
		Long: `Push the archive in a folder to an OCI registry: HOST[:PORT]/REPOSITORY[:TAG]. Its attestations go along as referrers. The tag is moved last,
so that nobody who follows it finds half an archive. What the registry has already is not sent again: repeat the command after a failure.
Standard output is the reference by digest, which is the one to hand on: a tag can be moved.

Credentials are those of docker and podman, credential helpers included. TLS is required but for registries on this host.`,
		Example: "  benchpin push ./demo/archive localhost:5000/results/quickstart:v1",
		Args:    exactly("ARCHIVE", "REFERENCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notRunFolder(args[0]); err != nil {
				return err
			}
			pushed, err := registry.Push(cmd.Context(), args[0], args[1], a.registryOptions(&flags))
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(pushed)
			}
			a.printf("%s\n", pushed.Reference)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) pullCommand() *cobra.Command {
	var (
		flags  registryFlags
		out    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "pull REFERENCE",
		Short:   "Pull an archive with its attestations from an OCI registry",
		GroupID: groupMain,
		Long: `Pull an archive from an OCI registry into a new folder, with every attestation that refers to it. The folder appears when every byte has
the digest that was asked for, and not before; when the connection fails for good, what came whole is kept beside it, and repeating the command goes
on from there. Nothing is judged: "benchpin verify" does that, on the folder or on the reference itself.
Standard output is the reference by digest.`,
		Example: "  benchpin pull localhost:5000/results/quickstart:v1 --archive ./pulled",
		Args:    exactly("REFERENCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usagef("expected --archive FOLDER, a new folder for the archive")
			}
			pulled, err := registry.Pull(cmd.Context(), args[0], out, a.registryOptions(&flags))
			if err != nil {
				return err
			}
			a.noteOthers(pulled)
			if asJSON {
				return a.printJSON(pulled)
			}
			a.printf("%s\n", pulled.Reference)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&out, "archive", "", "new `folder` for the archive")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
