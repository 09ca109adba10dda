//go:build hdf5 && cgo

/*
 * What the package asks of libhdf5: where the parts of a file lie. The library never does input or output: reading, it sees
 * pages that Go has read, and says which one it misses; writing, its metadata stay in memory, and of the elements only the
 * addresses are kept. So the bytes asked of a file are counted where all others are, and reading goes on in parallel while the
 * library, which is one at a time, computes.
 */
#ifndef BENCHPIN_HDF5LIB_H
#define BENCHPIN_HDF5LIB_H

#include <stddef.h>
#include <stdint.h>

enum { H5LIB_PAGE = 4096, H5LIB_DIMS = 32, H5LIB_CHUNKS = 256, H5LIB_FILTERS = 8, H5LIB_TEXT = 160 };

enum { H5LIB_OK, H5LIB_MISS, H5LIB_FAILED };

/* One row of a data set. */
typedef struct {
	uint64_t miss_at, miss_n; /* bytes of the file that are needed, after H5LIB_MISS */
	char problem[H5LIB_TEXT]; /* after H5LIB_FAILED */
	int storage;              /* 0 compact, 1 contiguous, 2 chunked, 3 virtual */
	int number;               /* whether elements are numbers */
	int rank;
	uint64_t dims[H5LIB_DIMS], chunk[H5LIB_DIMS];
	uint64_t element; /* bytes */
	uint64_t address; /* of contiguous elements */
	int filters, filter[H5LIB_FILTERS];
	uint64_t chunks;  /* that hold the row */
	int got;          /* of them described here */
	uint64_t at[H5LIB_CHUNKS], n[H5LIB_CHUNKS]; /* n 0: never written */
	uint32_t skipped[H5LIB_CHUNKS];             /* a bit for each filter that was not applied */
} h5lib_row;

/* Finds a row of the data set of the given name, and its chunks from number first on. pages are numbered by numbers, sorted. */
int h5lib_find(const unsigned char *pages, const uint64_t *numbers, size_t count, uint64_t size, const char *name, uint64_t row,
	uint64_t first, h5lib_row *out);

typedef struct h5lib_image h5lib_image;

/* What a file is made of: data sets records_0 ... of one shape, and labels. type is an encoded element type. */
typedef struct {
	int datasets, rank, level; /* level -1: no compression */
	uint64_t dims[H5LIB_DIMS], max[H5LIB_DIMS], chunk[H5LIB_DIMS];
	unsigned char type[128];
	int type_n;
} h5lib_plan;

/* Lays out a file whose chunks, in order of data set and position, have the given sizes. Returns NULL after a problem. */
h5lib_image *h5lib_layout(const h5lib_plan *plan, const uint64_t *sizes, uint64_t chunks, char *problem);
uint64_t h5lib_size(const h5lib_image *image);
/* The address of each chunk, as many as there are sizes. */
const uint64_t *h5lib_addresses(const h5lib_image *image);
/* Copies n bytes of metadata at byte at; what was never written is zero. */
void h5lib_copy(const h5lib_image *image, uint64_t at, uint64_t n, unsigned char *to);
void h5lib_free(h5lib_image *image);

#endif
