package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/benchpin/benchpin/pkg/cluster"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/store"
)

// VerifyDataOptions says which data set to compare with which manifest.
type VerifyDataOptions struct {
	// Data is the folder of the data set, or the address of its bucket, Manifest the path of the manifest's header.
	Data, Manifest string
	Workers        int
	// MetadataOnly is manifest.VerifyOptions.MetadataOnly.
	MetadataOnly bool
	// World are the processes that hash the files together, each its share; nil: this one hashes all. Process 0 has the report of all.
	World *cluster.World
	// Tool identifies this program, where World has several processes: all must be the same.
	Tool record.Tool
	Notify
}

// VerifyData compares every file of a data set with its manifest, and its digests of groups too where it has some, and leaves the page
// cache no warmer than it was. The error matches *manifest.MismatchError where files differ, and the report holds them.
func VerifyData(ctx context.Context, o VerifyDataOptions) (h manifest.Header, report manifest.Report, err error) {
	if several(o.World) {
		var free context.CancelFunc
		ctx, free = o.World.Context(ctx)
		defer free()
		defer func() { failAlone(o.World, err) }()
		if err := sameTool(ctx, o.World, o.Tool); err != nil {
			return h, report, err
		}
		if !leads(o.World) {
			o.Notify = Notify{}
		}
	}
	m, groups, err := openPinned(o.Manifest)
	if err := agreed(ctx, o.World, err); err != nil {
		return h, report, err
	}
	defer m.Close()
	if groups != nil {
		defer groups.Close()
	}
	h = *m.Header()
	if several(o.World) {
		if err := o.World.Handshake(ctx, map[string]string{"data root": h.Root.String(), "manifest": m.Digest().String()}); err != nil {
			return h, report, err
		}
	}
	st, err := OpenData(ctx, o.Data, store.FolderOptions{Uncached: true, Resident: true})
	if err := agreed(ctx, o.World, err); err != nil {
		return h, report, err
	}
	defer st.Close()
	if err := o.seen(ctx, m, st); err != nil {
		return h, report, err
	}
	v := manifest.VerifyOptions{Workers: o.Workers, Groups: groups, MetadataOnly: o.MetadataOnly}
	processes := int64(1)
	if several(o.World) {
		processes = int64(o.World.Size())
		v.Share = manifest.Share{Index: o.World.Rank(), Of: o.World.Size()}
	}
	v.Progress = func(files, bytes int64) {
		o.progress("verify", min(files*processes, h.Count), h.Count, min(bytes*processes, h.Bytes), h.Bytes)
	}
	report, err = manifest.Verify(ctx, m, st, v)
	if processes == 1 {
		return h, report, err
	}
	report, err = o.joined(ctx, report, err)
	return h, report, err
}

// looksFor is how many files a process looks for to know that it sees a data set.
const looksFor = 16

// seen names the processes that see none of the first files where others do: they look into another folder, or into one that is not mounted,
// and would call every file of their share missing. Files that nobody sees are for the comparison to name.
func (o *VerifyDataOptions) seen(ctx context.Context, m *manifest.Manifest, st DataStore) error {
	if !several(o.World) {
		return nil
	}
	sees := []int64{0}
	var missing error
	stop := errors.New("one is enough")
	looked := 0
	err := m.Entries(ctx, func(e manifest.Entry) error {
		_, err := st.Stat(e.Path)
		if err == nil {
			sees[0] = 1
			return stop
		}
		if missing == nil {
			missing = err
		}
		if looked++; looked == looksFor {
			return stop
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	if err := agreed(ctx, o.World, err); err != nil {
		return err
	}
	own := sees[0] == 1
	if err := o.World.Allreduce(ctx, sees, cluster.Max); err != nil {
		return err
	}
	var blind error
	if !own && sees[0] == 1 {
		blind = fmt.Errorf("the data set %s cannot be seen, and other processes see it: %w; give all processes the same folder, on a file system "+
			"that all hosts have mounted", o.Data, missing)
	}
	return agreed(ctx, o.World, blind)
}

// openPinned opens a manifest, and the digests of groups that stand beside it.
func openPinned(path string) (*manifest.Manifest, *manifest.Groups, error) {
	m, err := manifest.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; \"benchpin data generate\" and \"benchpin data pin\" make manifests, --manifest names another", err)
	}
	groups, err := manifest.OpenGroupsIfAny(path, m)
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, groups, nil
}

// joined is the report of all processes, in the first one.
func (o *VerifyDataOptions) joined(ctx context.Context, own manifest.Report, err error) (manifest.Report, error) {
	var mismatch *manifest.MismatchError
	failed := err
	if errors.As(err, &mismatch) {
		failed = nil
	}
	if err := agreed(ctx, o.World, failed); err != nil {
		return own, err
	}
	mine, err := json.Marshal(own)
	if err != nil {
		return own, err
	}
	all, err := o.World.GatherBytes(ctx, mine)
	if err != nil {
		return own, err
	}
	var differ error
	if leads(o.World) {
		if own, err = joinedReports(all); err != nil {
			return own, err
		}
		if n := len(own.Mismatches); n > 0 {
			differ = fmt.Errorf("verify: %w", own.Mismatches[0])
			if n > 1 {
				differ = fmt.Errorf("%w (and %d more)", differ, n-1)
			}
		}
		if !o.MetadataOnly {
			own.Skipped = 0 // files that another process hashed
		}
	}
	return own, told(ctx, o.World, differ)
}

// joinedReports puts reports together. What is missing is known from the listing of the first process, which also knows what was renamed.
func joinedReports(docs [][]byte) (all manifest.Report, err error) {
	for process, doc := range docs {
		var r manifest.Report
		if err := json.Unmarshal(doc, &r); err != nil {
			return all, fmt.Errorf("report of process %d: %w", process, err)
		}
		if process == 0 {
			all = r
			continue
		}
		all.Files, all.Bytes, all.Stopped = all.Files+r.Files, all.Bytes+r.Bytes, all.Stopped || r.Stopped
		for _, m := range r.Mismatches {
			known := slices.ContainsFunc(all.Mismatches, func(k *manifest.MismatchError) bool { return k.Path == m.Path })
			if !known {
				all.Mismatches = append(all.Mismatches, m)
			}
		}
	}
	slices.SortStableFunc(all.Mismatches, func(a, b *manifest.MismatchError) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}
