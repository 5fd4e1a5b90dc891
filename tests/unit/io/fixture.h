/*
 * What the loop's tests share: backends by number, ops that count their `done`,
 * pairs of connected sockets.
 */
#ifndef TESTS_IO_FIXTURE_H
#define TESTS_IO_FIXTURE_H

#include "io/loop.h"

#include <check.h>

/* The backends under test, by number. */
const struct loop_backend *tested_backend(int index);
int tested_backend_count(void);

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

/* A connected pair of non-blocking TCP sockets on the loopback interface. */
void tcp_pair(int *out_near, int *out_far);
/* A connected pair of non-blocking UNIX stream sockets. */
void unix_pair(int *out_near, int *out_far);
/* A file of `length` bytes, byte i being (char)(i * 7 + i / 256), unlinked already. */
int pattern_file(size_t length);
char pattern_byte(size_t at);
/* The same bytes in memory, to be freed. */
char *pattern_memory(size_t length);
/* Reads what is there and checks it against the pattern from *at on. */
void drain_pattern(int fd, size_t *at);
/* Writes the whole text. */
void say(int fd, const char *text);

#endif
