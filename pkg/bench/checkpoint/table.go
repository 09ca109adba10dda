package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
)

// table builds a sorted table as TensorFlow (and LevelDB, from which it took it) has it: blocks of entries whose keys share prefixes with
// those before, an index of the blocks, and a footer. Nothing is compressed, as in TensorFlow's bundles.
type table struct {
	out     []byte
	block   tableBlock
	index   tableBlock
	last    string // key
	pending []byte // place of the last block, which the index does not have yet
}

const (
	// tableBlockBytes ends a block, and tableRestart is how many entries share prefixes with the one before.
	tableBlockBytes = 256 << 10
	tableRestart    = 16
	tableMagic      = 0xdb4775248b80fb57
	// tableFooter has room for two places of up to 20 bytes each, and the magic number.
	tableFooter = 40
)

func newTable() *table {
	return &table{block: tableBlock{interval: tableRestart}, index: tableBlock{interval: 1}}
}

// add appends an entry. Keys come in their order.
func (t *table) add(key string, value []byte) {
	if t.last != "" && len(key)+len(value) >= 2*tableBlockBytes {
		t.flush()
	}
	if t.pending != nil {
		t.index.add(separator(t.last, key), t.pending)
		t.pending = nil
	}
	t.block.add(key, value)
	t.last = key
	if len(t.block.b)+4*len(t.block.restarts)+4 >= tableBlockBytes {
		t.flush()
	}
}

// flush ends the block.
func (t *table) flush() {
	if len(t.block.b) > 0 {
		t.pending = t.write(&t.block)
	}
}

// write appends a block, not compressed, and returns its place.
func (t *table) write(b *tableBlock) []byte {
	data := b.finish()
	place := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(t.out))), uint64(len(data)))
	t.out = append(append(t.out, data...), 0)
	t.out = binary.LittleEndian.AppendUint32(t.out, masked(crc32.Checksum(t.out[len(t.out)-len(data)-1:], castagnoli())))
	*b = tableBlock{interval: b.interval}
	return place
}

// finish ends the table.
func (t *table) finish() []byte {
	t.flush()
	meta := t.write(&tableBlock{interval: tableRestart}) // of nothing
	if t.pending != nil {
		t.index.add(successor(t.last), t.pending)
	}
	footer := make([]byte, tableFooter)
	copy(footer, append(meta, t.write(&t.index)...))
	return binary.LittleEndian.AppendUint64(append(t.out, footer...), tableMagic)
}

// tableBlock is a block that is being built.
type tableBlock struct {
	interval int
	b        []byte
	restarts []uint32
	since    int // entries since the last restart
	last     string
}

func (b *tableBlock) add(key string, value []byte) {
	shared := 0
	if len(b.restarts) == 0 || b.since >= b.interval {
		b.restarts, b.since = append(b.restarts, uint32(len(b.b))), 0
	} else {
		for shared < min(len(key), len(b.last)) && key[shared] == b.last[shared] {
			shared++
		}
	}
	b.b = binary.AppendUvarint(b.b, uint64(shared))
	b.b = binary.AppendUvarint(b.b, uint64(len(key)-shared))
	b.b = binary.AppendUvarint(b.b, uint64(len(value)))
	b.b = append(append(b.b, key[shared:]...), value...)
	b.last, b.since = key, b.since+1
}

func (b *tableBlock) finish() []byte {
	if len(b.restarts) == 0 {
		b.restarts = []uint32{0}
	}
	out := b.b
	for _, r := range b.restarts {
		out = binary.LittleEndian.AppendUint32(out, r)
	}
	return binary.LittleEndian.AppendUint32(out, uint32(len(b.restarts)))
}

// separator is a short key from a on, and before b.
func separator(a, b string) string {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i < n && a[i] < 0xff && a[i]+1 < b[i] {
		return a[:i] + string([]byte{a[i] + 1})
	}
	return a
}

// successor is a short key from a on.
func successor(a string) string {
	for i := range len(a) {
		if a[i] != 0xff {
			return a[:i] + string([]byte{a[i] + 1})
		}
	}
	return a
}
