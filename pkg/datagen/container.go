package datagen

import (
	"fmt"
	"reflect"

	"github.com/benchpin/benchpin/pkg/format"
	"github.com/benchpin/benchpin/pkg/workload"
)

// setOptions takes the container's options from a workload.
func (doc *document) setOptions(d *workload.Dataset) error {
	o, err := format.SpecOf(d)
	if err != nil {
		return err
	}
	o.Name = ""
	for i := range o.Columns {
		c := &o.Columns[i]
		c.Skip = false // which columns are read makes no difference to the data
		if t, err := format.ParseDType(c.DType); err == nil {
			c.DType = t.Name
		}
	}
	if doc.Format == parquet {
		if len(doc.RecordDims) > 0 {
			return fmt.Errorf("dataset.record_dims is %v, but the shape of a parquet row is that of dataset.parquet.columns; remove it", doc.RecordDims)
		}
		if doc.RecordStdev != 0 {
			return fmt.Errorf("dataset.record_length_bytes_stdev is %v, but parquet rows have one length; remove it", doc.RecordStdev)
		}
		row, err := rowBytes(o.Columns)
		if err != nil {
			return err
		}
		doc.RecordLength = float64(row)
	}
	if !reflect.ValueOf(o).IsZero() {
		doc.Options = &o
	}
	return nil
}

// parquet is the format whose samples are rows of columns: their length is that of the columns, and dataset.record_length_bytes has no
// effect.
const parquet = "parquet"

// rowBytes returns the bytes of all columns of a row.
func rowBytes(columns []format.Column) (int64, error) {
	var row int64
	for _, c := range columns {
		n, err := c.RowBytes()
		if err != nil {
			return 0, fmt.Errorf("dataset.parquet.columns: %s: %w", c.Name, err)
		}
		row = sum(row, n)
	}
	return row, nil
}

// exactFile reports whether files have exactly the size asked for: raw ones, and images unless dataset.jpeg.sizing says otherwise.
func (doc *document) exactFile() bool {
	return doc.Format == format.RawName || (doc.Format == "jpeg" || doc.Format == "png") && (doc.Options == nil || doc.Options.Sizing == "")
}

// setFormat makes the container that the recipe names, and looks at what it can.
func (r *Recipe) setFormat() (err error) {
	spec := format.Spec{}
	if o := r.doc.Options; o != nil {
		if spec = *o; reflect.ValueOf(spec).IsZero() || spec.Name != "" {
			return fmt.Errorf("format: options %+v; expected none, or some without the name of the format", spec)
		}
		for _, c := range spec.Columns {
			if c.Skip {
				return fmt.Errorf("format: column %s has skip, which is about reading", c.Name)
			}
			if t, err := format.ParseDType(c.DType); err == nil && t.Name != c.DType {
				return fmt.Errorf("format: column %s has the dtype %q; expected its one name %q", c.Name, c.DType, t.Name)
			}
		}
	}
	spec.Name = r.doc.Format
	if r.format, err = format.New(spec); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	r.extension = format.Extension(r.format)
	if f, ok := r.format.(format.Companioned); ok {
		r.companions = f.Companions()
	}
	if f, ok := r.format.(format.Measured); ok {
		r.measured = f
	}
	return nil
}
