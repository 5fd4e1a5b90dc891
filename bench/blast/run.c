/*
 * The load: each response triggers the next request (closed loop), or requests are due at a fixed rate (open loop).
 * A request that is due while no connection is free waits, and its latency counts from the due time: otherwise a
 * stall of the server would reduce the number of slow requests (coordinated omission).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#include "blast.h"

enum { EVENTS = 256 };
static const uint64_t WAIT_MAX = 100000000, DRAIN_MAX = 60000000000, DRAINED_BYTES_MAX = 256 << 20;
/* nanoseconds; a longer poll includes time of other processes on this CPU */
static const uint64_t IDLE_POLL_MAX = 5000;

struct load {
    uint64_t begin;
    uint64_t end;
    uint64_t responses_end;         /* by count; 0: by time only */
    double interval;                /* nanoseconds between two requests; 0: closed loop */
    uint64_t requests_sent;                 /* due requests that were sent */
    struct connection **idle;       /* ring of connections without a request */
    unsigned idle_first;
    unsigned idle_count;
};

static void rest(struct blast *blast, struct load *load, struct connection *connection)
{
    unsigned size = blast->options->connections;

    load->idle[(load->idle_first + load->idle_count++) % size] = connection;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_due(const struct load *load)
{
    return load->begin + (uint64_t)(load->interval * (double)load->requests_sent);
}

/* Sends the due requests while connections are free. */
static void ask_due(struct blast *blast, struct load *load)
{
    uint64_t moment = now();

    while (load->idle_count > 0 && next_due(load) <= moment && next_due(load) < load->end) {
        struct connection *connection = load->idle[load->idle_first];

        load->idle_first = (load->idle_first + 1) % blast->options->connections;
        load->idle_count--;
        connection_send_request(blast, connection, next_due(load));
        load->requests_sent++;
    }
}

static void responses_completed(struct blast *blast, struct load *load, struct connection *connection, unsigned over)
{
    if (over == 0 || blast->closing)
        return;
    if (load->interval > 0) {
        rest(blast, load, connection);
        return;
    }
    if (load->responses_end > 0 && blast->done.responses >= load->responses_end)
        return;
    for (uint64_t moment = now(); over > 0; over--)
        connection_send_request(blast, connection, moment);
}

/* Waits for responses, at most until the next request is due. */
static void step(struct blast *blast, struct load *load, uint64_t end)
{
    struct epoll_event events[EVENTS];
    uint64_t moment = now();
    uint64_t until = least(moment + WAIT_MAX, end);
    struct timespec wait = {0};
    int count;

    if (!blast->closing && load->interval > 0) {
        ask_due(blast, load);
        if (load->idle_count > 0 && next_due(load) < until)
            until = next_due(load);
    }
    if (until > moment && !blast->options->busy)
        wait = (struct timespec){.tv_sec = (time_t)((until - moment) / 1000000000),
                                 .tv_nsec = (long)((until - moment) % 1000000000)};
    count = epoll_pwait2(blast->poll_fd, events, EVENTS, &wait, NULL);
    if (count < 0 && errno != EINTR)
        fail("epoll_pwait2");
    if (count == 0 && blast->options->busy)
        blast->idle_poll_ns += least(now() - moment, IDLE_POLL_MAX);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;

        responses_completed(blast, load, connection, connection_receive(blast, connection, SIZE_MAX));
    }
}

static bool is_over(const struct blast *blast, const struct load *load)
{
    return now() >= load->end || (load->responses_end > 0 && blast->done.responses >= load->responses_end);
}

static unsigned outstanding(const struct blast *blast)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < blast->options->connections; i++)
        sum += blast->connections[i].outstanding;
    return sum;
}

static void begin(struct blast *blast, struct load *load)
{
    for (unsigned i = 0; i < blast->options->connections; i++) {
        struct connection *connection = &blast->connections[i];

        if (load->interval > 0) {
            rest(blast, load, connection);
            continue;
        }
        while (connection->outstanding < blast->options->pipeline)
            connection_send_request(blast, connection, now());
    }
}

double run_requests(struct blast *blast, double seconds, struct counts *out_inside)
{
    struct load load = {.interval = blast->options->rate > 0 ? 1e9 / blast->options->rate : 0};
    double took;

    load.idle = calloc(blast->options->connections, sizeof(struct connection *));
    if (!load.idle)
        fail("memory");
    load.responses_end = blast->options->responses > 0 ? blast->done.responses + blast->options->responses : 0;
    load.begin = now();
    load.end = load.begin + (uint64_t)(seconds * 1e9);
    blast->closing = false;
    begin(blast, &load);
    while (!is_over(blast, &load))
        step(blast, &load, load.end);
    took = (double)(now() - load.begin) * 1e-9;
    *out_inside = blast->done;
    blast->closing = true;
    if (outstanding(blast) * blast->response_length <= DRAINED_BYTES_MAX)
        for (uint64_t end = now() + DRAIN_MAX; outstanding(blast) > 0 && now() < end;)
            step(blast, &load, end);
    free(load.idle);
    return took;
}
