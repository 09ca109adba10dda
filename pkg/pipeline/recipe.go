package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/datagen"
	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/stream"
)

const (
	// againFiles and againBytes bound the files that verification generates again: some seconds of work. A data set that has fewer of
	// both is generated again as a whole.
	againFiles = 256
	againBytes = 512 << 20
	// againOne bounds a single file, the first to be chosen, which may be larger than againBytes: half a minute of work. A data set of
	// larger files only, of which there are some, is not generated again, and the check says that it was none of them.
	againOne = 16 << 30
	// againDraws bounds the draws, where most that is drawn was chosen already or is too large.
	againDraws = 64 * againFiles
)

// recipeAgain generates files of the data set again, in memory, and compares their digests with the manifest. Which ones follows from
// the root, so that whoever made the manifest could not choose the root first. It returns how many of how many. Files that this build
// cannot make are none of them, which is a fault of class fault.Unavailable: a check that was not made is none that passed.
func recipeAgain(ctx context.Context, v *attest.Verification, files *pinnedFiles) (n, total int, found []*fault.Fault) {
	if total = len(files.byEntry); v.Manifest.Header().Recipe == nil {
		return 0, total, nil // a run without a data set, or on one that nobody generated
	}
	bad := func(detail string) []*fault.Fault {
		return []*fault.Fault{fault.New(fault.Manifest, "recipe", detail).In(attest.TitleManifest)}
	}
	recipe, err := datagen.ParseRecipe(v.Manifest.Header().Recipe)
	if err != nil {
		return 0, total, bad(err.Error())
	}
	if seed := v.Record.Dataset.Seed; seed != recipe.Seed() {
		return 0, total, []*fault.Fault{differs("dataset.seed", fmt.Sprintf("the recipe has %s, found %q", recipe.Seed(), seed))}
	}
	chosen := chooseFiles(v.Manifest.Root(), recipe)
	expected := make(map[string]manifest.Entry, len(chosen))
	err = v.Manifest.Entries(ctx, func(e manifest.Entry) error {
		if _, ok := chosen[e.Path]; ok {
			expected[e.Path] = e
		}
		return nil
	})
	if err != nil {
		return 0, total, bad(err.Error())
	}
	for path, i := range chosen {
		sum, size, err := recipe.Digest(ctx, i)
		if lacking := (*format.UnavailableError)(nil); errors.As(err, &lacking) {
			return 0, total, []*fault.Fault{fault.New(fault.Unavailable, "recipe", "no file was generated again, because "+lacking.Error()).In(attest.TitleManifest)}
		}
		if err != nil {
			return n, total, append(found, bad(err.Error())...)
		}
		n++
		if want, ok := expected[path]; !ok {
			found = append(found, bad(fmt.Sprintf("%s: the recipe makes it, and the manifest does not list it", path))...)
		} else if sum != want.Digest || size != want.Size {
			found = append(found, fault.New(fault.Manifest, path, fmt.Sprintf("expected %s of %d bytes by the recipe, found %s of %d bytes",
				manifest.FormatDigest(sum), size, manifest.FormatDigest(want.Digest), want.Size)).In(attest.TitleEntries))
		}
	}
	return n, total, found
}

// chooseFiles picks different files of the recipe, companions among them, by numbers drawn from the root, until the bounds are reached; all of them when they
// are within the bounds. It returns path to number.
func chooseFiles(root [32]byte, recipe datagen.Recipe) map[string]int {
	chosen := make(map[string]int)
	draw := stream.New("benchpin/verify", 1, binary.BigEndian.Uint64(root[:8]))
	var bytes int64
	all := recipe.Entries() <= againFiles && recipe.TotalBytes() <= againBytes
	for k := 0; k < againDraws && len(chosen) < min(againFiles, recipe.Entries()); k++ {
		i := k
		if !all {
			i = int(draw.Uniform(0, uint64(k), uint64(recipe.Entries())))
		}
		f := recipe.Entry(i)
		if _, have := chosen[f.Path]; have || f.Size > againOne {
			continue
		}
		if bytes += f.Size; bytes > againBytes && len(chosen) > 0 {
			break
		}
		chosen[f.Path] = i
	}
	return chosen
}
