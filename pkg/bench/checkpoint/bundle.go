package checkpoint

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
)

// TensorFlow's form of a checkpoint ("bundle", version 2) is two files: NAME.data-00000-of-00001, the tensors one after the other and
// nothing between them, and NAME.index, a sorted table from their names to their places and checksums. Names are those that
// tf.train.Checkpoint(**state).save gives them: the path of the objects that hold a variable, a fixed suffix, and beside them a counter of
// saves and the graph of the objects. No field holds a time, so content alone decides the bytes.
const (
	bundleData  = "-1.data-00000-of-00001"
	bundleIndex = "-1.index"
	// variableKey ends the name of every variable.
	variableKey   = "/.ATTRIBUTES/VARIABLE_VALUE"
	variableValue = "VARIABLE_VALUE"
	// counterName is the variable that counts saves. The object is new in each, so it is 1.
	counterName = "save_counter"
	graphKey    = "_CHECKPOINTABLE_OBJECT_GRAPH"
	// fullName is what TensorFlow calls a variable that was given no name.
	fullName = "Variable"
)

// TensorFlow's numbers of element types.
const (
	tfString = 7
	tfInt64  = 9
)

// bundleEntry is one tensor in a bundle's index.
type bundleEntry struct {
	key    string
	record int // of the data file
	dtype  int64
	shape  []int64 // empty for a single number or text
}

// newBundle lays out the two files of a dictionary of tensors. The checksums in the index are those that producing the data gives.
func newBundle(state []entry, tensors []Tensor) (data, index *archive) {
	data = &archive{tensors: tensors, raw: true}
	var entries []bundleEntry
	add := func(key string, dtype int64, shape []int64, r record) {
		entries = append(entries, bundleEntry{key: key, record: len(data.records), dtype: dtype, shape: shape})
		r.name = key
		r.head, r.start = data.directory, data.directory
		data.directory += r.size
		data.records = append(data.records, r)
	}
	for i, t := range tensors {
		add(t.Name+variableKey, t.Type.tensorflow, []int64{t.Elements}, record{tensor: i, size: t.Bytes()})
	}
	add(counterName+variableKey, tfInt64, nil, fixedRecord(binary.LittleEndian.AppendUint64(nil, 1)))
	graph, sum := stringTensor(objectGraph(state, tensors))
	add(graphKey, tfString, nil, record{tensor: -1, data: graph, size: int64(len(graph)), sum: sum})
	data.size = data.directory

	slices.SortFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.key, b.key) })
	index = &archive{index: func(crcs []uint32) []byte { return bundleTable(entries, data.records, crcs) }}
	index.size = int64(len(index.index(make([]uint32, len(data.records)))))
	return data, index
}

// fixedRecord is a record of bytes that are known, and so is their checksum.
func fixedRecord(b []byte) record {
	return record{tensor: -1, data: b, size: int64(len(b)), sum: crc32.Checksum(b, castagnoli())}
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // the same table each time

// masked is how TensorFlow stores a checksum: rotated, so that the checksum of bytes that hold checksums is a good one.
func masked(crc uint32) uint32 { return crc>>15 | crc<<17 + 0xa282ead8 }

// stringTensor is a tensor of one text: its length, the checksum of the length as a number of 32 bits, and the text. The tensor's own checksum
// is over the same, the length as a number.
func stringTensor(text []byte) (b []byte, sum uint32) {
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	check := binary.LittleEndian.AppendUint32(nil, masked(crc32.Checksum(length, castagnoli())))
	b = append(append(binary.AppendUvarint(nil, uint64(len(text))), check...), text...)
	return b, crc32.Checksum(slices.Concat(length, check, text), castagnoli())
}

// bundleTable is the index, given the checksum of each record.
func bundleTable(entries []bundleEntry, records []record, crcs []uint32) []byte {
	t := newTable()
	var header proto
	header.number(1, 1) // data files
	header.message(3, func(p *proto) { p.number(1, 1) })
	t.add("", header.b)
	for _, e := range entries {
		r := &records[e.record]
		var p proto
		p.number(1, e.dtype)
		p.message(2, func(p *proto) {
			for _, d := range e.shape {
				p.message(2, func(p *proto) { p.number(1, d) })
			}
		})
		p.number(4, r.start)
		p.number(5, r.size)
		p.fixed32(6, masked(crcs[e.record]))
		t.add(e.key, p.b)
	}
	return t.finish()
}

// objectGraph is the description of the objects: the root, which has the dictionary's items and the counter, then all that they hold,
// breadth first.
func objectGraph(state []entry, tensors []Tensor) []byte {
	type object struct {
		key   string // in the object that holds it
		items []*object
		full  string // name of a variable
		ref   string // its key in the bundle
	}
	var objectOf func(e entry) *object
	objectOf = func(e entry) *object {
		o := &object{key: e.key}
		if e.dict == nil {
			o.full, o.ref = fullName, tensors[e.tensor].Name+variableKey
			return o
		}
		for _, item := range e.dict {
			o.items = append(o.items, objectOf(item))
		}
		return o
	}
	root := &object{}
	for _, e := range state {
		root.items = append(root.items, objectOf(e))
	}
	// The root's items are sorted, as tf.train.Checkpoint sorts its arguments.
	slices.SortStableFunc(root.items, func(a, b *object) int { return strings.Compare(a.key, b.key) })
	root.items = append(root.items, &object{key: counterName, full: counterName, ref: counterName + variableKey})
	var p proto
	next := int64(1)
	for queue := []*object{root}; len(queue) > 0; queue = queue[1:] {
		o := queue[0]
		p.message(1, func(p *proto) {
			for _, item := range o.items {
				p.message(1, func(p *proto) {
					p.number(1, next)
					p.text(2, item.key)
				})
				next++
			}
			if o.ref != "" {
				p.message(2, func(p *proto) {
					p.text(1, variableValue)
					p.text(2, o.full)
					p.text(3, o.ref)
				})
			}
			p.message(5, func(p *proto) { p.number(1, 1) }) // it, or something below it, has a value
		})
		queue = append(queue, o.items...)
	}
	return p.b
}

// proto writes messages of protocol buffers.
type proto struct{ b []byte }

// number writes a number, unless it is 0, which is what its absence means.
func (p *proto) number(field int, v int64) {
	if v != 0 {
		p.b = binary.AppendUvarint(binary.AppendUvarint(p.b, uint64(field)<<3), uint64(v))
	}
}

// fixed32 writes a number in four bytes, 0 too: the length of what is written does not depend on it.
func (p *proto) fixed32(field int, v uint32) {
	p.b = binary.LittleEndian.AppendUint32(binary.AppendUvarint(p.b, uint64(field)<<3|5), v)
}

func (p *proto) text(field int, s string) {
	p.b = append(binary.AppendUvarint(binary.AppendUvarint(p.b, uint64(field)<<3|2), uint64(len(s))), s...)
}

func (p *proto) message(field int, write func(*proto)) {
	var inner proto
	write(&inner)
	p.text(field, string(inner.b))
}
