//go:build mpi && cgo

#define _GNU_SOURCE
#include "shim.h"

#if defined(__has_include)
#if !__has_include(<mpi.h>)
#error "mpi.h is missing: build with the compiler of your MPI, CC=mpicc CGO_ENABLED=1 go build -tags mpi"
#endif
#endif

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { tag_message = 1, tag_control = 2 };

/* Data and control have a communicator each, so that neither can be taken for the other. */
static MPI_Comm world = MPI_COMM_NULL, control = MPI_COMM_NULL;
static int ranks;

static int64_t *numbers;
static int numbers_room;
static unsigned char *bytes;
static int bytes_room;
static MPI_Request operation = MPI_REQUEST_NULL;

static unsigned char heard[shim_control_bytes];
static MPI_Request hearing = MPI_REQUEST_NULL;

/* What is being said to each process, and how it is going. */
static unsigned char **said;
static MPI_Request *saying;

int shim_start(int *rank, int *size, int *provided, char *node, int node_bytes) {
	char name[MPI_MAX_PROCESSOR_NAME + 1] = {0};
	int code, length = 0, i;

	if ((code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, provided)))
		return code;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &world)) || (code = MPI_Comm_dup(MPI_COMM_WORLD, &control)))
		return code;
	if ((code = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN)) || (code = MPI_Comm_set_errhandler(control, MPI_ERRORS_RETURN)))
		return code;
	if ((code = MPI_Comm_rank(world, rank)) || (code = MPI_Comm_size(world, size)) || (code = MPI_Get_processor_name(name, &length)))
		return code;
	strncpy(node, name, node_bytes - 1);
	node[node_bytes - 1] = 0;
	ranks = *size;
	said = calloc(ranks, sizeof *said);
	saying = calloc(ranks, sizeof *saying);
	if (!said || !saying)
		return MPI_ERR_NO_MEM;
	for (i = 0; i < ranks; i++)
		saying[i] = MPI_REQUEST_NULL;
	prctl(PR_SET_TIMERSLACK, 1UL); /* else every short sleep of this thread takes 50 us more */
	return shim_control_next();
}

void shim_error(int code, char *text, int n) {
	char all[MPI_MAX_ERROR_STRING + 1] = {0};
	int length = 0;

	if (MPI_Error_string(code, all, &length))
		strcpy(all, "unknown error");
	strncpy(text, all, n - 1);
	text[n - 1] = 0;
}

void shim_version(char *text, int n) {
	char all[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {0};
	int length = 0;

	MPI_Get_library_version(all, &length);
	strncpy(text, all, n - 1);
	text[n - 1] = 0;
}

int64_t *shim_numbers(int n) {
	if (n > numbers_room) {
		int64_t *more = realloc(numbers, n * sizeof *more);
		if (!more)
			return NULL;
		numbers = more;
		numbers_room = n;
	}
	return numbers;
}

unsigned char *shim_bytes(int n) {
	if (n > bytes_room) {
		unsigned char *more = realloc(bytes, n);
		if (!more)
			return NULL;
		bytes = more;
		bytes_room = n;
	}
	return bytes;
}

int shim_allreduce(int n, int max) {
	return MPI_Iallreduce(MPI_IN_PLACE, numbers, n, MPI_INT64_T, max ? MPI_MAX : MPI_SUM, world, &operation);
}

int shim_send(int n, int to) { return MPI_Isend(bytes, n, MPI_BYTE, to, tag_message, world, &operation); }

int shim_recv(int n, int from) { return MPI_Irecv(bytes, n, MPI_BYTE, from, tag_message, world, &operation); }

static long micros(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

/* How long to sleep when an operation has been waited for that long. A wait is spun for as long as a message takes between two cores; then
 * it becomes a sixteenth longer than it had to be, 200 us at most, and from one second on 1 ms: what a nap costs is the few microseconds of
 * waking up and asking, so a process that waits takes a few hundredths of a core from those that read. */
static long nap(long waited_us) {
	if (waited_us < 20)
		return 0;
	if (waited_us > 1000000)
		return 1000;
	long sixteenth = waited_us / 16;
	return sixteenth < 5 ? 5 : sixteenth > 200 ? 200 : sixteenth;
}

int shim_wait(long waited_us, long limit_us, int *done, int *heard_bytes, int *from) {
	long begin = micros();

	*done = 0;
	*heard_bytes = -1;
	for (;;) {
		MPI_Status status;
		int code, flag = 0;

		if (operation != MPI_REQUEST_NULL) {
			if ((code = MPI_Test(&operation, &flag, &status)))
				return code;
			if (flag)
				*done = 1;
		}
		if (hearing != MPI_REQUEST_NULL) {
			flag = 0;
			if ((code = MPI_Test(&hearing, &flag, &status)))
				return code;
			if (flag) {
				*from = status.MPI_SOURCE;
				if ((code = MPI_Get_count(&status, MPI_BYTE, heard_bytes)))
					return code;
			}
		}
		long now = micros() - begin;
		if (*done || *heard_bytes >= 0 || now >= limit_us)
			return MPI_SUCCESS;
		long us = nap(waited_us + now);
		if (us > limit_us - now)
			us = limit_us - now;
		if (us == 0)
			continue;
		struct timespec t = {0, us * 1000};
		nanosleep(&t, NULL);
	}
}

unsigned char *shim_control_message(void) { return heard; }

int shim_control_next(void) {
	return MPI_Irecv(heard, sizeof heard, MPI_BYTE, MPI_ANY_SOURCE, tag_control, control, &hearing);
}

int shim_control_send(const unsigned char *p, int n, int to, int *busy) {
	int code, flag = 1;

	*busy = 0;
	if (saying[to] != MPI_REQUEST_NULL) {
		if ((code = MPI_Test(&saying[to], &flag, MPI_STATUS_IGNORE)))
			return code;
		if (!flag) {
			*busy = 1;
			return MPI_SUCCESS;
		}
	}
	if (!said[to] && !(said[to] = malloc(shim_control_bytes)))
		return MPI_ERR_NO_MEM;
	memcpy(said[to], p, n);
	return MPI_Isend(said[to], n, MPI_BYTE, to, tag_control, control, &saying[to]);
}

int shim_control_pending(int *pending) {
	int i, code;

	*pending = 0;
	for (i = 0; i < ranks; i++) {
		int flag = 1;
		if (saying[i] != MPI_REQUEST_NULL && (code = MPI_Test(&saying[i], &flag, MPI_STATUS_IGNORE)))
			return code;
		if (!flag)
			*pending = 1;
	}
	return MPI_SUCCESS;
}

/* MPICH 4.0 over UCX and TCP closes each connection in MPI_Finalize with the help of its other end, which helps while it is in MPI, but not
 * any more where it is further in MPI_Finalize. Nobody may get further while another is still busy in an earlier call: so all leave the
 * last one, and are out of MPI for a while, before the first enters. */
int shim_finish(void) {
	if (hearing != MPI_REQUEST_NULL) {
		MPI_Cancel(&hearing);
		MPI_Wait(&hearing, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(world);
	MPI_Comm_free(&control);
	MPI_Comm_free(&world);
	struct timespec t = {0, 100000000};
	nanosleep(&t, NULL);
	return MPI_Finalize();
}

void shim_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }
