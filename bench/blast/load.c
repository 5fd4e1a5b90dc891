/*
 * The load: each response triggers the next request (closed loop), or requests are due at a fixed rate (open loop).
 * If a request is due while all connections are busy, it is sent later, and its latency counts from the due time. This
 * avoids coordinated omission: a stall of the server must not reduce the number of slow requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#include "blast.h"

enum { EVENTS = 256 };
static const uint64_t WAIT_MAX = 100000000, DRAIN_MAX = 60000000000, DRAINED_BYTES_MAX = 256 << 20;
/* Nanoseconds. A longer poll includes time of other processes on this CPU. */
static const uint64_t IDLE_POLL_MAX = 5000;

struct load {
    uint64_t begin;
    uint64_t end;
    uint64_t responses_end;         /* stop at this number of responses; 0: by time only */
    double interval;                /* nanoseconds between two requests; 0: closed loop */
    uint64_t requests_sent;         /* at a fixed rate */
    struct connection **idle;       /* ring of connections without a request */
    unsigned idle_first;
    unsigned idle_count;
};

static void idle_push(struct blast *blast, struct load *load, struct connection *connection)
{
    unsigned size = blast->options->connections;

    load->idle[(load->idle_first + load->idle_count++) % size] = connection;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_due(const struct load *load)
{
    return load->begin + (uint64_t)(load->interval * (double)load->requests_sent);
}

/* Sends the due requests while connections are free. */
static void due_requests_send(struct blast *blast, struct load *load)
{
    uint64_t now = monotonic_ns();

    while (load->idle_count > 0 && next_due(load) <= now && next_due(load) < load->end) {
        struct connection *connection = load->idle[load->idle_first];

        load->idle_first = (load->idle_first + 1) % blast->options->connections;
        load->idle_count--;
        connection_send_request(blast, connection, next_due(load));
        load->requests_sent++;
    }
}

static void responses_handle(struct blast *blast, struct load *load, struct connection *connection, unsigned completed)
{
    if (completed == 0 || blast->draining)
        return;
    if (load->interval > 0) {
        idle_push(blast, load, connection);
        return;
    }
    if (load->responses_end > 0 && blast->done.responses >= load->responses_end)
        return;
    for (uint64_t now = monotonic_ns(); completed > 0; completed--)
        connection_send_request(blast, connection, now);
}

/* Waits for responses, at most until the next request is due. */
static void poll_responses(struct blast *blast, struct load *load, uint64_t end)
{
    struct epoll_event events[EVENTS];
    uint64_t now = monotonic_ns();
    uint64_t until = smaller(now + WAIT_MAX, end);
    struct timespec wait = {0};
    int count;

    if (!blast->draining && load->interval > 0) {
        due_requests_send(blast, load);
        if (load->idle_count > 0 && next_due(load) < until)
            until = next_due(load);
    }
    if (until > now && !blast->options->busy)
        wait = (struct timespec){.tv_sec = (time_t)((until - now) / 1000000000),
                                 .tv_nsec = (long)((until - now) % 1000000000)};
    count = epoll_pwait2(blast->poll_fd, events, EVENTS, &wait, NULL);
    if (count < 0 && errno != EINTR)
        fatal("epoll_pwait2");
    if (count == 0 && blast->options->busy)
        blast->idle_poll_ns += smaller(monotonic_ns() - now, IDLE_POLL_MAX);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;

        responses_handle(blast, load, connection, connection_receive(blast, connection, SIZE_MAX));
    }
}

static bool load_has_ended(const struct blast *blast, const struct load *load)
{
    return monotonic_ns() >= load->end || (load->responses_end > 0 && blast->done.responses >= load->responses_end);
}

static unsigned outstanding(const struct blast *blast)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < blast->options->connections; i++)
        sum += blast->connections[i].outstanding;
    return sum;
}

static void load_start(struct blast *blast, struct load *load)
{
    for (unsigned i = 0; i < blast->options->connections; i++) {
        struct connection *connection = &blast->connections[i];

        if (load->interval > 0) {
            idle_push(blast, load, connection);
            continue;
        }
        while (connection->outstanding < blast->options->pipeline)
            connection_send_request(blast, connection, monotonic_ns());
    }
}

double run_requests(struct blast *blast, double seconds, struct counts *out_measured)
{
    struct load load = {.interval = blast->options->rate > 0 ? 1e9 / blast->options->rate : 0};
    double elapsed;

    load.idle = calloc(blast->options->connections, sizeof(struct connection *));
    if (!load.idle)
        fatal("memory");
    load.responses_end = blast->options->responses > 0 ? blast->done.responses + blast->options->responses : 0;
    load.begin = monotonic_ns();
    load.end = load.begin + (uint64_t)(seconds * 1e9);
    blast->draining = false;
    load_start(blast, &load);
    while (!load_has_ended(blast, &load))
        poll_responses(blast, &load, load.end);
    elapsed = (double)(monotonic_ns() - load.begin) * 1e-9;
    *out_measured = blast->done;
    blast->draining = true;
    if (outstanding(blast) * blast->response_length <= DRAINED_BYTES_MAX)
        for (uint64_t end = monotonic_ns() + DRAIN_MAX; outstanding(blast) > 0 && monotonic_ns() < end;)
            poll_responses(blast, &load, end);
    free(load.idle);
    return elapsed;
}
