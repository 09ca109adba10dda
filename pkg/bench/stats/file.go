package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// The errors of this package that callers can tell apart.
var (
	// ErrFormat: the file is no file of steps of this version, or is damaged.
	ErrFormat = errors.New("steps: not a sound file of steps")
	// ErrImpossible: rows that no run can have made.
	ErrImpossible = errors.New("steps: impossible")
	// ErrPlan: the rows do not fit the plan.
	ErrPlan = errors.New("steps: not the planned run")
)

const (
	// groupRows is the number of rows of a row group, which is what the writer holds in memory at most (about 9 MB).
	groupRows = 1 << 16
	// chunkRows is the number of rows that reader and writer move at a time.
	chunkRows = 1 << 10
	// maxColumn bounds the bytes of one column of a row group: 8 a value, and as much again for page headers and rounding.
	maxColumn = 16*groupRows + 1<<16
)

// Device is what the kernel counted as read from block devices for this process in one epoch.
type Device struct {
	Epoch int `json:"epoch"`
	// Bytes is nil when it is not known; Absent then says why.
	Bytes  *record.Int `json:"bytes,omitempty"`
	Absent string      `json:"absent,omitempty"`
	// Storage is what else was counted; nil where nothing was, and in files of earlier versions.
	Storage *record.Storage `json:"storage,omitempty"`
}

// Writer writes rows as steps.parquet. The same rows give the same bytes with the same version of this program. It is for
// one goroutine.
type Writer struct {
	w *parquet.GenericWriter[Step]
	// buf collects rows: the library's cost is by call where few rows come at a time.
	buf     []Step
	devices []Device
}

// NewWriter starts a file on w, which it does not close.
func NewWriter(w io.Writer) *Writer {
	return &Writer{buf: make([]Step, 0, chunkRows), w: parquet.NewGenericWriter[Step](w,
		// The default names the library's build, which would make equal rows give unequal files.
		parquet.CreatedBy("benchpin", "1", "steps"),
		parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(groupRows),
		parquet.PageBufferSize(64<<10),
		parquet.KeyValueMetadata(SchemaKey, SchemaName),
	)}
}

// Write appends rows, which must follow in the order of epoch, step, rank; the reader checks that.
func (w *Writer) Write(rows []Step) error {
	for len(rows) > 0 {
		n := min(len(rows), chunkRows-len(w.buf))
		w.buf = append(w.buf, rows[:n]...)
		rows = rows[n:]
		if len(w.buf) == chunkRows {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) flush() error {
	if _, err := w.w.Write(w.buf); err != nil {
		return fmt.Errorf("steps: writing rows: %w", err)
	}
	w.buf = w.buf[:0]
	return nil
}

// SetDevice notes what came from block devices in an epoch. Epochs must be given in rising order.
func (w *Writer) SetDevice(d Device) error {
	w.devices = append(w.devices, d)
	return checkDevices(w.devices)
}

// Close writes what is left and the footer.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	b, err := json.Marshal(w.devices)
	if err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	if w.devices == nil {
		b = []byte("[]")
	}
	w.w.SetKeyValueMetadata(DeviceKey, string(b))
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("steps: writing the footer: %w", err)
	}
	return nil
}

func checkDevices(ds []Device) error {
	last := 0
	for _, d := range ds {
		switch {
		case d.Epoch <= last:
			return fmt.Errorf("%w: device bytes of epoch %d after those of epoch %d", ErrImpossible, d.Epoch, last)
		case (d.Bytes == nil) == (d.Absent == ""):
			return fmt.Errorf("%w: device bytes of epoch %d: expected either bytes or the reason why there are none", ErrImpossible, d.Epoch)
		case d.Bytes != nil && *d.Bytes < 0:
			return fmt.Errorf("%w: device bytes of epoch %d: %d", ErrImpossible, d.Epoch, *d.Bytes)
		}
		last = d.Epoch
	}
	return nil
}

// Reader reads a file of steps from its first row to its last. It is strict: another schema, another column, a damaged page or a
// wrong row is an error that wraps ErrFormat or ErrImpossible, and never a panic.
type Reader struct {
	f       *parquet.File
	r       *parquet.GenericReader[Step]
	rows    int64
	devices []Device
	waits   bool
}

// Open opens a file of steps of the given size in bytes. Structures and sizes are checked before the parquet library sees them, but a
// page crafted to decompress to very much more than it says is only noticed then: check the digest of a stranger's file first.
func Open(f io.ReaderAt, size int64) (r *Reader, err error) {
	defer guard(&err)
	if err := checkFooter(f, size); err != nil {
		return nil, err
	}
	pf, err := parquet.OpenFile(f, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if v, _ := pf.Lookup(SchemaKey); v != SchemaName {
		return nil, fmt.Errorf("%w: metadata %s is %q, expected %q", ErrFormat, SchemaKey, v, SchemaName)
	}
	got, all := pf.Schema().String(), parquet.SchemaOf(Step{}).String()
	if got != all && got != withoutWaits(all) {
		return nil, fmt.Errorf("%w: columns are %.2000q, expected %q, or those without the last %d", ErrFormat, got, all, waitColumns)
	}
	r = &Reader{f: pf, rows: pf.NumRows(), waits: got == all}
	if err := checkGroups(f, size, pf.Metadata()); err != nil {
		return nil, err
	}
	text, ok := pf.Lookup(DeviceKey)
	if !ok {
		return nil, fmt.Errorf("%w: metadata %s is missing", ErrFormat, DeviceKey)
	}
	if err := json.Unmarshal([]byte(text), &r.devices); err != nil {
		return nil, fmt.Errorf("%w: metadata %s: %w", ErrFormat, DeviceKey, err)
	}
	if err := checkDevices(r.devices); err != nil {
		return nil, fmt.Errorf("metadata %s: %w", DeviceKey, err)
	}
	r.r = parquet.NewGenericReader[Step](pf)
	return r, nil
}

// withoutWaits is the schema of files of earlier versions: a line less for each of the last columns.
func withoutWaits(schema string) string {
	lines := strings.Split(schema, "\n")
	end := len(lines) - 1 // the bracket
	return strings.Join(append(lines[:end-waitColumns:end-waitColumns], lines[end]), "\n")
}

// checkGroups holds the footer to what Writer writes, before any page is decoded: above all the codec and the sizes, which the library
// would believe.
func checkGroups(f io.ReaderAt, size int64, m *format.FileMetaData) error {
	var rows int64
	buf := make([]byte, maxHeader)
	for i, g := range m.RowGroups {
		if g.NumRows < 0 || g.NumRows > groupRows {
			return fmt.Errorf("%w: row group %d has %d rows, expected at most %d", ErrFormat, i, g.NumRows, groupRows)
		}
		rows += g.NumRows
		for _, c := range g.Columns {
			d := &c.MetaData
			if d.Codec != format.Zstd || d.NumValues != g.NumRows || d.TotalUncompressedSize < 0 || d.TotalUncompressedSize > maxColumn ||
				d.DataPageOffset < 4 || d.DataPageOffset > size || d.TotalCompressedSize < 0 || d.TotalCompressedSize > size-d.DataPageOffset {
				return fmt.Errorf("%w: row group %d, column %v: codec %v, %d values, %d bytes for %d; expected zstd, %d values, at most %d bytes",
					ErrFormat, i, d.PathInSchema, d.Codec, d.NumValues, d.TotalCompressedSize, d.TotalUncompressedSize, g.NumRows, maxColumn)
			}
			if err := checkPages(f, d.DataPageOffset, d.TotalCompressedSize, buf); err != nil {
				return fmt.Errorf("row group %d, column %v: %w", i, d.PathInSchema, err)
			}
		}
	}
	if rows != m.NumRows {
		return fmt.Errorf("%w: row groups hold %d rows, the footer says %d", ErrFormat, rows, m.NumRows)
	}
	return nil
}

// Rows is the number of rows.
func (r *Reader) Rows() int64 { return r.rows }

// Waits says whether the file has the columns that split the wait for a batch: queue_ns, ready_ns, preprocess_ns and hash_ns.
func (r *Reader) Waits() bool { return r.waits }

// Devices are the bytes from block devices, for each epoch that has an entry, in rising order.
func (r *Reader) Devices() []Device { return r.devices }

// Each calls yield for every row from the first, checked by itself; yield must not keep the pointer. It stops at the first error.
func (r *Reader) Each(yield func(*Step) error) error { return r.each(0, yield) }

// End is the end of the last block of a whole run of so many ranks, as an offset in nanoseconds. Only the last step of each rank is looked
// at: that the rows before it are earlier is for Summarise.
func (r *Reader) End(ranks int) (int64, error) {
	var end int64
	err := r.each(max(0, r.rows-int64(ranks)), func(s *Step) error {
		end = max(end, s.BlockEnd)
		return nil
	})
	return end, err
}

// each is Each from the given row on.
func (r *Reader) each(n int64, yield func(*Step) error) (err error) {
	defer guard(&err)
	if err := r.r.SeekToRow(n); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	buf := make([]Step, chunkRows)
	for {
		k, err := r.r.Read(buf)
		for i := range buf[:k] {
			if err := buf[i].check(); err != nil {
				return err
			}
			if err := yield(&buf[i]); err != nil {
				return err
			}
		}
		n += int64(k)
		switch {
		case errors.Is(err, io.EOF):
			if n != r.rows {
				return fmt.Errorf("%w: %d rows, the footer says %d", ErrFormat, n, r.rows)
			}
			return nil
		case err != nil:
			return fmt.Errorf("%w: after row %d: %w", ErrFormat, n, err)
		case k == 0:
			return fmt.Errorf("%w: no progress after row %d of %d", ErrFormat, n, r.rows)
		}
	}
}

// Close releases the reader's buffers; the file stays open.
func (r *Reader) Close() error { return r.r.Close() }

// guard turns a panic of the parquet library, which damaged files can cause, into an error.
func guard(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%w: %v", ErrFormat, v)
	}
}
