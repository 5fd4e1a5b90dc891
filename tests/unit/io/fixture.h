/* Shared by the tests of the loop: backends by number, ops that count calls of `done`, pairs of connected sockets. */
#ifndef TESTS_IO_FIXTURE_H
#define TESTS_IO_FIXTURE_H

#include "io/loop.h"

#include <check.h>

/* The backends under test, by number: first those of the kernel, last the scripted one. */
const struct loop_backend *tested_backend(int index);
int tested_backend_count(void);
int kernel_backend_count(void);

/* One op and its results. */
struct probe {
    struct op op;
    struct loop *loop;
    int runs;
    int result;
    char bytes[64];                 /* the first bytes that a receive lent */
    void (*then)(struct probe *probe);
};

/*
 * Opens the loop with backend `index`. Returns false if the machine lacks this backend; the test then passes without a
 * check.
 */
bool open_loop(struct loop *loop, int index);

void probe_init(struct probe *probe, struct loop *loop);
/* Runs the loop until the probe's op has completed `runs` times, for a few seconds at most. */
void run_until_done(struct probe *probe, int runs);
/* Runs a few iterations that do not wait. */
void turn_some(struct loop *loop, int turns);

/*
 * A connection. The local end is non-blocking and belongs to the loop; the functions below act on the other end, the
 * peer. The scripted backend creates both ends itself.
 */
void tcp_pair(struct loop *loop, int *out_local, int *out_peer);
void unix_pair(struct loop *loop, int *out_local, int *out_peer);
/* Sends the text, which must fit the socket buffer. */
void peer_send(int peer, const char *text);
void peer_send_bytes(int peer, const void *bytes, size_t length);
/* Closes in order, or resets the connection. */
void peer_close(int peer);
void peer_reset(int peer);
/* Returns the number of bytes that the peer has received and not read. */
size_t peer_pending(int peer);
/* Reads the available bytes and compares them with the pattern from *at on. */
void peer_drain_pattern(int peer, size_t *at);

/* A file of `length` bytes, already unlinked. Byte i is (char)(i * 7 + i / 256). */
int pattern_file(size_t length);
char pattern_byte(size_t at);
/* Compares the bytes with the pattern from *at on, and advances *at. */
void check_pattern(const char *bytes, size_t length, size_t *at);
/* The same bytes in memory; the caller frees them. */
char *pattern_memory(size_t length);

#endif
