package attest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// leaves calls do with the document, each of its leaves altered in turn.
func leaves(t testing.TB, raw []byte, do func(where string, altered []byte)) (n int) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root any
	must(t, d.Decode(&root))
	emit := func(where string) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		must(t, e.Encode(root))
		n++
		do(where, bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	}
	var walk func(where string, v any, set func(any))
	walk = func(where string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(where+"."+key, v[key], func(x any) { v[key] = x })
			}
			return
		case []any:
			for i := range v {
				walk(fmt.Sprintf("%s[%d]", where, i), v[i], func(x any) { v[i] = x })
			}
			return
		case string:
			set(v + "0")
		case json.Number:
			set(json.Number("1" + strings.TrimPrefix(string(v), "-")))
		case bool:
			set(!v)
		case nil:
			set("x")
		}
		emit(where)
		set(v)
	}
	walk("", root, func(x any) { root = x })
	return n
}

// TestVectorsEveryLeaf alters every leaf of every bundle, of every statement without the key, of every predicate with the key, of the record
// and of the layout's documents: the good archive must never stand with it.
func TestVectorsEveryLeaf(t *testing.T) {
	good := readArchiveVector(t, goodArchive)
	a := &alteration{t: t, key: seededKey(t, archiveVectorsSeed), good: good.Files}
	keys := []attest.PublicKey{a.key.Public()}
	dir := layOut(t, good.Files)
	bundles, _ := archiveParts(t, dir)
	count := map[string]int{}
	for kind, raw := range bundles {
		count["bundles"] += leaves(t, raw, func(where string, altered []byte) {
			if _, err := attest.VerifyBundle(altered, keys); err == nil {
				t.Errorf("%s: bundle accepted with another %s", kind, where)
			}
		})
		v, err := attest.VerifyBundle(raw, keys)
		must(t, err)
		var envelope struct {
			DSSEEnvelope struct {
				Payload []byte `json:"payload"`
			} `json:"dsseEnvelope"`
		}
		must(t, json.Unmarshal(raw, &envelope))
		count["statements"] += leaves(t, envelope.DSSEEnvelope.Payload, func(where string, altered []byte) {
			text := strings.Replace(string(raw), jsonText(t, envelope.DSSEEnvelope.Payload), jsonText(t, altered), 1)
			if _, err := attest.VerifyBundle([]byte(text), keys); !errors.Is(err, fault.BadSignature) {
				t.Errorf("%s: statement with another %s: %v", kind, where, err)
			}
		})
		count["predicates, signed"] += leaves(t, v.Statement.Predicate, func(where string, altered []byte) {
			f := takeApart(t, dir)
			f.sign = true
			f.statement = func(s *attest.Statement) {
				if s.PredicateType == kind {
					s.Predicate = altered
				}
			}
			refused(t, f.putTogether(t, a.key), keys[0], kind+where, "predicates", fault.PredicateMismatch)
		})
	}
	f := takeApart(t, dir)
	count["record"] = leaves(t, f.content(t, attest.TitleRecord), func(where string, altered []byte) {
		f := takeApart(t, dir)
		f.set(attest.TitleRecord, altered)
		refused(t, f.putTogether(t, a.key), keys[0], "record"+where, "subjects", fault.SubjectDigest)
	})
	count["index"] = leaves(t, good.Files["index.json"], func(where string, altered []byte) {
		v := a.files(func(c map[string][]byte) { c["index.json"] = altered })
		if v.verify(t, good.Files).OK() {
			t.Errorf("index accepted with another %s", where)
		}
	})
	for what, n := range count {
		if n < 15 {
			t.Errorf("only %d leaves of %s", n, what)
		}
	}
	t.Logf("leaves altered: %v", count)
}

// jsonText is how bytes stand in JSON.
func jsonText(t testing.TB, b []byte) string {
	t.Helper()
	raw, err := json.Marshal(b)
	must(t, err)
	return string(raw)
}

// refused is wantFault where a class of a single check is wanted, for verdicts of which there are many.
func refused(t testing.TB, dir string, key attest.PublicKey, what, check string, class fault.Class) {
	t.Helper()
	v, err := attest.VerifyArchive(context.Background(), dir, []attest.PublicKey{key}, attest.Policy{})
	must(t, err)
	defer v.Close()
	must(t, os.RemoveAll(dir))
	for _, c := range v.Checks {
		if c.Name == check && slices.ContainsFunc(c.Faults, func(f *fault.Fault) bool { return f.Class == class }) && !v.OK() {
			return
		}
	}
	t.Errorf("%s: expected %s in check %s, found:\n%s", what, class, check, describe(v))
}
