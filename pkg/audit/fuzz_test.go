package audit

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// FuzzParseChallenge: nothing makes it panic, and what is accepted has one form.
func FuzzParseChallenge(f *testing.F) {
	m := pinned(f, filled(10, 20, 30))
	f.Add(challenged(f, m, "x", 2))
	f.Add([]byte(`{"schema":"benchpin.audit.challenge/v1","root":"blake3:0","bytes":"1","groups":"1","equal":true,"from":"x","count":1,"chunks":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseChallenge(b)
		if err != nil {
			if !errors.Is(err, ErrDocument) {
				t.Fatal(err)
			}
			return
		}
		again, err := c.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%v: %q is written %q", err, b, again)
		}
		for _, k := range c.Chunks {
			if k.Length() < 1 || k.Length() > ChunkSize || k.Offset() < 0 || k.Offset()+k.Length() > k.Size {
				t.Fatalf("%+v has %d bytes at %d", k, k.Length(), k.Offset())
			}
		}
		c.Assure(0.95)
	})
}

// FuzzCheck: no answer makes checking panic, and none but the right one passes.
func FuzzCheck(f *testing.F) {
	data := filled(10, 20, 30, 70)
	m := pinned(f, data)
	challenge := challenged(f, m, "x", 3)
	right := map[Form][]byte{}
	for _, form := range []Form{Bytes, Digests} {
		right[form] = answered(f, challenge, m, data, form)
		f.Add(right[form])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Check(context.Background(), challenge, bytes.NewReader(b), CheckOptions{Root: m.Root(), Maker: data, Manifest: m})
		if err == nil && r.OK() && !bytes.Equal(b, right[r.Form]) {
			t.Fatalf("another answer passes: %q", b)
		}
	})
}
