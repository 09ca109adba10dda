package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchpin/benchpin/pkg/bench"
	"github.com/benchpin/benchpin/pkg/environment"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/workload"
)

// mapFiles maps all files of the data set for writing.
func (s *swap) mapFiles(t *testing.T) map[string][]byte {
	t.Helper()
	maps := map[string][]byte{}
	for _, name := range s.names {
		path := filepath.Join(s.l.Data(), name)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		m, err := unix.Mmap(int(f.Fd()), 0, len(s.files[name]), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		maps[path] = m
	}
	return maps
}

// TestMappedSwapIsCaught: whoever had the files mapped, with changed pages, before they were verified or looked at is caught too when he
// changes them after that, although such a store leaves the times of a file that was not written back as they are.
func TestMappedSwapIsCaught(t *testing.T) {
	var st unix.Stat_t
	if err := unix.Stat(t.TempDir(), &st); err != nil {
		t.Fatal(err)
	}
	if k := environment.NewMeter(t.TempDir(), uint64(st.Dev)).FileSystem; k != "ext4" && k != "xfs" {
		skipOrFail(t, "CHANGES THROUGH MAPPINGS WERE NOT TRIED: the folder for temporary files is on %s; set TMPDIR to a folder on ext4 or xfs", k)
	}
	const at = 2000 // a byte of the payload
	s := newSwap(t)
	for _, c := range []struct {
		name, mode string
		moment     int
	}{
		{"changed after it was verified", workload.VerifyBefore, 0},
		{"changed while the run reads", workload.VerifyBefore, 1},
		{"changed after a sample was verified", workload.VerifySample, 0},
		{"changed back before it is verified", workload.VerifyAfter, 2},
	} {
		maps := s.mapFiles(t)
		s.ready = func() {
			for _, m := range maps {
				if m[at] ^= 1; c.mode != workload.VerifyAfter {
					m[at] ^= 1 // the page is changed, and its bytes are what they were
				}
			}
			time.Sleep(3 * clockTick) // nothing of it is new when it is looked at
		}
		err := s.run(t, c.mode, c.moment, func(path, _ string, _ os.FileInfo) error {
			maps[path][at] ^= 1
			return nil
		})
		for _, m := range maps {
			_ = unix.Munmap(m)
		}
		var replaced *bench.IdentityError
		var mismatch *manifest.MismatchError
		if !errors.As(err, &replaced) && !errors.As(err, &mismatch) {
			t.Errorf("%s, mode %s: found %v", c.name, c.mode, err)
		}
	}
}
