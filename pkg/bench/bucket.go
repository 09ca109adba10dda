package bench

import "github.com/benchpin/benchpin/pkg/workload"

// What reading and writing objects of a bucket takes beside the buffers of reads (pkg/store/s3): each part of an object that is fetched
// ahead, each connection, and each object of several parts that is being written.
const (
	ObjectPart      = 8 << 20
	objectLine      = 64 << 10
	ObjectUpload    = 16 << 20
	ObjectUploading = 5 // parts of an upload that are held
)

// bucketMemory is the memory that reading from a bucket takes, where the workload's data are in one.
func bucketMemory(w *workload.Workload, reads, largest int64) int64 {
	if w.Storage.StorageType != objectStore {
		return 0
	}
	each := int64(objectLine)
	if parts := int64(PrefetchedParts(w)); parts > 0 {
		each += min(parts*ObjectPart, (largest+ObjectPart-1)/ObjectPart*ObjectPart)
	}
	return reads * each
}

// uploadMemory is the memory that so many ranks take that each write files of up to largest bytes into a bucket.
func uploadMemory(w *workload.Workload, ranks, largest int64) int64 {
	if w.Storage.StorageType != objectStore {
		return 0
	}
	return ranks * min(ObjectUploading, (largest+ObjectUpload-1)/ObjectUpload) * ObjectUpload
}

// PrefetchedParts is how many parts of an open object are fetched or held at most (storage.storage_options.prefetch_window); 0 where none are
// fetched ahead.
func PrefetchedParts(w *workload.Workload) int {
	o := &w.Storage.StorageOptions
	switch {
	case o.PrefetchWorkers < 2:
		return 0
	case o.PrefetchWindow < o.PrefetchWorkers:
		return 2 * PrefetchWorkers(w)
	}
	return min(o.PrefetchWindow, 2*mostPrefetchWorkers)
}

// mostPrefetchWorkers is what more than any client takes.
const mostPrefetchWorkers = 1024

// PrefetchWorkers is how many requests bring the parts of one object at once (storage.storage_options.prefetch_workers).
func PrefetchWorkers(w *workload.Workload) int {
	return min(w.Storage.StorageOptions.PrefetchWorkers, mostPrefetchWorkers)
}
