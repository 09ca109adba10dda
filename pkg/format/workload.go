package format

import (
	"errors"
	"fmt"
	"math"

	"github.com/benchpin/benchpin/pkg/workload"
)

// defaultLevel is the default of dataset.compression_level, which a Spec leaves out.
const defaultLevel = 4

// SpecOf takes the container and its options from a workload's section "dataset". Options are given where they differ from what the
// container does anyway, so that one data set has one Spec. Errors name the key.
func SpecOf(d *workload.Dataset) (Spec, error) {
	s := Spec{Name: d.Format}
	if d.Compression != "none" {
		s.Compression = d.Compression
	}
	if s.Name == "hdf5" && s.Compression == "gzip" {
		if d.CompressionLevel == 0 {
			return Spec{}, errors.New("dataset.compression_level is 0, which compresses nothing; expected 1 to 9, or dataset.compression none")
		}
		if d.CompressionLevel != defaultLevel {
			s.Level = d.CompressionLevel
		}
	}
	if d.HDF5.NumDsetPerRecord != 1 {
		s.Datasets = d.HDF5.NumDsetPerRecord
	}
	s.Chunk = append(s.Chunk, d.HDF5.ChunkDims...)
	s.MaxShape = append(s.MaxShape, d.HDF5.MaxShape...)
	if s.Name == "hdf5" && d.EnableChunking && len(s.Chunk) == 0 {
		chunk, err := oldChunk(d)
		if err != nil {
			return Spec{}, err
		}
		s.Chunk = chunk
	}
	for _, c := range d.Parquet.Columns {
		s.Columns = append(s.Columns, Column{Name: c.Name, DType: c.DType, Size: c.Size, Skip: !c.Read})
	}
	if s.Name == "parquet" {
		s.RowGroup = d.Parquet.RowGroupSize
		if len(s.Columns) == 0 {
			s.Columns = []Column{{Name: "data", DType: "uint8", Size: int(d.RecordLengthBytes)}}
		}
		if p := d.Parquet.PartitionBy; p != "" {
			return Spec{}, fmt.Errorf("dataset.parquet.partition_by is %q; files of one partition are what there is: remove it", p)
		}
	}
	if d.JPEG.Sizing != workload.SizingExact {
		s.Sizing = d.JPEG.Sizing
	}
	return s, nil
}

// oldChunk is the chunk that DLIO v2.0 makes of dataset.enable_chunking and chunk_size: one sample in depth, and in each of its
// dimensions the root of the size, rounded up, or the whole dimension where that is less.
func oldChunk(d *workload.Dataset) ([]int, error) {
	if d.ChunkSize < 1 {
		return nil, fmt.Errorf("dataset.enable_chunking is true and dataset.chunk_size is %d; give the bytes of a chunk, or dataset.hdf5.chunk_dims",
			d.ChunkSize)
	}
	if d.RecordLengthBytesStdev > 0 {
		return nil, fmt.Errorf("dataset.enable_chunking with dataset.record_length_bytes_stdev %v: samples of many shapes have no common chunk; "+
			"give dataset.hdf5.chunk_dims", d.RecordLengthBytesStdev)
	}
	dims := d.RecordDims
	if len(dims) == 0 {
		side := int(math.Sqrt(d.RecordLengthBytes))
		dims = []int{side, side}
	}
	c := int(math.Ceil(math.Sqrt(float64(d.ChunkSize))))
	chunk := []int{1}
	for _, n := range dims {
		chunk = append(chunk, min(c, n))
	}
	return chunk, nil
}
