package storetest_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/benchpin/benchpin/pkg/store"
	"github.com/benchpin/benchpin/pkg/store/storetest"
)

func TestMemoryContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return storetest.NewMemory() })
}

func TestFaults(t *testing.T) {
	m := storetest.NewMemory()
	data := storetest.Pattern(3, 10_000)
	m.Put("f", data)
	m.Put("g", data)

	s := storetest.FlipBit(m, "f", 8*5000+3)
	got := storetest.Read(t, s, "f")
	got[5000] ^= 8
	if !bytes.Equal(got, data) {
		t.Error("FlipBit changed something else than bit 3 of byte 5000")
	}
	if !bytes.Equal(storetest.Read(t, s, "g"), data) {
		t.Error("FlipBit changed another file")
	}

	f, err := storetest.ShortRead(m, "f", 100).Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.ReadAt(make([]byte, 200), 0); n != 100 || err != io.EOF {
		t.Errorf("ShortRead: %d bytes, %v", n, err)
	}
	if i, _ := f.Info(); i.Size != 10_000 {
		t.Errorf("ShortRead: size %d", i.Size)
	}

	want := errors.New("no luck")
	s = storetest.FailOnce(m, "f", want)
	f, err = s.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err != want {
		t.Errorf("FailOnce, first read: %v", err)
	}
	if !bytes.Equal(storetest.Read(t, s, "f"), data) {
		t.Error("FailOnce, second read differs")
	}

	s = storetest.FailWrites(m, 5, want)
	w, err := s.Create("h", 10)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write(make([]byte, 10)); n != 5 || err != want {
		t.Errorf("FailWrites: %d bytes, %v", n, err)
	}
	if err := w.Commit(); err == nil {
		t.Error("FailWrites: commit succeeded")
	}
}
