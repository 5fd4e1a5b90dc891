/*
 * Reads the responses of all workers from one socket. Each worker closes its copy of the other end after its response:
 * the end of the stream means that all have responded.
 */
#include "server/worker_query.h"

#include "base/saturate.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define PACKETS_AT_ONCE 32          /* read in one loop iteration */

struct worker_query {
    struct worker_query *next;      /* in worker->queries */
    struct worker *worker;
    const struct query_events *events; /* NULL: ended or cancelled */
    void *owner;
    uint32_t index;
    uint64_t number;                /* the connection to be closed; 0: list */
    uint64_t workers;               /* running; 0: the master has not sent the descriptor */
    uint64_t responded;
    unsigned packets;
    bool sent;                      /* to the master */
    int fd;                         /* -1: none yet */
    struct op readable, timer;
};

static void remove_query(struct worker_query *query)
{
    struct worker_query **link = &query->worker->queries;

    while (*link && *link != query)
        link = &(*link)->next;
    if (*link)
        *link = query->next;
}

/* Frees a query that has ended, once neither of its operations is in flight. */
static void free_query(struct worker_query *query)
{
    if (!op_idle(&query->readable) || !op_idle(&query->timer))
        return;
    if (query->fd >= 0)
        loop_close_fd(&query->worker->loop, query->fd);
    free(query);
}

/* `notify` is false for a cancelled query. The operations finish later. */
static void end_query(struct worker_query *query, bool notify)
{
    const struct query_events *events = query->events;
    struct loop *loop = &query->worker->loop;

    query->events = NULL;
    remove_query(query);
    loop_cancel(loop, &query->readable);
    loop_cancel(loop, &query->timer);
    if (notify)
        events->ended(query->owner, query->workers, query->responded);
}

/* Returns false at the end of the stream, or if more packets arrived than workers send. */
static bool read_responses(struct worker_query *query)
{
    struct query_response response;
    ssize_t length;

    for (unsigned i = 0; i < PACKETS_AT_ONCE; i++) {
        length = recv(query->fd, &response, sizeof(response), MSG_DONTWAIT | MSG_TRUNC);
        if (length < 0)
            return errno == EAGAIN || errno == EINTR;
        if (length == 0 || ++query->packets > LIMIT_CONTROL_PACKETS)
            return false;
        if (!query_response_valid(&response, (size_t)length))
            continue;
        query->responded += response.row_count < QUERY_ROWS; /* the last packet of a worker */
        query->events->response(query->owner, &response);
    }
    return true;
}

static void query_readable(struct op *op, int result)
{
    struct worker_query *query = container_of(op, struct worker_query, readable);

    if (query->events && result >= 0 && read_responses(query)) {
        loop_poll(&query->worker->loop, op, query->fd, POLLIN);
        return;
    }
    if (query->events)
        end_query(query, true);
    free_query(query);
}

/* Sends the query if the worker has not sent too many in this period, else waits for the next one. 0 or -errno. */
static int send_or_wait(struct worker_query *query)
{
    struct worker *worker = query->worker;
    struct loop *loop = &worker->loop;
    const struct channel_message message = {
        .kind = CHANNEL_QUERY, .index = query->index, .fd = -1, .number = query->number};
    int result;

    if (u64_sub_sat(loop->clock.monotonic_ms, worker->queries_ms) >= LIMIT_CONTROL_PERIOD_MS) {
        worker->queries_ms = loop->clock.monotonic_ms;
        worker->queries_sent = 0;
    }
    if (worker->queries_sent >= LIMIT_CONTROL_QUERIES) {
        loop_timer(loop, &query->timer, worker->queries_ms + LIMIT_CONTROL_PERIOD_MS);
        return 0;
    }
    result = worker->channel_fd < 0 ? -ENOTCONN : channel_send(worker->channel_fd, &message);
    if (result < 0)
        return result;
    worker->queries_sent++;
    query->sent = true;
    loop_timer(loop, &query->timer, loop->clock.monotonic_ms + LIMIT_CONTROL_RESPONSE_MS);
    return 0;
}

static void query_timer_done(struct op *op, int result)
{
    struct worker_query *query = container_of(op, struct worker_query, timer);

    if (query->events && !query->sent && send_or_wait(query) == 0)
        return;
    if (query->events)
        end_query(query, true);
    free_query(query);
}

static unsigned count_queries(const struct worker *worker)
{
    unsigned count = 0;

    for (const struct worker_query *query = worker->queries; query; query = query->next)
        count++;
    return count;
}

struct worker_query *worker_query_start(struct worker *worker, uint64_t number, const struct query_events *events,
                                        void *owner)
{
    struct worker_query *query = count_queries(worker) < LIMIT_CONTROL_PENDING ? calloc(1, sizeof(*query)) : NULL;

    if (!query)
        return NULL;
    *query = (struct worker_query){.next = worker->queries,
                                   .worker = worker,
                                   .events = events,
                                   .owner = owner,
                                   .index = ++worker->queries_started,
                                   .number = number,
                                   .fd = -1,
                                   .readable.done = query_readable,
                                   .timer.done = query_timer_done};
    if (send_or_wait(query) < 0) {
        free(query);
        return NULL;
    }
    worker->queries = query;
    return query;
}

void worker_query_cancel(struct worker_query *query)
{
    end_query(query, false);
}

void worker_query_responses(struct worker *worker, uint32_t index, uint64_t workers, int fd)
{
    struct worker_query *query = worker->queries;

    while (query && query->index != index)
        query = query->next;
    if (!query || query->fd >= 0) { /* it has ended, or it has a descriptor already */
        close(fd);
        return;
    }
    query->fd = fd;
    query->workers = workers;
    loop_poll(&worker->loop, &query->readable, fd, POLLIN);
}
