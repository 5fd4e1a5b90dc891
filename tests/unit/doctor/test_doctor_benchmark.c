#include "doctor/doctor_benchmark.h"

#include "../runner.h"
#include "base/limits.h"
#include "doctor/doctor_load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct benchmark benchmark;
static unsigned clock_speed = 1;    /* as a multiple of that of CLOCK_MONOTONIC */

uint64_t __real_clock_monotonic_us(void);
uint64_t __wrap_clock_monotonic_us(void);

uint64_t __wrap_clock_monotonic_us(void)
{
    return clock_speed * __real_clock_monotonic_us();
}

static void no_child_remains(void)
{
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

/* Returns the status of the response to a request. */
static int status_of(uint16_t port, const char *path)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0), status = 0;
    char text[256];
    ssize_t length = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);

    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(write(fd, text, (size_t)length), length);
    length = recv(fd, text, sizeof("HTTP/1.1 200") - 1, MSG_WAITALL);
    ck_assert_int_eq(length, sizeof("HTTP/1.1 200") - 1);
    text[length] = '\0';
    ck_assert_int_eq(sscanf(text, "HTTP/1.1 %d", &status), 1);
    close(fd);
    return status;
}

START_TEST(each_path_is_measured)
{
    const volatile sig_atomic_t never = 0;

    doctor_benchmark(1, LIMIT_BENCHMARK_LATE_S, false, &never, &benchmark);
    ck_assert_str_eq(benchmark.fault, "");
    ck_assert_uint_eq(benchmark.rounds, 1);
    for (enum benchmark_size size = 0; size < BENCHMARK_SIZES; size++) {
        for (enum benchmark_path path = 0; path < BENCHMARK_KTLS; path++) {
            const struct benchmark_sample *sample = &benchmark.samples[size][path][0];

            ck_assert_uint_eq(benchmark.counts[size][path], 1);
            ck_assert_uint_gt(sample->cpu_ns, 0);
            ck_assert_uint_gt(sample->elapsed_us, 0);
            ck_assert_uint_gt(sample->responses, 0);
            /* At each end of the sample, responses of all connections may be incomplete. */
            ck_assert_uint_ge(sample->bytes + LOAD_CONNECTIONS * (uint64_t)benchmark_lengths[size],
                              sample->responses * benchmark_lengths[size]);
            ck_assert_uint_le(sample->bytes, (sample->responses + LOAD_CONNECTIONS) * benchmark_lengths[size]);
        }
        ck_assert_uint_eq(benchmark.counts[size][BENCHMARK_KTLS], 0);
    }
    no_child_remains();
}
END_TEST

START_TEST(signal_ends_the_benchmark)
{
    const volatile sig_atomic_t now = SIGINT;

    doctor_benchmark(120, LIMIT_BENCHMARK_LATE_S, false, &now, &benchmark);
    ck_assert_str_eq(benchmark.fault, "");
    ck_assert_uint_eq(benchmark.counts[BENCHMARK_LARGE][BENCHMARK_PLAIN], 0);
    no_child_remains();
}
END_TEST

static pid_t child_of(pid_t parent)
{
    char path[64];
    int child = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &child), 1);
    fclose(file);
    return child;
}

/* Stops the worker when the pipe has the line of the first round. */
static void *stop_worker(void *progress)
{
    static pid_t worker;
    char line[128];

    ck_assert_int_gt(read(*(int *)progress, line, sizeof(line)), 0);
    worker = child_of(child_of(getpid()));
    ck_assert_int_eq(kill(worker, SIGSTOP), 0);
    return &worker;
}

/* The time of all measurements is limited, not that of each. */
START_TEST(worker_that_stops_ends_the_benchmark)
{
    const volatile sig_atomic_t never = 0;
    int progress[2], before = dup(STDERR_FILENO);
    pthread_t thread;
    void *worker;

    ck_assert_int_eq(pipe(progress), 0);
    ck_assert_int_eq(dup2(progress[1], STDERR_FILENO), STDERR_FILENO);
    close(progress[1]);
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_worker, &progress[0]), 0);
    clock_speed = 2;
    doctor_benchmark(3, 0, false, &never, &benchmark);
    dup2(before, STDERR_FILENO);
    close(before);
    pthread_join(thread, &worker);
    kill(*(pid_t *)worker, SIGKILL);
    close(progress[0]);
    ck_assert_str_ne(benchmark.fault, "");
    ck_assert_uint_eq(benchmark.counts[BENCHMARK_SMALL][BENCHMARK_USER], 0);
    no_child_remains();
}
END_TEST

START_TEST(server_has_one_worker)
{
    struct benchmark_server server;
    char fault[192] = "";
    pid_t worker;

    ck_assert_int_eq(benchmark_server_start(&server, false, fault, sizeof(fault)), 0);
    ck_assert_uint_ne(server.ports[BENCHMARK_PLAIN], server.ports[BENCHMARK_USER]);
    ck_assert_uint_eq(server.ports[BENCHMARK_KTLS], 0);
    for (worker = -ECHILD; worker == -ECHILD;)
        worker = benchmark_server_worker(&server);
    ck_assert_int_gt(worker, 0);
    ck_assert_int_ne(worker, server.master);
    benchmark_server_stop(&server);
    ck_assert_int_lt(benchmark_server_worker(&server), 0);
    benchmark_server_stop(&server);
    no_child_remains();
}
END_TEST

/* The directory of the program may contain other files: a client cannot get them. */
START_TEST(other_paths_are_not_served)
{
    static const char *const paths[] = {"/", "/test_doctor_benchmark", "/body/", "/body/../test_doctor_benchmark"};
    struct benchmark_server server;
    char fault[192] = "";

    ck_assert_int_eq(benchmark_server_start(&server, false, fault, sizeof(fault)), 0);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        ck_assert_msg(status_of(server.ports[BENCHMARK_PLAIN], paths[i]) == 404, "%s", paths[i]);
    ck_assert_int_eq(status_of(server.ports[BENCHMARK_PLAIN], LOAD_PATH), 200);
    benchmark_server_stop(&server);
}
END_TEST

/* A server that ends is an error, not an endless measurement. */
START_TEST(server_that_ends_is_an_error)
{
    const struct load load = {.length = 1024, .connections = 2, .last_us = UINT64_MAX};
    const volatile sig_atomic_t never = 0;
    struct load_counts counts = {0};
    struct load_client *client;
    struct benchmark_server server;
    struct load own = load;
    char fault[192] = "";

    ck_assert_int_eq(benchmark_server_start(&server, false, fault, sizeof(fault)), 0);
    own.port = server.ports[BENCHMARK_PLAIN];
    ck_assert_int_eq(load_open(&own, &client), 0);
    ck_assert_int_eq(load_run(client, UINT64_MAX, 4096, &never, &counts), 0);
    ck_assert_uint_ge(counts.bytes, 4096);
    benchmark_server_stop(&server);
    ck_assert_int_lt(load_run(client, UINT64_MAX, UINT64_MAX, &never, &counts), 0);
    load_close(client);
    ck_assert_int_lt(load_open(&own, &client), 0);
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return run_tests("doctor_benchmark",
                     (const TTest *const[]){each_path_is_measured, signal_ends_the_benchmark,
                                            worker_that_stops_ends_the_benchmark, server_has_one_worker,
                                            other_paths_are_not_served, server_that_ends_is_an_error, NULL});
}
