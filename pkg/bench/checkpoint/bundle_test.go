package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/benchpin/benchpin/pkg/store"
)

// The reader below is written from the descriptions of the format (LevelDB's table, TensorFlow's tensor_bundle.proto and
// trackable_object_graph.proto), with a library's wire format, and shares nothing with the writer.

// crcTF is the masked CRC-32C of bytes.
func crcTF(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}

// readBlock returns the entries of the block at a place (offset, size in varints), with the blocks' own checks.
func readBlock(file, place []byte) (entries [][2]string, rest []byte, err error) {
	off, n := binary.Uvarint(place)
	size, m := binary.Uvarint(place[max(n, 0):])
	if n <= 0 || m <= 0 || off+size+5 > uint64(len(file)) {
		return nil, nil, fmt.Errorf("a block of %d bytes at %d", size, off)
	}
	b := file[off : off+size]
	switch {
	case file[off+size] != 0:
		return nil, nil, fmt.Errorf("compression %d", file[off+size])
	case binary.LittleEndian.Uint32(file[off+size+1:]) != crcTF(file[off:off+size+1]):
		return nil, nil, errors.New("checksum of a block")
	}
	restarts := int(binary.LittleEndian.Uint32(b[len(b)-4:]))
	end := len(b) - 4 - 4*restarts
	var starts []int
	key := ""
	for at := 0; at < end; {
		starts = append(starts, at)
		var v [3]uint64
		for i := range v {
			x, n := binary.Uvarint(b[at:end])
			if n <= 0 {
				return nil, nil, errors.New("an entry's head")
			}
			v[i], at = x, at+n
		}
		if v[0] > uint64(len(key)) || uint64(at)+v[1]+v[2] > uint64(end) {
			return nil, nil, errors.New("an entry's lengths")
		}
		key = key[:v[0]] + string(b[at:at+int(v[1])])
		at += int(v[1])
		entries = append(entries, [2]string{key, string(b[at : at+int(v[2])])})
		at += int(v[2])
	}
	// Keys from which a reader may begin are whole.
	for i := range restarts {
		r := int(binary.LittleEndian.Uint32(b[end+4*i:]))
		if len(entries) == 0 && r == 0 {
			continue
		}
		if !slices.Contains(starts, r) || b[r] != 0 {
			return nil, nil, fmt.Errorf("restart at %d", r)
		}
	}
	return entries, place[n+m:], nil
}

// readTable returns all entries of a table.
func readTable(file []byte) (all [][2]string, blocks int, err error) {
	if len(file) < 48 || binary.LittleEndian.Uint64(file[len(file)-8:]) != 0xdb4775248b80fb57 {
		return nil, 0, errors.New("no table's magic number")
	}
	footer := file[len(file)-48:]
	meta, footer, err := readBlock(file, footer)
	if err != nil || len(meta) != 0 {
		return nil, 0, fmt.Errorf("metaindex: %v, %w", meta, err)
	}
	index, _, err := readBlock(file, footer)
	if err != nil {
		return nil, 0, fmt.Errorf("index: %w", err)
	}
	for _, e := range index {
		block, _, err := readBlock(file, []byte(e[1]))
		if err != nil {
			return nil, 0, err
		}
		for _, b := range block {
			if len(all) > 0 && b[0] <= all[len(all)-1][0] || b[0] > e[0] {
				return nil, 0, fmt.Errorf("key %q is out of order, or beyond %q", b[0], e[0])
			}
			all = append(all, b)
		}
	}
	return all, len(index), nil
}

// fields are those of a message: numbers, and bytes, by their number.
type fields struct {
	numbers map[protowire.Number]uint64
	bytes   map[protowire.Number][][]byte
}

func parseProto(b []byte) (f fields, err error) {
	f = fields{map[protowire.Number]uint64{}, map[protowire.Number][][]byte{}}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return f, protowire.ParseError(n)
		}
		b = b[n:]
		switch typ {
		case protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			f.numbers[num] = v
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.numbers[num] = uint64(v)
		case protowire.BytesType:
			var v []byte
			v, n = protowire.ConsumeBytes(b)
			f.bytes[num] = append(f.bytes[num], v)
		default:
			return f, fmt.Errorf("wire type %d", typ)
		}
		if n < 0 {
			return f, protowire.ParseError(n)
		}
		b = b[n:]
	}
	return f, nil
}

// readTensor is a tensor of a bundle.
type readTensor struct {
	dtype  uint64
	shape  []uint64
	data   []byte
	offset uint64
}

// readBundle reads a bundle and checks everything that TensorFlow's reader checks.
func readBundle(index, data []byte) (map[string]readTensor, error) {
	entries, _, err := readTable(index)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 || entries[0][0] != "" {
		return nil, errors.New("the first entry is not the header")
	}
	h, err := parseProto([]byte(entries[0][1]))
	if err != nil || h.numbers[1] != 1 || h.numbers[2] != 0 || len(h.bytes[3]) != 1 {
		return nil, fmt.Errorf("header %+v, %w", h, err)
	}
	if v, err := parseProto(h.bytes[3][0]); err != nil || v.numbers[1] != 1 || v.numbers[2] > 1 {
		return nil, fmt.Errorf("version %+v, %w", v, err)
	}
	all := map[string]readTensor{}
	for _, e := range entries[1:] {
		f, err := parseProto([]byte(e[1]))
		if err != nil || len(f.bytes[2]) != 1 || f.numbers[3] != 0 || len(f.bytes[7]) > 0 {
			return nil, fmt.Errorf("entry %q: %+v, %w", e[0], f, err)
		}
		t := readTensor{dtype: f.numbers[1], offset: f.numbers[4]}
		s, err := parseProto(f.bytes[2][0])
		if err != nil {
			return nil, err
		}
		elements := uint64(1)
		for _, d := range s.bytes[2] {
			dim, err := parseProto(d)
			if err != nil {
				return nil, err
			}
			t.shape = append(t.shape, dim.numbers[1])
			elements *= dim.numbers[1]
		}
		size := f.numbers[5]
		if t.offset+size > uint64(len(data)) {
			return nil, fmt.Errorf("%q: %d bytes at %d of %d", e[0], size, t.offset, len(data))
		}
		t.data = data[t.offset : t.offset+size]
		sum := crcTF(t.data)
		if t.dtype == 7 { // a text: its length, a checksum of it, and the bytes
			n, k := binary.Uvarint(t.data)
			length := binary.LittleEndian.AppendUint32(nil, uint32(n))
			if got := binary.LittleEndian.Uint32(t.data[k:]); got != crcTF(length) || uint64(len(t.data)) != uint64(k)+4+n || len(t.shape) > 0 {
				return nil, fmt.Errorf("%q: a text of %d bytes", e[0], n)
			}
			sum = crcTF(slices.Concat(length, t.data[k:]))
			t.data = t.data[k+4:]
		} else if width := map[uint64]uint64{1: 4, 2: 8, 4: 1, 6: 1, 9: 8, 14: 2, 19: 2}[t.dtype]; size != width*elements {
			return nil, fmt.Errorf("%q: %d bytes of %d elements of type %d", e[0], size, elements, t.dtype)
		}
		if uint64(sum) != f.numbers[6] {
			return nil, fmt.Errorf("%q: checksum %08x, expected %08x", e[0], f.numbers[6], sum)
		}
		all[e[0]] = t
	}
	return all, nil
}

// readGraph walks the graph of objects and returns the path of each variable with its key, as tf.train.Checkpoint finds them.
func readGraph(b []byte) (map[string]string, error) {
	g, err := parseProto(b)
	if err != nil {
		return nil, err
	}
	found, seen := map[string]string{}, map[uint64]bool{}
	var walk func(id uint64, path string) error
	walk = func(id uint64, path string) error {
		if id >= uint64(len(g.bytes[1])) || seen[id] {
			return fmt.Errorf("%s: object %d", path, id)
		}
		seen[id] = true
		o, err := parseProto(g.bytes[1][id])
		if err != nil {
			return err
		}
		for _, a := range o.bytes[2] {
			v, err := parseProto(a)
			if err != nil || string(v.bytes[1][0]) != "VARIABLE_VALUE" {
				return fmt.Errorf("%s: attribute %+v, %w", path, v, err)
			}
			found[path] = string(v.bytes[3][0])
		}
		for _, c := range o.bytes[1] {
			v, err := parseProto(c)
			if err != nil {
				return err
			}
			if err := walk(v.numbers[1], strings.TrimPrefix(path+"/"+string(v.bytes[2][0]), "/")); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(0, ""); err != nil {
		return nil, err
	}
	if len(seen) != len(g.bytes[1]) {
		return nil, fmt.Errorf("%d objects, of which %d are reached", len(g.bytes[1]), len(seen))
	}
	return found, nil
}

// bundleConfigs are states of every kind.
func bundleConfigs() map[string]Config {
	tiny := Transformer{Vocabulary: 100, Hidden: 64, FFN: 96, Heads: 4, KVHeads: 2}
	return map[string]Config{
		"fixed": {Ranks: 2, ModelSizeBytes: 10240, ZeroStage: 1, OptimizationGroups: []int64{3000, 5}},
		"layers in one file": {Ranks: 2, ModelSizeBytes: 1, NumLayers: 30, LayerParameters: []int64{700, 3}, ZeroStage: 1,
			OptimizationGroups: []int64{12}},
		"a file a layer": {Ranks: 4, NumLayers: 4, Transformer: tiny, Pipeline: 2, Tensor: 2, ZeroStage: 1, ModelType: "transformer",
			ModelDatatype: "bf16", OptimizerDatatype: "fp32"},
		"zero 3": {Ranks: 2, NumLayers: 12, Transformer: tiny, ZeroStage: 3, ModelType: "transformer", ModelDatatype: "fp16", OptimizerDatatype: "fp64"},
		"zero 0": {Ranks: 1, NumLayers: 2, Transformer: tiny, ModelType: "transformer", ModelDatatype: "uint8", OptimizerDatatype: "int8"},
		"large":  {Ranks: 1, ModelSizeBytes: 9<<20 + 77},
	}
}

func bundlePlan(t testing.TB, c Config) *Plan {
	t.Helper()
	c.Framework, c.Bundles, c.Seed = "tensorflow", true, 5
	p, err := NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBundles saves states of every kind in TensorFlow's form, reads them with an independent reader, and finds the tensors that PyTorch's files
// of the same state hold, under the paths of the dictionary.
func TestBundles(t *testing.T) {
	for name, cfg := range bundleConfigs() {
		t.Run(name, func(t *testing.T) {
			plan, dir := bundlePlan(t, cfg), t.TempDir()
			cfg.Framework, cfg.Seed = "pytorch", 5
			torch, err := NewPlan(cfg)
			if err != nil {
				t.Fatal(err)
			}
			st, err := store.NewFolder(dir, store.FolderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			pt := Point{Number: 3, Epoch: 1, Step: 250}
			w := NewWriter(plan, st)
			for rank := range cfg.Ranks {
				saved, err := w.Save(t.Context(), pt, rank)
				if err != nil {
					t.Fatal(err)
				}
				expected, err := plan.Expect(t.Context(), pt, rank)
				if err != nil || len(expected) != len(saved.Files) {
					t.Fatalf("%d files, %d expected, %v", len(saved.Files), len(expected), err)
				}
				for i, f := range saved.Files {
					if f.FileSum != expected[i] {
						t.Errorf("%s: %+v, expected %+v", f.Path, f.FileSum, expected[i])
					}
				}
				files, others := plan.Files(rank), torch.Files(rank)
				if len(files) != 2*len(others) {
					t.Fatalf("%d files where PyTorch has %d", len(files), len(others))
				}
				for i := range others {
					checkBundle(t, filepath.Join(dir, pt.Name()), torch, pt, rank, files[2*i], files[2*i+1], others[i])
				}
				if err := plan.Verify(t.Context(), st, pt, rank); err != nil {
					t.Error(err)
				}
				for _, compare := range []bool{true, false} {
					if _, err := NewReader(plan, st, compare).Load(t.Context(), pt, rank); err != nil {
						t.Error(err)
					}
				}
				if err := plan.Own(st, pt, rank); err != nil {
					t.Error(err)
				}
			}
			if plan.PayloadPerCheckpoint() != torch.PayloadPerCheckpoint() || plan.DLIOBytes() != torch.DLIOBytes() || w.Written() != plan.BytesPerCheckpoint() {
				t.Errorf("payload %d, %d; DLIO %d, %d; written %d of %d", plan.PayloadPerCheckpoint(), torch.PayloadPerCheckpoint(), plan.DLIOBytes(),
					torch.DLIOBytes(), w.Written(), plan.BytesPerCheckpoint())
			}
		})
	}
}

func checkBundle(t *testing.T, dir string, torch *Plan, pt Point, rank int, data, index, other File) {
	t.Helper()
	stem := strings.TrimSuffix(other.Name, ".pt") + ".pb-1"
	if data.Name != stem+".data-00000-of-00001" || index.Name != stem+".index" {
		t.Errorf("files %s and %s", data.Name, index.Name)
	}
	read := func(f File) []byte {
		b, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil || int64(len(b)) != f.Size {
			t.Fatalf("%s: %d bytes of %d, %v", f.Name, len(b), f.Size, err)
		}
		return b
	}
	d := read(data)
	found, err := readBundle(read(index), d)
	if err != nil {
		t.Fatalf("%s: %v", index.Name, err)
	}
	paths, err := readGraph(found["_CHECKPOINTABLE_OBJECT_GRAPH"].data)
	if err != nil {
		t.Fatalf("%s: %v", index.Name, err)
	}
	if c := found[paths["save_counter"]]; c.dtype != 9 || len(c.shape) > 0 || !bytes.Equal(c.data, []byte{1, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("%s: counter %+v", index.Name, c)
	}
	if len(paths) != len(other.Tensors)+1 || len(found) != len(paths)+1 {
		t.Errorf("%s: %d variables, %d tensors", index.Name, len(paths), len(found))
	}
	covered := uint64(0)
	for _, f := range found {
		covered += uint64(len(f.data))
	}
	content := torch.content(pt.Number, rank, &other)
	for i, want := range other.Tensors {
		path := want.Name
		if path == "model_states" {
			path = "a"
		}
		got, ok := found[paths[path]]
		if !ok || paths[path] != path+"/.ATTRIBUTES/VARIABLE_VALUE" {
			t.Fatalf("%s: no variable %s: %q", index.Name, path, paths[path])
		}
		b := make([]byte, want.Bytes())
		content(b, i, 0)
		if !bytes.Equal(got.data, b) || len(got.shape) != 1 || got.shape[0] != uint64(want.Elements) {
			t.Errorf("%s: %s of %v, %d bytes, is not the tensor of PyTorch's file", index.Name, path, got.shape, len(got.data))
		}
	}
	if overhead := uint64(len(d)) - covered; overhead > 16 {
		t.Errorf("%s: %d bytes that belong to no tensor", data.Name, overhead)
	}
}

// TestBundleDamage: every byte of both files is compared, and a foreign bundle is none of ours.
func TestBundleDamage(t *testing.T) {
	plan, dir := bundlePlan(t, bundleConfigs()["fixed"]), t.TempDir()
	st, err := store.NewFolder(dir, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	pt := Point{Number: 1, Epoch: 1, Step: 1}
	if _, err := NewWriter(plan, st).Save(t.Context(), pt, 0); err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files(0) {
		path := filepath.Join(dir, pt.Name(), f.Name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(good); i += 1 + len(good)/300 {
			bad := bytes.Clone(good)
			bad[i] ^= 1
			if err := os.WriteFile(path, bad, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := NewReader(plan, st, true).Load(t.Context(), pt, 0)
			var differs *DifferError
			if !errors.As(err, &differs) || differs.Offset != int64(i) || !strings.HasSuffix(differs.Path, f.Name) || differs.Part == "" {
				t.Fatalf("%s, byte %d: %v", f.Name, i, err)
			}
			if err := plan.Verify(t.Context(), st, pt, 0); !errors.Is(err, ErrDiffers) {
				t.Fatalf("%s, byte %d: %v", f.Name, i, err)
			}
		}
		if err := os.WriteFile(path, good, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBundleTable: tables of many blocks, with keys that share much and little, hold what was put in.
func TestBundleTable(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 33, 20000} {
		tb := newTable()
		var want [][2]string
		for i := range n {
			e := [2]string{fmt.Sprintf("layer/%06d/%s", i, strings.Repeat("x", i%7)), strings.Repeat("v", i%61)}
			if i == 0 {
				e[0] = ""
			}
			want = append(want, e)
			tb.add(e[0], []byte(e[1]))
		}
		got, blocks, err := readTable(tb.finish())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d entries: %d read, %v", n, len(got), err)
		}
		if n == 20000 && blocks < 2 {
			t.Errorf("%d entries in %d block", n, blocks)
		}
	}
	for _, c := range [][3]string{{"abc", "abd", "abc"}, {"abc", "abe", "abd"}, {"ab", "abc", "ab"}, {"a\xff", "b", "a\xff"}, {"a1", "c", "b"}} {
		if got := separator(c[0], c[1]); got != c[2] || got < c[0] || got >= c[1] {
			t.Errorf("between %q and %q: %q", c[0], c[1], got)
		}
	}
	for a, want := range map[string]string{"abc": "b", "\xff\xff": "\xff\xff", "\xffa": "\xffb"} {
		if got := successor(a); got != want {
			t.Errorf("after %q: %q", a, got)
		}
	}
}

// TestBundleGolden: the bytes never change.
func TestBundleGolden(t *testing.T) {
	plan := bundlePlan(t, bundleConfigs()["fixed"])
	var got []string
	sums, err := plan.Expect(t.Context(), Point{Number: 1, Epoch: 1, Step: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sums {
		got = append(got, fmt.Sprintf("%s %d %x", s.Path, s.Size, s.Digest[:8]))
	}
	want := []string{
		"global_epoch1_step1/model_states-1.pb-1.data-00000-of-00001 10428 a6904979f3912d1a",
		"global_epoch1_step1/model_states-1.pb-1.index 253 7fa5399985120d55",
		"global_epoch1_step1/zero_pp_rank_1_mp_rank_0_optim_states.pb-1.data-00000-of-00001 9535 a0dd5aaa433ad09c",
		"global_epoch1_step1/zero_pp_rank_1_mp_rank_0_optim_states.pb-1.index 464 1406bdb0c9092a97",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %s", strings.Join(got, "\n"))
	}
}

// TestTensorFlowReadsBundles lets TensorFlow, where there is one, restore what was saved.
func TestTensorFlowReadsBundles(t *testing.T) {
	if err := exec.Command("python3", "-c", "import tensorflow").Run(); err != nil {
		t.Skip("no tensorflow for python3 (Debian has no package of it); the reader of this test stands in for it")
	}
	plan, dir := bundlePlan(t, bundleConfigs()["fixed"]), t.TempDir()
	st, err := store.NewFolder(dir, store.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	pt := Point{Number: 1, Epoch: 1, Step: 1}
	if _, err := NewWriter(plan, st).Save(t.Context(), pt, 0); err != nil {
		t.Fatal(err)
	}
	const script = `
import sys, tensorflow as tf
v = tf.Variable(tf.zeros([10240], tf.int8), trainable=False)
tf.train.Checkpoint(a=v).restore(sys.argv[1]).assert_consumed()
sys.stdout.buffer.write(v.numpy().tobytes())
`
	out, err := exec.Command("python3", "-c", script, filepath.Join(dir, pt.Name(), "model_states-0.pb-1")).Output()
	if err != nil {
		t.Fatal(err)
	}
	f := plan.Files(0)[0]
	want := make([]byte, 10240)
	plan.content(1, 0, &f)(want, 0, 0)
	if !bytes.Equal(out, want) {
		t.Error("TensorFlow restored other values")
	}
}
