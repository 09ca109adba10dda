package oci

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/internal/limits"
)

// sparse makes a file of size bytes that takes no room itself.
func sparse(t testing.TB, path string, size int64) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o666))
	must(t, os.Truncate(path, size))
}

// What cannot belong to an archive must cost its verifier neither time nor room.
func TestNothingIsStagedThatCannotBelong(t *testing.T) {
	const large = limits.MemoryBlobBytes + 1
	l := newLayout()
	dir := l.write(t)
	blobs := filepath.Join(dir, blobsName, "sha256")
	unnamed := strings.Repeat("a", 64)
	sparse(t, filepath.Join(blobs, unnamed), large)
	grown := l.archive.Layers[0].Digest.hex()
	sparse(t, filepath.Join(blobs, grown), large)
	bundle := digestsOf(l.blobs[len(l.blobs)-1]).Hex()
	sparse(t, filepath.Join(blobs, bundle), limits.BundleBytes+1)

	got := read(t, dir)
	if got.copies.file != nil {
		t.Errorf("%d bytes were staged in a file", got.copies.end)
	}
	wantFault(t, dir, fault.FileUnexpected, unnamed, "no readable manifest names this file")
	wantFault(t, dir, fault.SizeMismatch, "a.txt", "expected 1 bytes, found")
	wantFault(t, dir, fault.Limit, "bundle", "at most")
}

// A small file that is damaged is told from a document that lies about its size.
func TestSizesOfSmallBlobs(t *testing.T) {
	l := newLayout()
	dir := l.write(t)
	path := filepath.Join(dir, blobsName, "sha256", l.archive.Layers[0].Digest.hex())
	must(t, os.WriteFile(path, []byte("longer"), 0o666))
	wantFault(t, dir, fault.DigestMismatch, "a.txt", "in 6 bytes")
}

// A full disk is no reason to give no verdict.
func TestNoRoomForStaging(t *testing.T) {
	const size = 64 << 20
	path := filepath.Join(t.TempDir(), "large")
	sparse(t, path, size)
	dir := filepath.Join(t.TempDir(), "archive")
	_, err := Pack(context.Background(), dir, append(layers(), FromFile("large", "application/octet-stream", path)))
	must(t, err)
	// A limit of the process on the size of files fails writes as a full disk does.
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size / 2, Max: was.Max}))
	l, err := Read(context.Background(), dir)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	must(t, err)
	defer func() { must(t, l.Close()) }()
	if len(l.Faults) != 1 || l.Faults[0].Class != fault.Limit || !strings.Contains(l.Faults[0].Error(), "TMPDIR") {
		t.Errorf("found %v", l.Err())
	}
	if l.Layer("large").Blob != nil || l.Layer("record.json").Blob == nil {
		t.Error("expected every layer but the one that there was no room for")
	}
	if info, err := l.copies.file.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("the room was not given back: %v %v", info, err)
	}
}
