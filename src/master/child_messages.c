/*
 * Messages to the master's workers. Those that do not fit into the channel of a worker are sent when it has room again,
 * or when fewer descriptors are in flight, whose number the kernel limits for each user (unix(7), ETOOMANYREFS).
 */
#include "master/master_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A message that did not fit into the channel. Owns its descriptor. */
struct queued_message {
    struct list link;
    struct channel_message message;
};

static void queued_message_free(struct queued_message *queued)
{
    list_remove(&queued->link);
    fd_close(&queued->message.fd);
    free(queued);
}

void child_channel_close(struct child *child)
{
    while (!list_empty(&child->queued))
        queued_message_free(container_of(child->queued.next, struct queued_message, link));
    fd_close(&child->channel_fd);
    child->delayed = false;
}

/*
 * A newer message replaces a queued one about the same subject, which bounds the queue of a worker that does not read.
 * Several sockets of a dead worker have the same index, so each CHANNEL_LISTEN is kept until a CHANNEL_UNLISTEN
 * cancels them.
 */
static bool message_replaces(const struct channel_message *message, const struct channel_message *before,
                             unsigned workers)
{
    if (message->kind == CHANNEL_UNLISTEN && before->kind == CHANNEL_LISTEN)
        return before->index % workers == message->index;
    if (message->kind == CHANNEL_LOG_LEVEL || message->kind == CHANNEL_DONE) /* `index` is a value */
        return message->kind == before->kind;
    return message->kind == before->kind && message->index == before->index && message->kind != CHANNEL_LISTEN;
}

/* `workers`: the number of workers in the child's generation. Returns 0 or -errno. */
static int queue_message(struct child *child, const struct channel_message *message, unsigned workers)
{
    struct queued_message *queued = calloc(1, sizeof(*queued));

    if (!queued)
        return -ENOMEM;
    queued->message = *message;
    if (message->fd >= 0)
        queued->message.fd = fcntl(message->fd, F_DUPFD_CLOEXEC, 0);
    if (message->fd >= 0 && queued->message.fd < 0) {
        int error = -errno;

        free(queued);
        return error;
    }
    for (struct list *link = child->queued.next, *next; link != &child->queued; link = next) {
        struct queued_message *before = container_of(link, struct queued_message, link);

        next = link->next;
        if (message_replaces(message, &before->message, workers))
            queued_message_free(before);
    }
    list_push(&child->queued, &queued->link);
    return 0;
}

/* Returns 0, -EAGAIN if the message must wait, or another -errno. */
static int send_now(struct child *child, const struct channel_message *message)
{
    int result = channel_send(child->channel_fd, message);

    child->delayed = result == -ETOOMANYREFS;
    return child->delayed ? -EAGAIN : result;
}

static void log_send_error(struct master *master, const struct child *child, int error)
{
    if (error < 0 && error != -EPIPE && error != -ECONNRESET) /* the worker is dead: SIGCHLD follows */
        log_write(&master->error_log.log, LOG_ALERT, "sending to worker process %ld failed (%d: %s)",
                  (long)child->pid, -error, strerror(-error));
}

void child_send(struct master *master, struct generation *generation, struct child *child, enum channel_kind kind,
                uint32_t index, int fd)
{
    const struct channel_message message = {.kind = kind, .index = index, .fd = fd};
    int result = -EAGAIN;

    if (child->pid == 0 || child->channel_fd < 0)
        return;
    if (list_empty(&child->queued))
        result = send_now(child, &message);
    if (result == -EAGAIN)
        result = queue_message(child, &message, generation->child_count);
    log_send_error(master, child, result);
}

void child_write(struct master *master, struct child *child)
{
    int result = 0;

    child->delayed = false;
    while (result == 0 && !list_empty(&child->queued)) {
        struct queued_message *queued = container_of(child->queued.next, struct queued_message, link);

        result = send_now(child, &queued->message);
        if (result != -EAGAIN)
            queued_message_free(queued);
    }
    log_send_error(master, child, result == -EAGAIN ? 0 : result);
}

void children_send(struct master *master, struct generation *generation, enum channel_kind kind, uint32_t index, int fd)
{
    for (unsigned i = 0; i < generation->child_count; i++)
        child_send(master, generation, &generation->children[i], kind, index, fd);
}
