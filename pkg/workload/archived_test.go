package workload

import (
	"bytes"
	"errors"
	"testing"
)

// Every workload that is built in must come back from its record as it was.
func TestArchived(t *testing.T) {
	names, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		src, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Load(src, Options{Set: []string{"train.epochs=3"}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Archived(want.Name, want.Source, want.Overrides, want.Canonical)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Digest != want.Digest || got.Source != want.Source || got.Name != want.Name || len(got.Overrides) != 1 || got.Overrides[0] != want.Overrides[0] ||
			!bytes.Equal(got.Canonical, want.Canonical) || len(got.Composed) == 0 {
			t.Errorf("%s: expected %+v\nfound %+v", name, want, got)
		}
	}
	if _, err := Archived("x", "", nil, []byte(`{"train":{}}`)); !errors.Is(err, ErrNotCanonical) {
		t.Errorf("expected ErrNotCanonical, found %v", err)
	}
}
