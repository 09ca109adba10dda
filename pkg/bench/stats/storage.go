package stats

import (
	"fmt"

	"github.com/benchpin/benchpin/pkg/record"
)

// FromMemory is how many of the bytes asked for no device delivered. What a device delivered beyond that was read ahead, or the rest of
// a page.
func FromMemory(asked, device int64) int64 { return max(0, asked-device) }

// storage checks what was counted in an epoch against its rows and finishes it. asked are the bytes that the rows ask for, device what
// was fetched for the process.
func (s *summary) storage(e *epochSums, d *Device) (*record.Storage, error) {
	if d.Storage == nil {
		return nil, nil
	}
	st := *d.Storage // the reader's is not changed
	fault := func(format string, args ...any) error {
		return fmt.Errorf("%w: storage of epoch %d: %s", ErrImpossible, e.epoch, fmt.Sprintf(format, args...))
	}
	var sum float64
	for i := range st.FileSystems {
		f := &st.FileSystems[i]
		if f.Asked.Value == nil {
			return nil, fault("the bytes asked of %s are missing", f.MountPoint)
		}
		sum += *f.Asked.Value
		for _, c := range [...]struct {
			name string
			record.Figure
		}{{"bytes_asked", f.Asked}, {"bytes_disk", f.Disk}, {"bytes_network", f.Network}, {"bytes_cached_before", f.CachedBefore},
			{"bytes_cached_after", f.CachedAfter}} {
			if c.Value != nil && !(*c.Value >= 0) {
				return nil, fault("%s of %s is %v: a counter went backwards", c.name, f.MountPoint, *c.Value)
			}
		}
	}
	switch {
	case sum != nanos(e.bytes) && !s.p.Partial:
		return nil, fault("the file systems were asked for %.0f bytes, the steps for %d", sum, e.bytes)
	case st.LookedAt > st.Files || st.LookedAt < 0:
		return nil, fault("%d of %d files were looked at", st.LookedAt, st.Files)
	case st.Memory.Value == nil:
		return &st, nil
	case d.Bytes == nil:
		return nil, fault("%v bytes came from memory, but what came from a device is not known", *st.Memory.Value)
	}
	if want := nanos(FromMemory(int64(sum), int64(*d.Bytes))); *st.Memory.Value != want {
		return nil, fault("%v bytes came from memory; %.0f were asked for and %d came from a device, which makes %.0f", *st.Memory.Value, sum,
			*d.Bytes, want)
	}
	if *st.Memory.Value > sum/2 {
		st.Sentence = fmt.Sprintf("most of what this epoch asked for came from memory and not from storage: %.0f of %.0f bytes", *st.Memory.Value, sum)
	}
	return &st, nil
}
