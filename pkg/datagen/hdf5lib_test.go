//go:build hdf5 && cgo

package datagen

// libraryContainers are data sets that only a build with libhdf5 makes.
func libraryContainers() map[string][]string {
	return map[string][]string{
		"hdf5 chunks":      {"format: hdf5", "record_length_bytes: 14000", "num_samples_per_file: 4", "hdf5: {chunk_dims: [1, 30, 40]}"},
		"hdf5 chunks, old": {"format: hdf5", "record_length_bytes: 14000", "num_samples_per_file: 4", "enable_chunking: true", "chunk_size: 900"},
		"hdf5 gzip":        {"format: hdf5", "record_length_bytes: 9000", "num_samples_per_file: 4", "compression: gzip", "record_element_type: float32"},
		"hdf5 grows":       {"format: hdf5", "record_dims: [6, 5]", "hdf5: {max_shape: [12, 5]}"},
	}
}
