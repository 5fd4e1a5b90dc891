/*
 * What the loop's tests share: backends by number, ops that count their `done`,
 * pairs of connected sockets.
 */
#ifndef TESTS_IO_FIXTURE_H
#define TESTS_IO_FIXTURE_H

#include "io/loop.h"

#include <check.h>

/* The backends under test, by number: those of the kernel first, the scripted one last. */
const struct loop_backend *tested_backend(int index);
int tested_backend_count(void);
int kernel_backend_count(void);

/* One op and what became of it. */
struct probe {
    struct op op;
    struct loop *loop;
    int runs;
    int result;
    char bytes[64];                 /* the first that a receive lent */
    void (*then)(struct probe *probe);
};

/* Opens loop with backend `index`; false where the machine has it not (the test then passes empty). */
bool open_loop(struct loop *loop, int index);

void probe_init(struct probe *probe, struct loop *loop);
/* Turns the loop until the probe's op is done `runs` times, for at most some seconds. */
void run_until_done(struct probe *probe, int runs);
/* A few turns without waiting. */
void turn_some(struct loop *loop, int turns);

/*
 * A connection: the near end is non-blocking, for the loop; the far end is the peer's, for the functions below. The
 * scripted backend makes its own of both kinds.
 */
void tcp_pair(struct loop *loop, int *out_near, int *out_far);
void unix_pair(struct loop *loop, int *out_near, int *out_far);
/* The peer sends, which always fits. */
void say(int far, const char *text);
void say_bytes(int far, const void *bytes, size_t length);
/* The peer closes; or goes away with a reset. */
void far_close(int far);
void far_reset(int far);
/* Bytes that have reached the peer and were not drained. */
size_t far_pending(int far);
/* The peer reads what is there and checks it against the pattern from *at on. */
void far_drain_pattern(int far, size_t *at);

/* A file of `length` bytes, byte i being (char)(i * 7 + i / 256), unlinked already. */
int pattern_file(size_t length);
char pattern_byte(size_t at);
/* Checks bytes against the pattern from *at on, and moves *at past them. */
void check_pattern(const char *bytes, size_t length, size_t *at);
/* The same bytes in memory, to be freed. */
char *pattern_memory(size_t length);

#endif
