package workload

import (
	"reflect"
	"strings"
)

// inertKeys are the keys that are accepted, whatever they say, and change nothing: neither the data nor the run (docs/dlio.md says why of
// each). Some change nothing in DLIO either.
func inertKeys() map[string]bool {
	inert := map[string]bool{}
	for _, path := range []string{
		"dataset.record_length_bytes_resize", "dataset.generation_buffer_size", "dataset.record_element_bytes",
		"dataset.parquet.read_mode", "dataset.parquet.generation_batch_size", "dataset.parquet.use_s3dlio_gen",
		"dataset.data_gen_method", "dataset.skip_listing", "dataset.listing_validation_interval",
		"reader.multiprocessing_context", "reader.write_threads",
		"reader.file_access", "reader.dont_use_mmap", "reader.pin_memory", "reader.transformed_record_dims",
		"reader.transformed_record_element_type", "checkpoint.type", "checkpoint.randomize_tensor",
		"checkpoint.ksm.enabled", "checkpoint.ksm.madv_mergeable_id", "checkpoint.ksm.high_ram_trigger", "checkpoint.ksm.low_ram_exit",
		"checkpoint.ksm.await_time",
		"storage.storage_library", "storage.storage_options.storage_library", "storage.storage_options.simulate_io", "profiling.profiler", "profiling.iostat_devices",
	} {
		inert[path] = true
	}
	return inert
}

// Inert lists the keys that were given another value than their default and change nothing, in the order of the documentation. Nothing
// that a file asks for goes unheard.
func (r *Resolved) Inert() []string {
	inert, defaults := inertKeys(), new(Workload)
	fresh := keys(defaults)
	for _, k := range fresh {
		k.reset()
		if r.Workload.Storage.StorageType != "s3" && strings.HasPrefix(k.path, "storage.storage_options.") {
			inert[k.path] = true // there is no bucket to be reached
		}
	}
	var list []string
	for i, k := range keys(r.Workload) {
		if _, given := r.given[k.path]; given && inert[k.path] && !reflect.DeepEqual(k.field, fresh[i].field) {
			list = append(list, k.path)
		}
	}
	return list
}
