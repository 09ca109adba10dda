package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/benchpin/benchpin/pkg/workload"
)

// cachedCaution says which epochs began with most of their bytes in the page cache and are not named by memoryCaution: a device that delivers
// more than was asked for, by whole pages and by reading ahead, hides that they came from there. Direct reads ask the device whatever is cached.
func cachedCaution(epochs []record.EpochMetrics) string {
	var which []string
	var all, asked float64
	for i := range epochs {
		s, want := epochs[i].Storage, epochs[i].BytesAsked.Value
		if s == nil || s.Direct || want == nil || s.Memory.Value != nil && *s.Memory.Value > *want/2 {
			continue
		}
		var cached float64
		for _, f := range s.FileSystems {
			if f.CachedBefore.Value != nil {
				cached += *f.CachedBefore.Value
			}
		}
		if cached > *want/2 {
			which = append(which, strconv.Itoa(epochs[i].Epoch))
			all += cached
			asked += *want
		}
	}
	if len(which) == 0 {
		return ""
	}
	n := float64(len(which))
	return fmt.Sprintf("CAUTION: when %s began, the page cache held %s of the data set, and %s asked for %s: much of it may have come from memory, although the "+
		"device's counter does not show it, which counts whole pages and what was read ahead too", named(which, len(epochs)), decimalBytes(all/n),
		itThey(len(which)), decimalBytes(asked/n))
}

// unseenCaution says that nobody could see whether dropping the data set from the page cache worked.
func unseenCaution(epochs []record.EpochMetrics) string {
	var which []string
	reason := ""
	for i := range epochs {
		s := epochs[i].Storage
		if s == nil || s.Dropped == nil {
			continue
		}
		for _, f := range s.FileSystems {
			if f.CachedBefore.Value == nil {
				which, reason = append(which, strconv.Itoa(epochs[i].Epoch)), f.CachedBefore.Absent
				break
			}
		}
	}
	if len(which) == 0 {
		return ""
	}
	return fmt.Sprintf("CAUTION: the data set was to be dropped from the page cache before %s, and nothing shows whether it was: %s", named(which, len(epochs)),
		clean(reason))
}

// mappingCaution says that the data set lies in memory, where identities do not show every change.
func mappingCaution(r *record.Record) string {
	switch r.Dataset.Verification.Mode {
	case workload.VerifyBefore, workload.VerifyAfter, workload.VerifySample:
	default: // inline compares what was read itself
		return ""
	}
	var types []string
	for _, f := range r.Environment.Folders {
		if f.Role == record.RoleData && record.InMemory(f.FileSystem) {
			types = append(types, f.FileSystem)
		}
	}
	for i := range r.Metrics.Epochs {
		if s := r.Metrics.Epochs[i].Storage; s != nil {
			for _, f := range s.FileSystems {
				if record.InMemory(f.Type) {
					types = append(types, f.Type)
				}
			}
		}
	}
	if len(types) == 0 {
		return ""
	}
	slices.Sort(types)
	return fmt.Sprintf("CAUTION: the data set lies on %s, which is memory: a program that had its files mapped for writing before they were verified, or looked "+
		"at, can have changed them unnoticed between that and the reading; benchpin.verify: inline compares what is read", strings.Join(slices.Compact(types), ", "))
}

// backingCautions say that the disk of the data set is memory, or a file whose pages stay in the page cache.
func backingCautions(r *record.Record) (list []string) {
	for _, f := range r.Environment.Folders {
		if f.Role != record.RoleData {
			continue
		}
		for _, b := range f.Device.Backings {
			switch {
			case b.File != "" && b.Memory:
				list = append(list, fmt.Sprintf("CAUTION: disk %s of the data set is the file %s on %s: memory, and no storage", clean(b.Device), clean(b.File), clean(b.FileSystem)))
			case b.Memory:
				list = append(list, fmt.Sprintf("CAUTION: disk %s of the data set is memory, and no storage", clean(b.Device)))
			default:
				list = append(list, fmt.Sprintf("CAUTION: disk %s of the data set is the file %s on %s: that file's pages may be in memory, and --cold does not drop them",
					clean(b.Device), clean(b.File), clean(b.FileSystem)))
			}
		}
	}
	return list
}
