/*
 * The benchmark of `doctor --report`: CPU time of a server on this machine for plain HTTP, TLS encrypted in user space,
 * and kernel TLS. The server is a child process with one worker; it serves a part of this program's file over loopback.
 */
#ifndef DOCTOR_DOCTOR_BENCHMARK_H
#define DOCTOR_DOCTOR_BENCHMARK_H

#include "base/must_check.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum benchmark_path { BENCHMARK_PLAIN, BENCHMARK_USER, BENCHMARK_KTLS, BENCHMARK_PATHS };
enum benchmark_size { BENCHMARK_LARGE, BENCHMARK_SMALL, BENCHMARK_SIZES };
/* Names of the paths, and lengths of the bodies in bytes. */
extern const char *const benchmark_path_names[BENCHMARK_PATHS];
extern const uint32_t benchmark_lengths[BENCHMARK_SIZES];

enum { BENCHMARK_ROUNDS = 5, BENCHMARK_SECONDS = 120 };

/* One measurement. */
struct benchmark_sample {
    uint64_t responses;
    uint64_t bytes;                 /* of bodies */
    uint64_t cpu_ns;                /* of the worker */
    uint64_t elapsed_us;
};

struct benchmark {
    char fault[192];                /* the reason why there are no or fewer samples; empty: none */
    unsigned rounds;                /* planned */
    /* Number of samples; small bodies are not measured with kernel TLS. */
    unsigned counts[BENCHMARK_SIZES][BENCHMARK_PATHS];
    struct benchmark_sample samples[BENCHMARK_SIZES][BENCHMARK_PATHS][BENCHMARK_ROUNDS];
    double load_before;             /* load average of the last minute before the benchmark; negative: unknown */
};

/*
 * Measures for `seconds` (1 to LIMIT_BENCHMARK_SECONDS), in rounds, all paths in turn, kernel TLS only with `ktls`. If
 * a path has no complete responses in its share of this time, it takes up to `late_s` more, and there are fewer rounds.
 * Prints progress on the standard error. Ends early if `*stop` is set by a signal. All processes that it started have
 * ended when it returns.
 */
void doctor_benchmark(unsigned seconds, unsigned late_s, bool ktls, const volatile sig_atomic_t *stop,
                      struct benchmark *out_benchmark);

/* Figures of one size and path: the median of the samples, with the smallest and the largest. */
struct benchmark_figure {
    double median, min, max;
};
/* The quantities of a sample. */
enum benchmark_unit {
    BENCHMARK_CPU_PER_GB,           /* CPU seconds per 10^9 bytes */
    BENCHMARK_GB_PER_SECOND,
    BENCHMARK_CPU_PER_RESPONSE,     /* CPU time in us */
    BENCHMARK_RESPONSES_PER_SECOND,
};
/* False: no samples. */
bool benchmark_figure(const struct benchmark *benchmark, enum benchmark_size size, enum benchmark_path path,
                      enum benchmark_unit unit, struct benchmark_figure *out_figure);

/* doctor_benchmark_server.c */

struct benchmark_server {
    pid_t master;
    uint16_t ports[BENCHMARK_PATHS]; /* 0: not served */
};

/* Starts the server; its sockets listen when this returns. Returns 0, or -errno with the reason in `fault`. */
MUST_CHECK int benchmark_server_start(struct benchmark_server *server, bool ktls, char *fault, size_t fault_size);
/* Returns the process id of the worker, or -errno: -ECHILD if there is none. */
MUST_CHECK pid_t benchmark_server_worker(const struct benchmark_server *server);
/* Ends the server and waits for it. */
void benchmark_server_stop(struct benchmark_server *server);

#endif
