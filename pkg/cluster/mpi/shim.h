#ifndef BENCHPIN_MPI_SHIM_H
#define BENCHPIN_MPI_SHIM_H

#include <stdint.h>

/*
 * What Go asks of MPI, one thread at a time. All memory that the library may touch after a call returns lies here, in C.
 * Functions that return int return an MPI error code, 0 for success, unless said otherwise.
 */

enum { shim_control_bytes = 4096 + 64 };

/* Starts the library and finds out where this process stands. provided is the thread level. */
int shim_start(int *rank, int *size, int *provided, char *node, int node_bytes);

/* Text of an error code, and of the library's version. */
void shim_error(int code, char *text, int bytes);
void shim_version(char *text, int bytes);

/* Starts one operation; there is at most one at a time. shim_numbers and shim_bytes return where its data is to be put before, and
 * found after it: n numbers, n bytes, or NULL when there is no memory. */
int64_t *shim_numbers(int n);
unsigned char *shim_bytes(int n);
int shim_allreduce(int n, int max);
int shim_send(int n, int to);
int shim_recv(int n, int from);

/* Waits for the operation or for a control message, for limit_us at most; with limit 0 it only lets the library do its work. done becomes
 * 1 when the operation is done, and heard_bytes the length of a control message that has come (shim_control_message, from *from), else
 * -1. waited_us is how long the operation has been waited for before: waiting grows lazier with it. */
int shim_wait(long waited_us, long limit_us, int *done, int *heard_bytes, int *from);
unsigned char *shim_control_message(void);
/* Waits for the next control message: to be called when the last was used. */
int shim_control_next(void);

/* Sends a control message without waiting for it. *busy becomes 1, and nothing is sent, when the last one to that process is still
 * under way. */
int shim_control_send(const unsigned char *p, int n, int to, int *busy);
/* *pending becomes 1 while control messages are under way. */
int shim_control_pending(int *pending);

/* Ends the library, in agreement with all others (0), or all processes (shim_abort; does not return). */
int shim_finish(void);
void shim_abort(int code);

#endif
