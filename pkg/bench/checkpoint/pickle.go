package checkpoint

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// entry is one item of the dictionary that a file holds: a tensor, or a dictionary of further entries.
type entry struct {
	key    string
	tensor int // index into the file's tensors, which are numbered in the order of their appearance
	dict   []entry
}

// A pickler writes the data.pkl of a PyTorch archive as Python's pickle module writes it under protocol 2, memo numbers
// included, so that file sizes agree with PyTorch's to the byte.
type pickler struct {
	out  []byte
	next int
	memo map[string]int
}

// pickleState pickles a dictionary of tensors as torch.save does.
func pickleState(state []entry, tensors []Tensor) []byte {
	p := &pickler{memo: map[string]int{}}
	p.out = append(p.out, 0x80, 2) // PROTO 2
	p.dict(state, tensors)
	return append(p.out, '.') // STOP
}

// put memoizes the object just written. Python does so for every string, global, dictionary, tuple and built object.
func (p *pickler) put() {
	if p.next < 256 {
		p.out = append(p.out, 'q', byte(p.next)) // BINPUT
	} else {
		p.out = binary.LittleEndian.AppendUint32(append(p.out, 'r'), uint32(p.next)) // LONG_BINPUT
	}
	p.next++
}

// known refers to an object that was written before.
func (p *pickler) known(name string) bool {
	n, ok := p.memo[name]
	switch {
	case !ok:
		p.memo[name] = p.next
	case n < 256:
		p.out = append(p.out, 'h', byte(n)) // BINGET
	default:
		p.out = binary.LittleEndian.AppendUint32(append(p.out, 'j'), uint32(n)) // LONG_BINGET
	}
	return ok
}

func (p *pickler) freshString(s string) {
	p.out = binary.LittleEndian.AppendUint32(append(p.out, 'X'), uint32(len(s))) // BINUNICODE
	p.out = append(p.out, s...)
	p.put()
}

// literal writes a string that is one object wherever it appears in the Python program.
func (p *pickler) literal(s string) {
	if !p.known("string " + s) {
		p.freshString(s)
	}
}

func (p *pickler) global(module, name string) {
	if !p.known("global " + module + " " + name) {
		p.out = append(p.out, 'c') // GLOBAL
		p.out = append(p.out, module+"\n"+name+"\n"...)
		p.put()
	}
}

func (p *pickler) integer(v int64) {
	switch {
	case v < 1<<8:
		p.out = append(p.out, 'K', byte(v)) // BININT1
	case v < 1<<16:
		p.out = binary.LittleEndian.AppendUint16(append(p.out, 'M'), uint16(v)) // BININT2
	case v < 1<<31:
		p.out = binary.LittleEndian.AppendUint32(append(p.out, 'J'), uint32(v)) // BININT
	default:
		n := bits.Len64(uint64(v))/8 + 1                         // two's complement, shortest form
		p.out = append(p.out, 0x8a, byte(n))                     // LONG1
		full := binary.LittleEndian.AppendUint64(nil, uint64(v)) // n <= 8: v is positive
		p.out = append(p.out, full[:n]...)
	}
}

// batch is the number of items that Python writes before it starts another SETITEMS.
const batch = 1000

func (p *pickler) dict(items []entry, tensors []Tensor) {
	p.out = append(p.out, '}') // EMPTY_DICT
	p.put()
	switch len(items) {
	case 0:
		return
	case 1:
		p.item(items[0], tensors)
		p.out = append(p.out, 's') // SETITEM
		return
	}
	for full := true; full; {
		n := min(len(items), batch)
		p.out = append(p.out, '(') // MARK
		for _, it := range items[:n] {
			p.item(it, tensors)
		}
		p.out = append(p.out, 'u') // SETITEMS
		items, full = items[n:], n == batch
	}
}

func (p *pickler) item(it entry, tensors []Tensor) {
	if _, err := strconv.Atoi(it.key); err == nil {
		p.freshString(it.key) // str(i) makes a new object each time, equal or not
	} else {
		p.literal(it.key)
	}
	if it.dict != nil {
		p.dict(it.dict, tensors)
		return
	}
	p.tensor(it.tensor, tensors[it.tensor])
}

// tensor writes a call of PyTorch's _rebuild_tensor_v2 with a reference to the storage, which lies in a record of its
// own.
func (p *pickler) tensor(index int, t Tensor) {
	p.global("torch._utils", "_rebuild_tensor_v2")
	p.out = append(p.out, '(', '(') // MARK MARK
	p.literal("storage")
	p.global("torch", t.Type.storage)
	p.freshString(strconv.Itoa(index))
	p.literal("cpu")
	p.integer(t.Elements)
	p.out = append(p.out, 't') // TUPLE
	p.put()
	p.out = append(p.out, 'Q') // BINPERSID
	p.integer(0)               // offset in the storage
	p.integer(t.Elements)
	p.out = append(p.out, 0x85) // TUPLE1: the shape
	p.put()
	p.integer(1)
	p.out = append(p.out, 0x85) // TUPLE1: the stride
	p.put()
	p.out = append(p.out, 0x89) // NEWFALSE: requires no gradient
	p.global("collections", "OrderedDict")
	p.out = append(p.out, ')', 'R') // EMPTY_TUPLE REDUCE: no hooks
	p.put()
	p.out = append(p.out, 't') // TUPLE
	p.put()
	p.out = append(p.out, 'R') // REDUCE
	p.put()
}
