package datagen

import (
	"errors"
	"fmt"
	"math"

	"github.com/benchpin/benchpin/pkg/format"
)

// checkShape checks sizes, and computes the mean and the spread of the sides.
func (r *Recipe) checkShape() error {
	l, s := r.doc.RecordLength, r.doc.RecordStdev
	switch {
	case r.doc.RecordDims == nil:
		return errors.New("record_dims is missing; expected a list, [] for square samples")
	case math.Signbit(l) || math.Signbit(s): // -0 would be a second way to write 0
		return fmt.Errorf("record length %v ± %v; expected numbers of 0 or more", l, s)
	case len(r.doc.RecordDims) > 0 && (l != 0 || s != 0):
		return fmt.Errorf("record_dims beside a record length of %v ± %v; expected 0 ± 0", l, s)
	case r.doc.Format == parquet:
		return r.checkRows()
	case len(r.doc.RecordDims) > 0:
		return r.checkSize(r.doc.RecordDims)
	case !(l >= 1 && l <= 1<<53):
		return fmt.Errorf("dataset.record_length_bytes is %v; expected 1 to 2^53", l)
	case !(s >= 0 && s <= 1<<53):
		return fmt.Errorf("dataset.record_length_bytes_stdev is %v; expected 0 to 2^53", s)
	}
	r.mean = math.Sqrt(l)
	if s > 0 {
		// Sides x, y independent with mean m = √l and variance v: var(xy) = 2 m² v + v² = s² gives v = √(l²+s²) - l,
		// written here without the cancellation.
		v := float64(s*s) / (l + math.Sqrt(float64(l*l)+float64(s*s)))
		r.spread = math.Sqrt(v)
	}
	// An image of the exact size asked for need not be a square.
	r.flat = r.doc.exactFile() && s == 0
	if r.spread == 0 {
		return r.checkSize(r.dims(0))
	}
	largest := int(r.mean + float64(r.spread*13) + 1) // a normal draw is below 13
	if err := r.checkSize([]int{largest, largest}); err != nil {
		return err
	}
	return r.checkSmall()
}

// checkRows checks the shape of parquet's rows, which is that of the columns.
func (r *Recipe) checkRows() error {
	var columns []format.Column
	if r.doc.Options != nil {
		columns = r.doc.Options.Columns
	}
	row, err := rowBytes(columns)
	if err != nil {
		return err
	}
	if len(r.doc.RecordDims) > 0 || r.doc.RecordLength != float64(row) || row > 1<<53 || r.doc.RecordStdev != 0 {
		return fmt.Errorf("dimensions %v, record length %v ± %v; the columns of a parquet row have %d bytes", r.doc.RecordDims, r.doc.RecordLength,
			r.doc.RecordStdev, row)
	}
	if r.doc.DType != "uint8" {
		return fmt.Errorf("dataset.record_element_type is %q, but the types of parquet files are those of their columns; remove it", r.doc.DType)
	}
	r.flat = true
	return r.checkSize(r.dims(0))
}

// checkSize refuses a shape that the container or one of its companions cannot hold.
func (r *Recipe) checkSize(dims []int) error {
	l := r.layout(dims)
	if _, err := r.format.Size(l); err != nil {
		return err
	}
	for _, c := range r.companions {
		if _, err := c.Size(l); err != nil {
			return err
		}
	}
	return nil
}

// mostDrawn is the number of files whose shapes are looked at one by one where some that could be drawn cannot be held.
const mostDrawn = 1 << 20

// checkSmall refuses drawn shapes that are too small for the container: a drawn image may be too small to be one.
func (r *Recipe) checkSmall() error {
	smallest := max(1, int(r.mean-float64(r.spread*13)))
	err := r.checkSize([]int{smallest, smallest})
	if err == nil {
		return nil
	}
	if r.Files() > mostDrawn {
		return fmt.Errorf("dataset.record_length_bytes_stdev %v: samples may become as small as %d x %d: %w", r.doc.RecordStdev, smallest, smallest, err)
	}
	for i := range r.Files() {
		index := uint64(i)
		if i >= r.doc.Train.Files {
			index = validStream | uint64(i-r.doc.Train.Files)
		}
		if err := r.checkSize(r.dims(index)); err != nil {
			return fmt.Errorf("dataset.record_length_bytes_stdev %v: file %d: %w", r.doc.RecordStdev, i, err)
		}
	}
	return nil
}
