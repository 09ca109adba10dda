package manifest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

const vectors = "../../testdata/manifest"

var classes = []Class{
	ErrSyntax, ErrCanonical, ErrMediaType, ErrLimit, ErrField, ErrPath, ErrOrder, ErrExclude, ErrHeader, ErrFrame, ErrCount, ErrRoot,
	ErrGroups,
}

// TestVectors reads every file in testdata/manifest. Its head names the class of error that its body must cause, or none.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob(vectors + "/*.txt")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			head, body, ok := bytes.Cut(raw, []byte("\n\n"))
			if !ok {
				t.Fatal("no empty line after the head")
			}
			field := map[string]string{}
			for l := range strings.SplitSeq(string(head), "\n") {
				k, v, _ := strings.Cut(l, ": ")
				field[k] = v
			}
			seen[field["class"]] = true
			if strings.HasPrefix(name, "header-") {
				_, err = ParseHeader(body)
			} else if strings.HasPrefix(name, "groups-") {
				err = readGroupsVector(t, body)
			} else {
				err = readVector(t, field, body)
			}
			var got []string
			for _, c := range classes {
				if errors.Is(err, c) {
					got = append(got, string(c))
				}
			}
			if err == nil {
				got = []string{"none"}
			}
			if len(got) != 1 || got[0] != field["class"] {
				t.Errorf("%s: expected class %s, found %v: %v", field["about"], field["class"], got, err)
			}
		})
	}
	for _, c := range classes {
		if !seen[string(c)] && c != ErrFrame {
			t.Errorf("no vector for class %q", string(c))
		}
	}
}

func readVector(t *testing.T, field map[string]string, body []byte) error {
	num := func(key string) int64 {
		n, err := strconv.ParseInt(field[key], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	h, packed := frameOf(t, body, field["first"], field["last"], num("count"), num("bytes"))
	if x := field["exclude"]; x != "" {
		h.Exclude = strings.Fields(x)
	}
	if r := field["root"]; r != "" {
		h.Root = digest.Digest(r)
	}
	raw, err := h.Encode()
	if err != nil {
		t.Fatalf("the vector's own header: %v", err)
	}
	_, err = pair{raw, packed}.read()
	return err
}
