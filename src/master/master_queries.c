/*
 * Queries of one worker for all workers, for the control socket. The master opens a socket pair: the worker that sent
 * the query reads from one end, all workers write to the other. The master reads neither, does not wait, and queues
 * nothing.
 */
#include "master/master_state.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns the number of queries of the worker in this period, including this one. */
static unsigned count_query(const struct master *master, struct child *child)
{
    uint64_t now_ms = master->clock.monotonic_ms;

    if (u64_sub_sat(now_ms, child->queries_ms) >= LIMIT_CONTROL_PERIOD_MS) {
        child->queries_ms = now_ms;
        child->queries = 0;
    }
    return ++child->queries;
}

static int open_pair(int pair[2])
{
    const int size = LIMIT_CONTROL_SEND_BUFFER;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    channel_refuse_descriptors(pair[0]);
    /* If this fails, rows may be omitted. */
    (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    return 0;
}

/*
 * True if few messages wait in the channel. A worker that does not read them keeps the descriptors in flight, whose
 * number the kernel limits for all processes of the user (unix(7)).
 */
static bool reads_channel(const struct child *child)
{
    int bytes = 0;

    return ioctl(child->channel_fd, SIOCOUTQ, &bytes) == 0 && bytes <= LIMIT_CONTROL_UNREAD;
}

/* A worker that hangs would keep the descriptor, and the query would end by its timeout. */
static bool can_respond(const struct child *child)
{
    return child->ready && child->pid != 0 && child->channel_fd >= 0 && child->kill_ms == 0 &&
           list_empty(&child->queued) && reads_channel(child);
}

static unsigned running_workers(const struct master *master)
{
    unsigned count = 0;

    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        const struct generation *generation = container_of(link, struct generation, link);

        for (unsigned i = 0; i < generation->child_count; i++)
            count += generation->children[i].pid != 0;
    }
    return count;
}

/* Sends the query to every worker. A worker whose channel is full does not get it. */
static void send_to_all(const struct master *master, const struct channel_message *query)
{
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        const struct generation *generation = container_of(link, struct generation, link);

        for (unsigned i = 0; i < generation->child_count; i++) {
            if (can_respond(&generation->children[i]))
                (void)!channel_send(generation->children[i].channel_fd, query);
        }
    }
}

bool master_query_forward(const struct master *master, struct child *child, const struct channel_message *message)
{
    unsigned workers = running_workers(master);
    unsigned rows = workers > 0 && workers < LIMIT_CONTROL_CONNECTIONS ? LIMIT_CONTROL_CONNECTIONS / workers : 1;
    struct channel_message responses = {CHANNEL_RESPONSES, message->index, -1, workers};
    struct channel_message query = {CHANNEL_RESPOND, rows, -1, message->number};
    unsigned sent = count_query(master, child);
    int pair[2];

    if (sent > LIMIT_CONTROL_FLOOD)
        return false;
    /* The periods of worker and master are not aligned: one period here may contain twice the limit of the worker. */
    if (sent > 2 * LIMIT_CONTROL_QUERIES || !can_respond(child) || open_pair(pair) < 0)
        return true;
    responses.fd = pair[0];
    query.fd = pair[1];
    /* If this worker cannot be reached, its query ends by its timeout. */
    if (channel_send(child->channel_fd, &responses) == 0)
        send_to_all(master, &query);
    close(pair[0]);
    close(pair[1]);
    return true;
}
