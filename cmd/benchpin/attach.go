package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/oci"
	"github.com/benchpin/benchpin/pkg/attest/oci/registry"
)

func (a *app) attachCommand() *cobra.Command {
	var (
		flags  registryFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "attach ARCHIVE|REFERENCE BUNDLE...",
		Short:   "Attach attestations to an archive, in a folder or in a registry",
		GroupID: groupMain,
		Long: `Attach attestations, each a Sigstore bundle v0.3 in a file, to an archive: one in a folder, or one that stands in an OCI registry already. The
archive itself, its digest and its tags stay what they are. A bundle whose statement is not about this archive is refused. Signatures are not
checked here: "benchpin verify" does that, and says of each bundle what it counts for.`,
		Example: "  benchpin attach localhost:5000/results/quickstart:v1 review.sigstore.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("expected ARCHIVE|REFERENCE BUNDLE..., found %d arguments: %q (see %q)", len(args), args, cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			attached, err := a.attach(cmd.Context(), args[0], args[1:], &flags)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(attached)
			}
			a.printf("%s\n", attached.Archive)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// attached is what "attach --json" prints.
type attached struct {
	// Archive is the folder, or the reference by digest.
	Archive        string   `json:"archive"`
	Digest         string   `json:"digest"`
	PredicateTypes []string `json:"predicate_types"`
}

func (a *app) attach(ctx context.Context, to string, files []string, flags *registryFlags) (*attached, error) {
	var bundles []registry.Bundle
	var about []*attest.BundleInfo
	for _, name := range files {
		raw, err := readBundle(name)
		if err != nil {
			return nil, err
		}
		info, err := attest.DescribeBundle(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: expected a Sigstore bundle with an in-toto statement: %w", name, err)
		}
		about = append(about, info)
		bundles = append(bundles, registry.Bundle{PredicateType: info.PredicateType, Content: raw})
	}
	out := &attached{Archive: to}
	var subject oci.Digests
	_, err := os.Lstat(to)
	remote := err != nil && registry.IsReference(to)
	if remote {
		out.Archive, out.Digest, err = registry.Resolve(ctx, to, a.registryOptions(flags))
	} else {
		if subject, err = archiveDigests(ctx, to); err == nil {
			out.Digest = subject.SHA256Digest().String()
		}
	}
	if err != nil {
		return nil, err
	}
	for i, info := range about {
		if !slices.Contains(info.SHA256, out.Digest[len("sha256:"):]) {
			return nil, fmt.Errorf("attach %s: expected a statement about %s, and no subject of this one is that: it attests another archive", files[i], out.Digest)
		}
		out.PredicateTypes = append(out.PredicateTypes, info.PredicateType)
	}
	if remote {
		_, err := registry.Attach(ctx, out.Archive, bundles, a.registryOptions(flags))
		return out, err
	}
	var all []oci.Attestation
	for _, b := range bundles {
		all = append(all, oci.Attestation{PredicateType: b.PredicateType, Bundle: b.Content})
	}
	return out, oci.AttachAll(ctx, to, &subject, all)
}

func readBundle(name string) ([]byte, error) {
	f, err := oci.OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, oci.MaxBundleBytes+1))
	if err == nil && len(raw) > oci.MaxBundleBytes {
		err = fmt.Errorf("%s: expected a bundle of at most %d bytes", name, oci.MaxBundleBytes)
	}
	return raw, err
}

// archiveDigests identifies the archive in a folder.
func archiveDigests(ctx context.Context, dir string) (oci.Digests, error) {
	l, err := oci.Read(ctx, dir)
	if err != nil {
		return oci.Digests{}, err
	}
	defer l.Close()
	return l.Manifest, l.Err()
}

func (a *app) referrersCommand() *cobra.Command {
	var (
		flags  registryFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "referrers REFERENCE",
		Short:   "List what refers to an archive in a registry",
		GroupID: groupMain,
		Long: `List everything that refers to an archive in an OCI registry, whoever put it there: digest, artifact type, and of attestations the type of
their predicate and the key that they name. Nothing is judged: "benchpin verify REFERENCE" says of each attestation what it counts for.`,
		Example: "  benchpin referrers localhost:5000/results/quickstart:v1",
		Args:    exactly("REFERENCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			listed, err := registry.List(cmd.Context(), args[0], a.registryOptions(&flags))
			if err != nil {
				return err
			}
			doc := referrerList{Reference: listed.Reference, Digest: listed.Digest, Referrers: []referrerLine{}}
			for _, r := range listed.Referrers {
				line := referrerLine{Digest: r.Digest, ArtifactType: r.ArtifactType, PredicateType: r.PredicateType, Other: r.Other}
				if r.Other == "" {
					if info, err := attest.DescribeBundle(r.Bundle); err != nil {
						line.Other = err.Error()
					} else {
						line.PredicateType, line.Key = info.PredicateType, info.Key
					}
				}
				doc.Referrers = append(doc.Referrers, line)
			}
			if asJSON {
				return a.printJSON(doc)
			}
			a.printf("%s\n", doc.Reference)
			for _, r := range doc.Referrers {
				if r.Other != "" {
					a.printf("  %s  %q: %q\n", r.Digest, r.ArtifactType, r.Other)
					continue
				}
				by := "certificate"
				if r.Key != "" {
					by = fmt.Sprintf("key %q", r.Key)
				}
				a.printf("  %s  %q by %s\n", r.Digest, r.PredicateType, by)
			}
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// referrerList is what "referrers --json" prints.
type referrerList struct {
	Reference string         `json:"reference"`
	Digest    string         `json:"digest"`
	Referrers []referrerLine `json:"referrers"`
}

type referrerLine struct {
	Digest       string `json:"digest"`
	ArtifactType string `json:"artifact_type"`
	// PredicateType and Key are what an attestation says of itself.
	PredicateType string `json:"predicate_type,omitempty"`
	Key           string `json:"key,omitempty"`
	// Other says why it is no attestation that can be read.
	Other string `json:"other,omitempty"`
}
