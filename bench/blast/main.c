/*
 * blast: a load generator that uses little CPU compared with the measured server, so that the server is the
 * bottleneck. It prints one line of JSON when it is ready and one with the counts. blast.h describes the
 * method, bench/README.md the purpose.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include "blast.h"

static double own_cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void request_write(const struct blast *blast, const char *more, char *into, size_t size)
{
    int length = snprintf(into, size, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n%s\r\n",
                          blast->options->path, more);

    if (length < 0 || (size_t)length >= size) {
        errno = 0;
        fatal("the path is too long");
    }
}

/* Raises the limit of descriptors to its hard limit. */
static void limits_raise(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static double run(struct blast *blast, double seconds, struct counts *out_measured)
{
    double elapsed;

    if (blast->options->mode == MODE_HANDSHAKES) {
        elapsed = run_handshakes(blast, seconds);
        *out_measured = blast->done;
        return elapsed;
    }
    if (blast->options->slow > 0)
        return run_slow(blast, seconds, out_measured);
    return run_requests(blast, seconds, out_measured);
}

static void ready_print(const struct blast *blast)
{
    const SSL *ssl = blast->connections ? blast->connections[0].ssl : NULL;

    printf("{\"ready\": true, \"response_length\": %llu, \"version\": \"%s\", \"suite\": \"%s\", \"connect_time\": ",
           (unsigned long long)blast->response_length, ssl ? SSL_get_version(ssl) : "", ssl ? SSL_get_cipher(ssl) : "");
    histogram_print(&blast->connect_time, stdout);
    puts("}");
    fflush(stdout);
}

static void result_print(const struct blast *blast, const struct counts *measured, double seconds, double cpu)
{
    double length = (double)blast->response_length;       /* an incomplete response counts as a fraction */

    printf("{\"responses\": %.3f, \"bytes\": %llu, \"seconds\": %.6f, \"responses_all\": %.3f, \"bytes_all\": %llu, "
           "\"client_cpu\": %.6f, \"verified\": %llu, \"handshakes\": %llu, \"resumed\": %llu, \"latency\": ",
           (double)measured->bytes / length, (unsigned long long)measured->bytes, seconds,
           (double)blast->done.bytes / length, (unsigned long long)blast->done.bytes, cpu,
           (unsigned long long)blast->verified, (unsigned long long)blast->handshakes,
           (unsigned long long)blast->resumed);
    histogram_print(&blast->latency, stdout);
    fputs(", \"connect_time\": ", stdout);
    histogram_print(&blast->connect_time, stdout);
    puts("}");
}

/* Resets all counts before the measured time. */
static void counts_reset(struct blast *blast)
{
    blast->done = (struct counts){0};
    blast->idle_poll_ns = 0;
    blast->verified = blast->handshakes = blast->resumed = 0;
    blast->latency = blast->connect_time = (struct histogram){0};
}

int main(int argc, char **argv)
{
    struct options options = {.address = "127.0.0.1", .connections = 64, .seconds = 5, .pipeline = 1};
    static struct blast blast;
    struct counts measured;
    double seconds;
    double cpu;

    options_read(argc, argv, &options);
    signal(SIGPIPE, SIG_IGN);       /* a send to a closed connection returns EPIPE instead */
    limits_raise();
    blast.options = &options;
    blast.tls = options.plain ? NULL : tls_context_create(&options);
    blast.scratch = malloc(SCRATCH_SIZE);
    blast.poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!blast.scratch || blast.poll_fd < 0)
        fatal("memory");
    request_write(&blast, "", blast.request, sizeof(blast.request));
    request_write(&blast, "Range: bytes=0-0\r\n", blast.one_byte_request, sizeof(blast.one_byte_request));
    if (options.mode == MODE_REQUESTS)
        connections_establish(&blast);
    if (options.warmup > 0)
        (void)run(&blast, options.warmup, &measured);
    ready_print(&blast);
    while (options.wait && getchar() != EOF)
        continue;
    if (options.seconds <= 0)
        return 0;
    counts_reset(&blast);
    cpu = own_cpu_seconds();
    seconds = run(&blast, options.seconds, &measured);
    cpu = own_cpu_seconds() - cpu - (double)blast.idle_poll_ns * 1e-9;
    result_print(&blast, &measured, seconds, cpu > 0 ? cpu : 0);
    return 0;
}
