/*
 * The rounds of the benchmark, and the figures of their samples. Each round measures all paths one after the other, so
 * that other load of the machine affects all of them.
 */
#include "doctor/doctor_benchmark.h"

#include "base/clock.h"
#include "base/limits.h"
#include "doctor/doctor_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* WARM_UP: the part of a measurement that precedes the measured time is 1 / WARM_UP. */
enum { WARM_UP = 8, LARGE_CONNECTIONS = 8, SECONDS_OF_ROUNDS = 4 };

const char *const benchmark_path_names[BENCHMARK_PATHS] = {
    [BENCHMARK_PLAIN] = "plain HTTP", [BENCHMARK_USER] = "TLS in user space", [BENCHMARK_KTLS] = "kernel TLS"};
const uint32_t benchmark_lengths[BENCHMARK_SIZES] = {[BENCHMARK_LARGE] = 1 << 20, [BENCHMARK_SMALL] = 1 << 10};

struct benchmark_run {
    struct benchmark *benchmark;
    struct benchmark_server server;
    const volatile sig_atomic_t *stop;
    uint64_t end_us, last_us; /* CLOCK_MONOTONIC: the planned end; the latest end, of measurements without responses */
    unsigned left; /* measurements, which share the time until end_us */
};

/* The kernel encrypts only large bodies. */
static bool is_measured(const struct benchmark_run *run, enum benchmark_size size, enum benchmark_path path)
{
    return run->server.ports[path] && (size == BENCHMARK_LARGE || path != BENCHMARK_KTLS);
}

/* Runs the client until `end_us`, and counts its responses and the CPU time of the worker. Returns 0 or -errno. */
static int take_sample(struct benchmark_run *run, struct load_client *client, uint64_t end_us,
                       struct benchmark_sample *out_sample)
{
    pid_t worker = benchmark_server_worker(&run->server);
    uint64_t start_us = clock_monotonic_us(), before_ns = 0, after_ns = 0;
    struct load_counts counts = {0};
    int result = worker < 0 ? (int)worker : clock_pid_cpu_ns(worker, &before_ns);

    if (result == 0)
        result = load_run(client, end_us, LIMIT_BENCHMARK_BYTES, run->stop, &counts);
    if (result == 0)
        result = load_await(client, run->stop, &counts);
    if (result == 0)
        result = clock_pid_cpu_ns(worker, &after_ns);
    if (result < 0)
        return result;
    *out_sample = (struct benchmark_sample){.responses = counts.responses,
                                            .bytes = counts.bytes,
                                            .cpu_ns = after_ns - before_ns,
                                            .elapsed_us = clock_monotonic_us() - start_us};
    return counts.responses > 0 || *run->stop ? 0 : -ENODATA;
}

/* One measurement, in its share of the remaining time. Returns 0 or -errno. */
static int measure_path(struct benchmark_run *run, enum benchmark_size size, enum benchmark_path path)
{
    const struct load load = {.port = run->server.ports[path],
                              .tls = path != BENCHMARK_PLAIN,
                              .length = benchmark_lengths[size],
                              .connections = size == BENCHMARK_LARGE ? LARGE_CONNECTIONS : LOAD_CONNECTIONS,
                              .last_us = run->last_us};
    struct benchmark *benchmark = run->benchmark;
    unsigned *count = &benchmark->counts[size][path];
    struct load_counts ignored = {0};
    struct load_client *client;
    uint64_t start_us, share_us;
    int result = load_open(&load, &client);

    start_us = clock_monotonic_us(); /* after the handshakes, which may take long on a slow machine */
    share_us = run->end_us > start_us ? (run->end_us - start_us) / run->left : 0;
    run->left--;
    if (result < 0)
        return result;
    result = load_run(client, start_us + share_us / WARM_UP, LIMIT_BENCHMARK_BYTES / WARM_UP, run->stop, &ignored);
    if (result == 0)
        result = take_sample(run, client, start_us + share_us, &benchmark->samples[size][path][*count]);
    if (result == 0 && !*run->stop)
        ++*count;
    load_close(client);
    return result;
}

static void set_fault(struct benchmark_run *run, enum benchmark_size size, enum benchmark_path path, int error)
{
    snprintf(run->benchmark->fault, sizeof(run->benchmark->fault), "%s, bodies of %u KiB: %s",
             benchmark_path_names[path], benchmark_lengths[size] >> 10,
             error == -ENODATA || error == -ETIMEDOUT ? "no response was complete in time" : strerror(-error));
}

/* Returns false if the benchmark ended early. */
static bool run_round(struct benchmark_run *run)
{
    for (enum benchmark_size size = 0; size < BENCHMARK_SIZES; size++) {
        for (enum benchmark_path path = 0; path < BENCHMARK_PATHS; path++) {
            int result = is_measured(run, size, path) ? measure_path(run, size, path) : 0;

            if (*run->stop)
                return false;
            if (result < 0) {
                set_fault(run, size, path, result);
                return false;
            }
        }
    }
    return true;
}

/* Waits until the worker responds. Returns 0 or -errno. */
static int wait_for_worker(const struct benchmark_run *run)
{
    uint64_t end_us = clock_monotonic_us() + (uint64_t)LIMIT_BENCHMARK_START_MS * 1000;
    const struct load load = {.port = run->server.ports[BENCHMARK_PLAIN],
                              .length = benchmark_lengths[BENCHMARK_SMALL],
                              .connections = 1,
                              .last_us = end_us};
    struct load_counts counts = {0};
    struct load_client *client;
    int result = load_open(&load, &client);

    if (result < 0)
        return result;
    result = load_run(client, end_us, 1, run->stop, &counts);
    load_close(client);
    return result == 0 && counts.bytes == 0 && !*run->stop ? -ETIMEDOUT : result;
}

static unsigned count_measurements(const struct benchmark_run *run)
{
    unsigned count = 0;

    for (enum benchmark_size size = 0; size < BENCHMARK_SIZES; size++) {
        for (enum benchmark_path path = 0; path < BENCHMARK_PATHS; path++)
            count += is_measured(run, size, path);
    }
    return count * run->benchmark->rounds;
}

/* False if less than half of a round would end in time. `round_us`: the duration of the last round. */
static bool has_time_for_round(const struct benchmark_run *run, uint64_t round_us)
{
    return clock_monotonic_us() + round_us / 2 <= run->end_us;
}

static void run_rounds(struct benchmark_run *run, unsigned seconds, unsigned late_s)
{
    int error = wait_for_worker(run);
    uint64_t start_us, round_us = 0;

    if (error < 0)
        snprintf(run->benchmark->fault, sizeof(run->benchmark->fault),
                 "the server of the benchmark does not respond: %s", strerror(-error));
    run->left = count_measurements(run);
    run->end_us = clock_monotonic_us() + (uint64_t)seconds * 1000000;
    run->last_us = run->end_us + (uint64_t)late_s * 1000000;
    for (unsigned round = 0; round < run->benchmark->rounds && error == 0; round++) {
        if (round > 0 && !has_time_for_round(run, round_us))
            return;
        fprintf(stderr, "benchmark: round %u of %u\n", round + 1, run->benchmark->rounds);
        start_us = clock_monotonic_us();
        if (!run_round(run))
            return;
        round_us = clock_monotonic_us() - start_us;
    }
}

void doctor_benchmark(unsigned seconds, unsigned late_s, bool ktls, const volatile sig_atomic_t *stop,
                      struct benchmark *out_benchmark)
{
    struct benchmark_run run = {.benchmark = out_benchmark, .stop = stop};

    *out_benchmark = (struct benchmark){.load_before = -1};
    if (getloadavg(&out_benchmark->load_before, 1) != 1)
        out_benchmark->load_before = -1;
    if (benchmark_server_start(&run.server, ktls, out_benchmark->fault, sizeof(out_benchmark->fault)) < 0)
        return;
    out_benchmark->rounds = 1 + seconds / SECONDS_OF_ROUNDS;
    if (out_benchmark->rounds > BENCHMARK_ROUNDS)
        out_benchmark->rounds = BENCHMARK_ROUNDS;
    run_rounds(&run, seconds, late_s);
    benchmark_server_stop(&run.server);
}

static double value_of(const struct benchmark_sample *sample, enum benchmark_unit unit)
{
    double seconds = (double)sample->elapsed_us / 1e6;

    switch (unit) {
    case BENCHMARK_CPU_PER_GB:
        return sample->bytes ? (double)sample->cpu_ns / (double)sample->bytes : 0;
    case BENCHMARK_GB_PER_SECOND:
        return seconds > 0 ? (double)sample->bytes / 1e9 / seconds : 0;
    case BENCHMARK_CPU_PER_RESPONSE:
        return sample->responses ? (double)sample->cpu_ns / 1e3 / (double)sample->responses : 0;
    case BENCHMARK_RESPONSES_PER_SECOND:
        return seconds > 0 ? (double)sample->responses / seconds : 0;
    }
    return 0;
}

static int compare_values(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

bool benchmark_figure(const struct benchmark *benchmark, enum benchmark_size size, enum benchmark_path path,
                      enum benchmark_unit unit, struct benchmark_figure *out_figure)
{
    unsigned count = benchmark->counts[size][path];
    double values[BENCHMARK_ROUNDS];

    if (count == 0)
        return false;
    for (unsigned i = 0; i < count; i++)
        values[i] = value_of(&benchmark->samples[size][path][i], unit);
    qsort(values, count, sizeof(*values), compare_values);
    *out_figure = (struct benchmark_figure){.median = (values[(count - 1) / 2] + values[count / 2]) / 2,
                                            .min = values[0],
                                            .max = values[count - 1]};
    return true;
}
