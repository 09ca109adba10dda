package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	h5PageSize = 4 << 10
	h5Pages    = 8

	// h5Work bounds the bytes of metadata that one sample may walk through, so that structures that point at each other end.
	h5Work = 8 << 20
)

// h5Reader reads rows of contiguous data sets. It looks at metadata through a few pages, as libhdf5 does through its cache.
type h5Reader struct {
	f     io.ReaderAt
	size  int64
	buf   []byte
	asked int64
	work  int64 // bytes of metadata still allowed
	pages [h5Pages]h5Page

	header []byte   // one chunk of an object header
	part   []byte   // any other structure
	spare  []byte   // a structure inside part
	sets   []uint64 // addresses of the headers of records_0, records_1, ...
	single uint64   // address of the header of "records"
	plain  bool     // "records" is what is read
	// foreign files have data sets of any name; others are the addresses of what the root group holds beside those.
	foreign bool
	others  []uint64
	beyond  bool // the error at hand is about something that is sound, and that only libhdf5 reads
}

// h5Page is one page of the file.
type h5Page struct {
	data   [h5PageSize]byte
	number int64 // -1 for none
	n      int   // bytes of data that are the file's
}

func (r *h5Reader) reset(f io.ReaderAt, size int64, buf []byte) {
	r.f, r.size, r.buf, r.asked, r.work, r.beyond = f, size, buffer(buf), 0, h5Work, false
	for i := range r.pages {
		r.pages[i].number = -1
	}
}

// release forgets the caller's memory before the reader waits for its next use.
func (r *h5Reader) release() { r.f, r.buf = nil, nil }

// problem is an error at byte at, or at the end of the file where that is outside.
func (r *h5Reader) problem(at int64, format string, args ...any) error {
	return &DataError{Format: "hdf5", Offset: max(0, min(at, r.size)), Problem: fmt.Sprintf(format, args...)}
}

// unread is a problem with something that libhdf5 could read.
func (r *h5Reader) unread(at int64, format string, args ...any) error {
	r.beyond = true
	return r.problem(at, format, args...)
}

func (r *h5Reader) truncated(at int64) error {
	return &DataError{Format: "hdf5", Offset: at, Problem: "the file ends here, too early", Err: io.ErrUnexpectedEOF}
}

// read fills p with the file's bytes at off.
func (r *h5Reader) read(p []byte, off int64) error {
	r.asked += int64(len(p))
	n, err := r.f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return r.truncated(off + int64(n))
	}
	return fmt.Errorf("hdf5: read %d bytes at byte %d: %w", len(p), off, err)
}

// load appends n bytes of metadata at off to p[:0].
func (r *h5Reader) load(p []byte, off, n int64) ([]byte, error) {
	p = p[:0]
	switch {
	case off < 0 || n < 0 || off > r.size:
		return p, r.problem(r.size, "metadata are announced at byte %d, outside the file", uint64(off))
	case n > r.size-off:
		return p, r.truncated(r.size)
	}
	if r.work -= n + 64; r.work < 0 {
		return p, r.problem(off, "more than %d bytes of metadata on the way to one sample", h5Work)
	}
	for n > 0 {
		page := &r.pages[off/h5PageSize%h5Pages]
		if start := off / h5PageSize * h5PageSize; page.number != off/h5PageSize {
			page.number, page.n = -1, int(min(h5PageSize, r.size-start))
			if err := r.read(page.data[:page.n], start); err != nil {
				return p, err
			}
			page.number = off / h5PageSize
		}
		piece := page.data[off%h5PageSize : page.n]
		piece = piece[:min(n, int64(len(piece)))]
		p = append(p, piece...)
		off, n = off+int64(len(piece)), n-int64(len(piece))
	}
	return p, nil
}

// sealed loads a structure of n bytes that starts with a signature and ends with a checksum.
func (r *h5Reader) sealed(p []byte, off, n int64, signature string) ([]byte, error) {
	p, err := r.load(p, off, n)
	if err != nil {
		return p, err
	}
	return p, r.seal(p, off, signature)
}

// seal checks signature and checksum of a structure.
func (r *h5Reader) seal(p []byte, off int64, signature string) error {
	if len(p) < len(signature)+4 || string(p[:len(signature)]) != signature {
		return r.problem(off, "no %s here", signature)
	}
	end := len(p) - 4
	if got, want := h5Checksum(p[:end]), binary.LittleEndian.Uint32(p[end:]); got != want {
		return r.problem(off, "checksum of %s is %08x, not %08x", signature, got, want)
	}
	return nil
}

// sample reads row k of each of the data sets.
func (r *h5Reader) sample(datasets, k int) (Sample, error) {
	if err := r.root(datasets); err != nil {
		return Sample{}, err
	}
	var logical int64
	for i, at := range r.sets[:datasets] {
		var d h5Object
		if err := r.object(int64(at), &d); err != nil {
			return Sample{}, err
		}
		n, err := r.rows(i, k, &d)
		if err != nil {
			return Sample{}, err
		}
		logical += n
	}
	return Sample{Logical: logical, Asked: r.asked}, nil
}

// root finds the headers of the data sets.
func (r *h5Reader) root(datasets int) error {
	group, at, err := r.superblock()
	if err != nil {
		return err
	}
	r.single, r.plain = h5Undefined, false
	r.sets, r.others = r.sets[:0], r.others[:0]
	for range datasets {
		r.sets = append(r.sets, h5Undefined)
	}
	if group.table == h5Undefined && group.heap == h5Undefined {
		if err := r.object(at, &group); err != nil {
			return err
		}
	}
	switch {
	case group.haveTable:
		err = r.symbols(group.table, group.heap)
	case group.dense != h5Undefined:
		err = r.denseLinks(group.dense, group.names)
	case !group.haveLinks:
		err = r.problem(at, "the root object is not a group")
	}
	if err != nil {
		return err
	}
	if datasets == 1 && r.sets[0] == h5Undefined {
		r.sets[0], r.plain = r.single, r.single != h5Undefined // DLIO up to 2.0 wrote one data set, "records"
	}
	if r.foreign && r.sets[0] == h5Undefined {
		if err := r.largest(at); err != nil {
			return err
		}
	}
	for i, address := range r.sets {
		if address == h5Undefined {
			return r.problem(at, "no data set records_%d; expected %d (dataset.hdf5.num_dset_per_record)", i, datasets)
		}
	}
	return nil
}

// link notes a name of the root group, if it is that of a data set to read.
func (r *h5Reader) link(name []byte, address uint64) {
	const prefix = "records"
	if len(name) < len(prefix) || string(name[:len(prefix)]) != prefix {
		if r.foreign && len(r.others) < h5MaxDatasets {
			r.others = append(r.others, address)
		}
		return
	}
	number := name[len(prefix):]
	if len(number) == 0 {
		r.single = address
		return
	}
	if len(number) < 2 || len(number) > 5 || number[0] != '_' || number[1] == '0' && len(number) > 2 {
		return
	}
	n := 0
	for _, c := range number[1:] {
		if c < '0' || c > '9' {
			return
		}
		n = 10*n + int(c-'0')
	}
	if n < len(r.sets) {
		r.sets[n] = address
	}
}

// superblock reads the start of the file, and returns the root group's tables, if they are there, and where its header is.
func (r *h5Reader) superblock() (h5Object, int64, error) {
	group := newH5Object()
	p, err := r.load(r.part, 0, min(r.size, 8))
	if r.part = p; err != nil {
		return group, 0, err
	}
	if string(p) != h5Signature {
		if r.size < 8 && string(p) == h5Signature[:len(p)] {
			return group, 0, r.truncated(r.size)
		}
		return group, 0, r.problem(0, "not an HDF5 file: the first bytes are not its signature")
	}
	if p, err = r.load(r.part, 0, 48); err != nil {
		return group, 0, err
	}
	r.part = p
	switch version := p[8]; version {
	case 0, 1:
		root := int64(56)
		if version == 1 {
			root += 4
		}
		if p, err = r.load(r.part, 0, root+40); err != nil {
			return group, 0, err
		}
		r.part = p
		addresses := p[root-32:]
		if err := r.whole(p[13], p[14], 13, binary.LittleEndian.Uint64(addresses), binary.LittleEndian.Uint64(addresses[16:]), root-16); err != nil {
			return group, 0, err
		}
		entry := p[root:]
		if binary.LittleEndian.Uint32(entry[16:]) == 1 {
			group.haveTable = true
			group.table, group.heap = binary.LittleEndian.Uint64(entry[24:]), binary.LittleEndian.Uint64(entry[32:])
		}
		return group, int64(binary.LittleEndian.Uint64(entry[8:])), nil
	case 2, 3:
		if err := r.seal(p, 0, h5Signature); err != nil {
			return group, 0, err
		}
		if version == 3 && p[11]&5 != 0 {
			return group, 0, r.problem(11, "the file is open for writing, or its writer ended without closing it")
		}
		if err := r.whole(p[9], p[10], 9, binary.LittleEndian.Uint64(p[12:]), binary.LittleEndian.Uint64(p[28:]), 28); err != nil {
			return group, 0, err
		}
		return group, int64(binary.LittleEndian.Uint64(p[36:])), nil
	default:
		return group, 0, r.problem(8, "superblock of version %d; 0 to 3 are known", version)
	}
}

// whole checks what every superblock says: the bytes of offsets and lengths, where addresses count from, and where the file ends.
func (r *h5Reader) whole(offsets, lengths byte, at int64, base, end uint64, endAt int64) error {
	switch {
	case offsets != 8 || lengths != 8:
		return r.unread(at, "offsets of %d bytes and lengths of %d; 8 is what h5py writes", offsets, lengths)
	case base != 0:
		return r.unread(at, "addresses count from byte %d, not from the start of the file", base)
	case end > math.MaxInt64:
		return r.problem(endAt, "the file is said to end at byte %d", end)
	case int64(end) > r.size:
		return &DataError{Format: "hdf5", Offset: r.size, Err: io.ErrUnexpectedEOF,
			Problem: fmt.Sprintf("the file ends here, and should at byte %d", end)}
	}
	return nil
}

// rows reads row k of data set i, and returns its bytes.
func (r *h5Reader) rows(i, k int, d *h5Object) (int64, error) {
	switch {
	case !d.haveSpace || !d.haveType || !d.haveLayout:
		return 0, r.problem(d.at, "records_%d has no shape, no element type or no storage", i)
	case d.external:
		return 0, r.problem(d.at, "the elements of records_%d are in other files, which a data set does not name", i)
	case d.rank == 0:
		return 0, r.problem(d.at, "records_%d is one element, not an array", i)
	case k < 0 || uint64(k) >= d.count:
		return 0, r.problem(d.at, "sample %d is asked for; records_%d holds %d", k, i, d.count)
	case d.class != h5Contiguous:
		return 0, r.unread(d.at, "records_%d is %s, which only libhdf5 reads", i, h5Class(d.class))
	}
	n := mul(d.rowElements, d.elementSize)
	total := mul(n, int64(min(d.count, math.MaxInt64)))
	switch {
	case total == math.MaxInt64:
		return 0, r.problem(d.at, "records_%d has more than 2^63 bytes", i)
	case d.address == h5Undefined && total > 0:
		return 0, r.problem(d.at, "nothing was ever written to records_%d", i)
	case d.bytes != uint64(total):
		return 0, r.problem(d.at, "records_%d has %d bytes by its shape, and room for %d", i, total, d.bytes)
	case total > 0 && (d.address > uint64(r.size) || uint64(total) > uint64(r.size)-d.address):
		return 0, r.problem(r.size, "records_%d has %d bytes at byte %d, beyond the end of the file", i, total, d.address)
	}
	return n, r.rowAt(int64(d.address)+int64(k)*n, n)
}

// rowAt reads n bytes of elements at byte at, in pieces that end at multiples of the buffer's length.
func (r *h5Reader) rowAt(at, n int64) error {
	for end := at + n; at < end; {
		piece := r.buf[:min(end-at, int64(len(r.buf))-at%int64(len(r.buf)))]
		if err := r.read(piece, at); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

func h5Class(class byte) string {
	switch class {
	case 0:
		return "stored inside its header (compact)"
	case 2:
		return "chunked"
	}
	return "stored as a view of others (virtual)"
}
