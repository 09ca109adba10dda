//go:build hdf5 && cgo

#include "hdf5lib.h"

#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !H5_VERSION_GE(1, 10, 3)
#error "libhdf5 1.10.3 or later is needed: it reads and writes chunks as they are"
#endif
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* The library has one state for the process, and so has this file. */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static hid_t driver = -1;

typedef struct {
	uint64_t number;
	unsigned char *data;
} page;

struct h5lib_image {
	page *pages; /* open addressing, capacity a power of two */
	size_t capacity, used;
	uint64_t *addresses;
	uint64_t size;
};

/* context is what one opened file works on: pages to read, or an image to write. */
typedef struct {
	const unsigned char *pages;
	const uint64_t *numbers;
	size_t count;
	uint64_t size;
	int missed, failed;
	uint64_t miss_at, miss_n;
	h5lib_image *image;
	uint64_t raw_at, raw_n;
	int raw; /* how many pieces of elements were asked for since it was set to 0 */
} context;

typedef struct {
	H5FD_t base;
	context *c;
	haddr_t eoa;
} file;

static size_t slot(const h5lib_image *m, uint64_t number) {
	size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (m->capacity - 1);
	while (m->pages[i].data != NULL && m->pages[i].number != number)
		i = (i + 1) & (m->capacity - 1);
	return i;
}

/* writable returns the page of that number, made if it is new, or NULL without memory. */
static unsigned char *writable(h5lib_image *m, uint64_t number) {
	if (2 * (m->used + 1) > m->capacity) {
		h5lib_image grown = *m;
		grown.capacity = m->capacity ? 2 * m->capacity : 64;
		grown.pages = calloc(grown.capacity, sizeof(page));
		if (grown.pages == NULL)
			return NULL;
		for (size_t i = 0; i < m->capacity; i++)
			if (m->pages[i].data != NULL)
				grown.pages[slot(&grown, m->pages[i].number)] = m->pages[i];
		free(m->pages);
		*m = grown;
	}
	size_t i = slot(m, number);
	if (m->pages[i].data == NULL) {
		if ((m->pages[i].data = calloc(1, H5LIB_PAGE)) == NULL)
			return NULL;
		m->pages[i].number = number;
		m->used++;
	}
	return m->pages[i].data;
}

static H5FD_t *drv_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr) {
	context *const *c = H5Pget_driver_info(fapl);
	file *f = calloc(1, sizeof *f);
	(void)name, (void)flags, (void)maxaddr;
	if (c == NULL || f == NULL) {
		free(f);
		return NULL;
	}
	f->c = *c;
	return &f->base;
}

static herr_t drv_close(H5FD_t *base) {
	file *f = (file *)base;
	if (f->c->image != NULL)
		f->c->image->size = f->eoa;
	free(f);
	return 0;
}

static herr_t drv_query(const H5FD_t *base, unsigned long *flags) {
	/* As the library's own driver of files, so that space is handed out alike. A query without a file asks for the class. */
	const file *f = (const file *)base;
	*flags = f == NULL || f->c->image != NULL
		? H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA
		: 0;
	return 0;
}

static haddr_t drv_get_eoa(const H5FD_t *base, H5FD_mem_t type) {
	(void)type;
	return ((const file *)base)->eoa;
}

static herr_t drv_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t address) {
	(void)type;
	((file *)base)->eoa = address;
	return 0;
}

static haddr_t drv_get_eof(const H5FD_t *base, H5FD_mem_t type) {
	const file *f = (const file *)base;
	(void)type;
	return f->c->image != NULL ? f->eoa : f->c->size;
}

static herr_t drv_read(H5FD_t *base, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t n, void *to) {
	context *c = ((file *)base)->c;
	(void)dxpl;
	if (type == H5FD_MEM_DRAW) {
		c->raw_at = at, c->raw_n = n, c->raw++;
		return 0; /* Go reads it */
	}
	if (c->image != NULL) {
		h5lib_copy(c->image, at, n, to);
		return 0;
	}
	if (at > c->size || n > c->size - at)
		return -1;
	for (unsigned char *p = to; n > 0;) {
		uint64_t number = at / H5LIB_PAGE;
		size_t in = at % H5LIB_PAGE, piece = H5LIB_PAGE - in < n ? H5LIB_PAGE - in : n, low = 0, high = c->count;
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (c->numbers[middle] < number)
				low = middle + 1;
			else
				high = middle;
		}
		if (low == c->count || c->numbers[low] != number) {
			c->missed = 1, c->miss_at = at, c->miss_n = n;
			return -1;
		}
		memcpy(p, c->pages + low * H5LIB_PAGE + in, piece);
		p += piece, at += piece, n -= piece;
	}
	return 0;
}

static herr_t drv_write(H5FD_t *base, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t n, const void *from) {
	context *c = ((file *)base)->c;
	(void)dxpl;
	if (c->image == NULL)
		return -1;
	if (type == H5FD_MEM_DRAW) {
		c->raw_at = at, c->raw_n = n, c->raw++;
		return 0; /* Go writes it */
	}
	for (const unsigned char *p = from; n > 0;) {
		size_t in = at % H5LIB_PAGE, piece = H5LIB_PAGE - in < n ? H5LIB_PAGE - in : n;
		unsigned char *to = writable(c->image, at / H5LIB_PAGE);
		if (to == NULL)
			return -1;
		memcpy(to + in, p, piece);
		p += piece, at += piece, n -= piece;
	}
	return 0;
}

static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 13, 0)
	.version = H5FD_CLASS_VERSION,
	.value = 511, /* of the range for drivers that are not published */
#endif
	.name = "benchpin",
	.maxaddr = HADDR_MAX - 1,
	.fc_degree = H5F_CLOSE_STRONG,
	.fapl_size = sizeof(context *),
	.open = drv_open,
	.close = drv_close,
	.query = drv_query,
	.get_eoa = drv_get_eoa,
	.set_eoa = drv_set_eoa,
	.get_eof = drv_get_eof,
	.read = drv_read,
	.write = drv_write,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

static herr_t first_error(unsigned n, const H5E_error2_t *e, void *to) {
	if (n == 0)
		snprintf(to, H5LIB_TEXT, "%s", e->desc);
	return 0;
}

/* fail keeps what the library says of its innermost error. */
static int fail(char *problem, const char *what) {
	char why[H5LIB_TEXT] = "";
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_error, why);
	snprintf(problem, H5LIB_TEXT, "%s: %.100s", what, why[0] ? why : "no reason given");
	return H5LIB_FAILED;
}

/* begin makes the library ready, and returns how to open a file that works on c. */
static hid_t begin(context *c) {
	if (driver < 0) {
		H5dont_atexit();
		if (H5open() < 0 || (driver = H5FDregister(&driver_class)) < 0)
			return -1;
	}
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	if (fapl >= 0 && (H5Pset_driver(fapl, driver, &c) < 0 || H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0)) {
		H5Pclose(fapl);
		return -1;
	}
	return fapl;
}

/* describe fills in what does not depend on the row. */
static int describe(hid_t set, hid_t space, hid_t type, hid_t dcpl, h5lib_row *out) {
	hsize_t dims[H5LIB_DIMS], chunk[H5LIB_DIMS];
	out->rank = H5Sget_simple_extent_ndims(space);
	if (out->rank < 0 || out->rank > H5LIB_DIMS || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
		return -1;
	out->storage = H5Pget_layout(dcpl);
	out->element = H5Tget_size(type);
	H5T_class_t class = H5Tget_class(type);
	out->number = class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_ENUM || class == H5T_BITFIELD || class == H5T_COMPOUND;
	for (int i = 0; i < out->rank; i++)
		out->dims[i] = dims[i];
	if (out->storage == H5D_CONTIGUOUS)
		out->address = H5Dget_offset(set);
	if (out->storage == H5D_CHUNKED) {
		if (H5Pget_chunk(dcpl, out->rank, chunk) != out->rank)
			return -1;
		for (int i = 0; i < out->rank; i++)
			out->chunk[i] = chunk[i];
		if ((out->filters = H5Pget_nfilters(dcpl)) < 0 || out->filters > H5LIB_FILTERS)
			return -1;
		for (int i = 0; i < out->filters; i++) {
			unsigned flags;
			size_t n = 0;
			out->filter[i] = H5Pget_filter2(dcpl, i, &flags, &n, NULL, 0, NULL, NULL);
		}
	}
	return 0;
}

/* find_chunks describes the chunks that hold the row, from number first on. */
static int find_chunks(context *c, hid_t set, uint64_t row, uint64_t first, h5lib_row *out) {
	out->chunks = 1;
	for (int i = 1; i < out->rank; i++) {
		if (out->chunk[i] == 0 || out->dims[i] == 0)
			return -1;
		uint64_t n = (out->dims[i] - 1) / out->chunk[i] + 1;
		if (n > (uint64_t)1 << 40 || out->chunks > ((uint64_t)1 << 40) / n)
			return -1;
		out->chunks *= n;
	}
	for (uint64_t k = first; k < out->chunks && out->got < H5LIB_CHUNKS; k++) {
		hsize_t at[H5LIB_DIMS], n = 0;
		uint64_t rest = k;
		for (int i = out->rank - 1; i > 0; i--) {
			uint64_t across = (out->dims[i] - 1) / out->chunk[i] + 1;
			at[i] = rest % across * out->chunk[i];
			rest /= across;
		}
		at[0] = row / out->chunk[0] * out->chunk[0];
		uint32_t skipped = 0;
		if (H5Dget_chunk_storage_size(set, at, &n) < 0) {
			if (c->missed)
				return -1;
			n = 0; /* versions differ in whether a chunk that was never written is an error */
		}
		if (n > 0) {
			/* Nothing is written there: the driver keeps the address, and Go reads. */
			void *nowhere = malloc(n);
			c->raw = 0;
			herr_t got = nowhere == NULL ? -1 : H5Dread_chunk(set, H5P_DEFAULT, at, &skipped, nowhere);
			free(nowhere);
			if (got < 0 || c->raw != 1 || c->raw_n != n)
				return -1;
		}
		out->at[out->got] = c->raw_at, out->n[out->got] = n, out->skipped[out->got++] = skipped;
	}
	return 0;
}

int h5lib_find(const unsigned char *pages, const uint64_t *numbers, size_t count, uint64_t size, const char *name, uint64_t row,
	uint64_t first, h5lib_row *out) {
	context c = {.pages = pages, .numbers = numbers, .count = count, .size = size};
	hid_t f = -1, set = -1, space = -1, type = -1, dcpl = -1;
	const char *what = "open the file";
	int result = H5LIB_FAILED;
	memset(out, 0, sizeof *out);
	pthread_mutex_lock(&one);
	hid_t fapl = begin(&c);
	H5Eclear2(H5E_DEFAULT);
	if (fapl >= 0 && (f = H5Fopen("benchpin", H5F_ACC_RDONLY, fapl)) >= 0) {
		what = "open the data set";
		if ((set = H5Dopen2(f, name, H5P_DEFAULT)) >= 0 && (space = H5Dget_space(set)) >= 0 && (type = H5Dget_type(set)) >= 0 &&
			(dcpl = H5Dget_create_plist(set)) >= 0 && describe(set, space, type, dcpl, out) >= 0) {
			what = "find the chunks";
			if (out->storage != H5D_CHUNKED || out->rank < 1 || row >= out->dims[0] || find_chunks(&c, set, row, first, out) >= 0)
				result = H5LIB_OK;
		}
	}
	if (c.missed) {
		out->miss_at = c.miss_at, out->miss_n = c.miss_n;
		result = H5LIB_MISS;
	} else if (result == H5LIB_FAILED) {
		fail(out->problem, what);
	}
	if (dcpl >= 0) H5Pclose(dcpl);
	if (type >= 0) H5Tclose(type);
	if (space >= 0) H5Sclose(space);
	if (set >= 0) H5Dclose(set);
	if (f >= 0) H5Fclose(f);
	if (fapl >= 0) H5Pclose(fapl);
	pthread_mutex_unlock(&one);
	return result;
}

/* write_chunks gives every chunk of a data set its place. */
static int write_chunks(context *c, const h5lib_plan *p, hid_t set, const uint64_t *sizes, uint64_t chunks, void *nowhere, uint64_t *addresses) {
	for (uint64_t k = 0; k < chunks; k++) {
		hsize_t at[H5LIB_DIMS];
		uint64_t rest = k;
		for (int i = p->rank - 1; i >= 0; i--) {
			uint64_t across = (p->dims[i] - 1) / p->chunk[i] + 1;
			at[i] = rest % across * p->chunk[i];
			rest /= across;
		}
		c->raw = 0;
		if (H5Dwrite_chunk(set, H5P_DEFAULT, 0, at, sizes[k], nowhere) < 0 || c->raw != 1 || c->raw_n != sizes[k])
			return -1;
		addresses[k] = c->raw_at;
	}
	return 0;
}

/* make writes the whole file. */
static int make(context *c, const h5lib_plan *p, hid_t f, hid_t dcpl, const uint64_t *sizes, uint64_t chunks, void *nowhere) {
	hsize_t dims[H5LIB_DIMS], max[H5LIB_DIMS], chunk[H5LIB_DIMS];
	int result = -1;
	for (int i = 0; i < p->rank; i++)
		dims[i] = p->dims[i], max[i] = p->max[i], chunk[i] = p->chunk[i];
	hid_t type = H5Tdecode(p->type), space = H5Screate_simple(p->rank, dims, max), row = H5Screate_simple(1, dims, NULL);
	hid_t labels = H5Pcreate(H5P_DATASET_CREATE);
	if (type < 0 || space < 0 || row < 0 || labels < 0 || H5Pset_chunk(dcpl, p->rank, chunk) < 0 || H5Pset_obj_track_times(dcpl, 0) < 0 ||
		(p->level >= 0 && H5Pset_deflate(dcpl, p->level) < 0))
		goto done;
	uint64_t each = chunks / p->datasets;
	for (int i = 0; i < p->datasets; i++) {
		char name[32];
		snprintf(name, sizeof name, "records_%d", i);
		hid_t set = H5Dcreate2(f, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
		if (set < 0)
			goto done;
		int wrote = write_chunks(c, p, set, sizes + i * each, each, nowhere, c->image->addresses + i * each);
		if (H5Dclose(set) < 0 || wrote < 0)
			goto done;
	}
	/* The labels are zeros: they get their place, and nothing is written there. */
	if (H5Pset_obj_track_times(labels, 0) < 0 || H5Pset_alloc_time(labels, H5D_ALLOC_TIME_EARLY) < 0 ||
		H5Pset_fill_time(labels, H5D_FILL_TIME_NEVER) < 0)
		goto done;
	hid_t set = H5Dcreate2(f, "labels", H5T_STD_I64LE, row, H5P_DEFAULT, labels, H5P_DEFAULT);
	if (set >= 0 && H5Dclose(set) >= 0)
		result = 0;
done:
	if (labels >= 0) H5Pclose(labels);
	if (row >= 0) H5Sclose(row);
	if (space >= 0) H5Sclose(space);
	if (type >= 0) H5Tclose(type);
	return result;
}

h5lib_image *h5lib_layout(const h5lib_plan *p, const uint64_t *sizes, uint64_t chunks, char *problem) {
	h5lib_image *image = calloc(1, sizeof *image);
	context c = {.image = image};
	uint64_t most = 1;
	for (uint64_t i = 0; i < chunks; i++)
		if (sizes[i] > most)
			most = sizes[i];
	void *nowhere = malloc(most);
	if (image != NULL)
		image->addresses = calloc(chunks, sizeof *image->addresses);
	pthread_mutex_lock(&one);
	int good = 0;
	hid_t f = -1, fapl = -1, fcpl = -1, dcpl = -1;
	if (image != NULL && image->addresses != NULL && nowhere != NULL && (fapl = begin(&c)) >= 0) {
		H5Eclear2(H5E_DEFAULT);
		fcpl = H5Pcreate(H5P_FILE_CREATE);
		dcpl = H5Pcreate(H5P_DATASET_CREATE);
		/* One version of the file format, whatever the library's own: that of DLIO's "latest" with libhdf5 1.10. */
		if (fcpl >= 0 && dcpl >= 0 && H5Pset_obj_track_times(fcpl, 0) >= 0 &&
			H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
			(f = H5Fcreate("benchpin", H5F_ACC_TRUNC, fcpl, fapl)) >= 0)
			good = make(&c, p, f, dcpl, sizes, chunks, nowhere) >= 0;
	}
	if (!good)
		fail(problem, "lay out the file");
	if (f >= 0 && H5Fclose(f) < 0 && good) {
		good = 0;
		fail(problem, "close the file");
	}
	if (dcpl >= 0) H5Pclose(dcpl);
	if (fcpl >= 0) H5Pclose(fcpl);
	if (fapl >= 0) H5Pclose(fapl);
	pthread_mutex_unlock(&one);
	free(nowhere);
	if (!good) {
		h5lib_free(image);
		return NULL;
	}
	return image;
}

uint64_t h5lib_size(const h5lib_image *image) { return image->size; }

const uint64_t *h5lib_addresses(const h5lib_image *image) { return image->addresses; }

void h5lib_copy(const h5lib_image *m, uint64_t at, uint64_t n, unsigned char *to) {
	while (n > 0) {
		uint64_t in = at % H5LIB_PAGE, piece = H5LIB_PAGE - in < n ? H5LIB_PAGE - in : n;
		const unsigned char *p = m->capacity ? m->pages[slot(m, at / H5LIB_PAGE)].data : NULL;
		if (p != NULL)
			memcpy(to, p + in, piece);
		else
			memset(to, 0, piece);
		to += piece, at += piece, n -= piece;
	}
}

void h5lib_free(h5lib_image *image) {
	if (image == NULL)
		return;
	for (size_t i = 0; i < image->capacity; i++)
		free(image->pages[i].data);
	free(image->pages);
	free(image->addresses);
	free(image);
}
