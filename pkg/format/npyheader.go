package format

import (
	"encoding/binary"
	"math"
	"strconv"
)

const (
	npyMagic    = "\x93NUMPY"
	npyPreamble = len(npyMagic) + 2 + 2 // magic, version 1.0, length of the header
	npyAlign    = 64
	npyGrowth   = 21 // numpy leaves room for the first dimension to grow to this many digits

	// npyMaxHeader is the longest header text that numpy.load reads without being told to trust the file.
	npyMaxHeader = 10_000
)

// appendNPYHeader appends the header that numpy (1.23 and later) writes for a C-ordered array. It takes version 1.0,
// which numpy leaves only for headers over 64 KiB: 32 dimensions cannot reach that.
func appendNPYHeader(p []byte, descr string, shape []int) []byte {
	start := len(p)
	p = append(p, npyMagic...)
	p = append(p, 1, 0, 0, 0)
	p = append(p, "{'descr': '"...)
	p = append(p, descr...)
	p = append(p, "', 'fortran_order': False, 'shape': ("...)
	for i, d := range shape {
		if i > 0 {
			p = append(p, ' ')
		}
		p = strconv.AppendInt(p, int64(d), 10)
		if i < len(shape)-1 || len(shape) == 1 {
			p = append(p, ',')
		}
	}
	p = append(p, "), }"...)
	spaces := npyGrowth - len(strconv.Itoa(shape[0]))
	// numpy pads to a multiple of 64 including the newline, with a full 64 spaces where none would be needed.
	spaces += npyAlign - (len(p)-start+spaces+1)%npyAlign
	for range spaces {
		p = append(p, ' ')
	}
	p = append(p, '\n')
	binary.LittleEndian.PutUint16(p[start+npyPreamble-2:], uint16(len(p)-start-npyPreamble))
	return p
}

// npyHeader is what an array's header says, as far as reading one sample needs it.
type npyHeader struct {
	length  int64 // bytes before the payload
	payload int64 // bytes of all elements
	samples int64 // last dimension
	first   int64 // first dimension
	// opaque: the elements are not plain numbers, so that payload is unknown. Only foreign headers may be.
	opaque bool
}

// sampleBytes returns the bytes of one of the samples; there must be at least one.
func (h npyHeader) sampleBytes() int64 { return h.payload / h.samples }

// source is a stream of bytes that a header is parsed from.
type source interface {
	take(n int) ([]byte, error) // next n bytes, valid until the next call; n is at most npyMaxHeader
	problem(text string) error  // a DataError at the position just taken
}

// readNPYHeader parses the header at the start of an .npy file of any version.
func readNPYHeader(src source) (npyHeader, error) { return npyHeaderOf(src, false) }

// npyHeaderOf is readNPYHeader; of a foreign array any type of elements and any shape is taken.
func npyHeaderOf(src source, foreign bool) (npyHeader, error) {
	p, err := src.take(npyPreamble)
	if err != nil {
		return npyHeader{}, err
	}
	if string(p[:len(npyMagic)]) != npyMagic {
		return npyHeader{}, src.problem("not an array: the first bytes are not \\x93NUMPY")
	}
	length, total := int64(binary.LittleEndian.Uint16(p[8:])), int64(npyPreamble)
	switch major := p[6]; {
	case p[7] != 0 || major < 1 || major > 3:
		return npyHeader{}, src.problem("array header of unknown version; 1.0, 2.0 and 3.0 are known")
	case major > 1:
		if p, err = src.take(2); err != nil {
			return npyHeader{}, err
		}
		length |= int64(binary.LittleEndian.Uint16(p)) << 16
		total += 2
	}
	if length > npyMaxHeader {
		return npyHeader{}, src.problem("array header of more than 10000 bytes, which numpy does not load either")
	}
	if p, err = src.take(int(length)); err != nil {
		return npyHeader{}, err
	}
	h := npyHeader{length: total + length}
	if text := h.parse(p, foreign); text != "" {
		return npyHeader{}, src.problem(text)
	}
	return h, nil
}

// parse reads the header's text, a Python dictionary of exactly three entries, and returns what is wrong with it.
func (h *npyHeader) parse(text []byte, foreign bool) string {
	d := dict{text: text}
	var seen [3]bool
	var item, elements int64
	if !d.eat('{') {
		return "array header is not a dictionary"
	}
	for !d.eat('}') {
		key, ok := d.quoted()
		if !ok || !d.eat(':') {
			return "array header: expected 'name': value"
		}
		var which int
		switch string(key) {
		case "descr":
			which = 0
			if start := d.at; foreign {
				if item, ok = d.elementSize(); !ok {
					d.at, h.opaque = start, true
					ok = d.value()
				}
			} else {
				item, ok = d.elementSize()
			}
			if !ok {
				return "array header: the element type is not one of numpy's plain numbers"
			}
		case "fortran_order":
			which = 1
			if !d.word("False") && !d.word("True") {
				return "array header: fortran_order is neither True nor False"
			}
		case "shape":
			which = 2
			if elements, h.first, h.samples, ok = d.shape(foreign); !ok {
				return "array header: shape is not a tuple of numbers with at least one entry"
			}
		default:
			return "array header: a key other than descr, fortran_order, shape"
		}
		if seen[which] {
			return "array header: the same key twice"
		}
		seen[which] = true
		if !d.eat(',') && !d.ahead('}') {
			return "array header: expected , or }"
		}
	}
	d.space()
	if d.at != len(text) {
		return "array header: text after the dictionary"
	}
	if seen != [3]bool{true, true, true} {
		return "array header: descr, fortran_order or shape is missing"
	}
	if h.payload = mul(item, elements); h.payload == math.MaxInt64 {
		return "array header: a shape of more than 2^63 bytes"
	}
	return ""
}

// dict is a position in the text of a header.
type dict struct {
	text []byte
	at   int
}

func (d *dict) space() {
	for d.at < len(d.text) && (d.text[d.at] == ' ' || d.text[d.at] == '\n' || d.text[d.at] == '\t') {
		d.at++
	}
}

func (d *dict) ahead(c byte) bool {
	d.space()
	return d.at < len(d.text) && d.text[d.at] == c
}

func (d *dict) eat(c byte) bool {
	if !d.ahead(c) {
		return false
	}
	d.at++
	return true
}

func (d *dict) word(w string) bool {
	d.space()
	if len(d.text)-d.at < len(w) || string(d.text[d.at:d.at+len(w)]) != w {
		return false
	}
	d.at += len(w)
	return true
}

func (d *dict) quoted() ([]byte, bool) {
	q := byte('\'')
	if d.ahead('"') {
		q = '"'
	}
	if !d.eat(q) {
		return nil, false
	}
	for start := d.at; d.at < len(d.text); d.at++ {
		if d.text[d.at] == q {
			d.at++
			return d.text[start : d.at-1], true
		}
	}
	return nil, false
}

// number reads a decimal number below 2^63.
func (d *dict) number() (int64, bool) {
	d.space()
	start, n := d.at, int64(0)
	for ; d.at < len(d.text) && d.text[d.at] >= '0' && d.text[d.at] <= '9'; d.at++ {
		if d.at-start >= 18 {
			return 0, false
		}
		n = n*10 + int64(d.text[d.at]-'0')
	}
	return n, d.at > start
}

// elementSize reads a type string such as '<f4' and returns its size in bytes.
func (d *dict) elementSize() (int64, bool) {
	t, ok := d.quoted()
	if !ok || len(t) < 3 || len(t) > 5 {
		return 0, false
	}
	switch t[0] {
	case '<', '>', '|', '=':
	default:
		return 0, false
	}
	switch t[1] {
	case 'b', 'i', 'u', 'f', 'c':
	default:
		return 0, false
	}
	size := dict{text: t[2:]}
	n, ok := size.number()
	return n, ok && size.at == len(size.text) && n >= 1 && n <= 32
}

// shape reads a tuple and returns the product of its entries, the first and the last of them. An empty one is a single number.
func (d *dict) shape(empty bool) (elements, first, last int64, ok bool) {
	if !d.eat('(') {
		return 0, 0, 0, false
	}
	elements = 1
	for n := 0; ; n++ {
		if d.eat(')') {
			return elements, first, last, n > 0 || empty
		}
		if last, ok = d.number(); !ok {
			return 0, 0, 0, false
		}
		if n == 0 {
			first = last
		}
		elements = mul(elements, last)
		if !d.eat(',') && !(d.ahead(')') && n > 0) {
			return 0, 0, 0, false // one entry without a comma is a number in brackets, not a tuple
		}
	}
}

// value passes over a text in quotes, or a list of such values: how numpy writes the types of structured elements.
func (d *dict) value() bool {
	depth := 0
	for {
		switch {
		case d.eat('['), d.eat('('):
			depth++
		case d.eat(']'), d.eat(')'):
			depth--
		case depth > 0 && d.eat(','):
		case d.ahead('\''), d.ahead('"'):
			if _, ok := d.quoted(); !ok {
				return false
			}
		default:
			if _, ok := d.number(); !ok || depth == 0 {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}
