/*
 * Messages between a worker and the master.
 */
#include "server/worker_channel.h"

#include "base/limits.h"
#include "log/access_log.h"
#include "master/certificate_reload.h"
#include "server/descriptors.h"
#include "server/worker_end.h"
#include "server/worker_listen.h"
#include "server/worker_query.h"
#include "server/worker_request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    RETRY_MS = 20,  /* interval between two attempts to receive a descriptor */
    WAIT_MS = 2000, /* after this time, messages that need a descriptor are discarded, since STOP may follow */
};

_Static_assert(2 * WAIT_MS < LIMIT_STOP_MS, "a worker stops before the master kills it");

void worker_channel_send(struct worker *worker, enum channel_kind kind)
{
    int result;

    if (worker->channel_fd < 0)
        return;
    result = channel_send(worker->channel_fd, &(struct channel_message){.kind = kind, .fd = -1});
    if (result < 0)
        log_write(worker->log, LOG_ALERT, "sending to the master failed (%d: %s)", -result,
                  strerror(-result));
}

/* The master has validated the files and logged any warning. */
static void apply_certificates(struct worker *worker, uint32_t number, int fd)
{
    struct log quiet = *worker->log;
    struct tls_files files = {NULL, 0};
    int result = number < worker->configuration->server_count ? certificate_reload_unpack(fd, &files) : -EPROTO;

    quiet.level = LOG_ERROR;
    if (result == 0)
        result = certificate_reload_apply(worker->configuration, number, &files, &quiet);
    if (result < 0 && result != -EINVAL)
        log_write(worker->log, LOG_ALERT, "changed TLS files could not be received from the master (%d: %s)", -result,
                  strerror(-result));
    tls_files_finish(&files);
    close(fd);
}

static void apply_message(struct worker *worker, const struct channel_message *message)
{
    switch (message->kind) {
    case CHANNEL_STOP:
        worker_stop(worker);
        break;
    case CHANNEL_QUIT:
        worker_drain(worker, false);
        break;
    case CHANNEL_RETIRE:
        worker_drain(worker, true);
        break;
    case CHANNEL_ERROR_LOG:
        error_log_replace(worker->error_log, message->fd);
        break;
    case CHANNEL_ACCESS_LOG:
        if (message->index < worker->configuration->access_log_count)
            access_log_replace(worker->access_log, message->index, message->fd);
        else
            close(message->fd);
        break;
    case CHANNEL_CERTIFICATES:
        apply_certificates(worker, message->index, message->fd);
        break;
    case CHANNEL_LISTEN:
        worker_listen_for(worker, message->index, message->fd);
        break;
    case CHANNEL_UNLISTEN:
        worker_unlisten_for(worker, message->index);
        break;
    case CHANNEL_LOG_LEVEL:
        worker_change_log_level(worker, message->index);
        break;
    case CHANNEL_DONE:
        worker_requests_done(worker, message->index);
        break;
    case CHANNEL_RESPOND:
        connection_query_respond(worker, message->number, message->index, message->fd);
        break;
    case CHANNEL_RESPONSES:
        worker_query_responses(worker, message->index, message->number, message->fd);
        break;
    case CHANNEL_READY:
    case CHANNEL_FAILED:
    case CHANNEL_TICKET_KEY:
    case CHANNEL_QUERY:
    case CHANNEL_KINDS:
        break;
    }
}

/* Receives a message. If no number is free for its descriptor, the message takes that of the spare descriptor. */
static int receive_message(struct worker *worker, struct channel_message *out_message)
{
    int result = channel_receive(worker->channel_fd, out_message);

    if (result != -EMFILE || worker->channel_spare < 0)
        return result;
    close(worker->channel_spare);
    worker->channel_spare = -1;
    return channel_receive(worker->channel_fd, out_message);
}

/*
 * The first message needs a descriptor. Returns true if it was discarded, because this and earlier ones have delayed
 * the messages behind them for WAIT_MS.
 */
static bool discard_late_message(struct worker *worker, unsigned *discarded)
{
    uint64_t now_ms = worker->loop.clock.monotonic_ms;

    if (worker->channel_wait_end_ms == 0)
        worker->channel_wait_end_ms = now_ms + WAIT_MS;
    if (now_ms < worker->channel_wait_end_ms)
        return false;
    channel_discard(worker->channel_fd);
    (*discarded)++;
    return true;
}

/* Waits for the next message, or until descriptors may be free: meanwhile messages stay in the channel, in order. */
static void wait_for_message(struct worker *worker, bool exhausted)
{
    if (worker->channel_spare < 0)
        worker->channel_spare = fcntl(worker->channel_fd, F_DUPFD_CLOEXEC, 0);
    if (worker->channel_spare >= 0 && !exhausted) {
        loop_poll(&worker->loop, &worker->channel, worker->channel_fd, POLLIN);
        return;
    }
    if (exhausted)
        descriptors_reclaim(worker);
    loop_timer(&worker->loop, &worker->channel, worker->loop.clock.monotonic_ms + RETRY_MS);
}

/* The channel is readable, or the timer of wait_for_message has expired. */
static void receive_messages(struct op *op, int result)
{
    struct worker *worker = container_of(op, struct worker, channel);
    struct channel_message message;
    unsigned discarded = 0;

    if (result == -ECANCELED)
        return;
    do {
        while ((result = receive_message(worker, &message)) == 1)
            apply_message(worker, &message);
    } while (result == -EMFILE && discard_late_message(worker, &discarded));
    if (discarded > 0)
        log_write(worker->log, LOG_ALERT,
                  "messages of the master were discarded, because their descriptors could not be received: %u "
                  "(reopened logs, sockets, queries or certificates)", discarded);
    if (result != -EMFILE)
        worker->channel_wait_end_ms = 0;
    if (result == -EPROTO)
        log_write(worker->log, LOG_ALERT, "a malformed message on the master's channel");
    if (result == 0 || (result < 0 && result != -EAGAIN && result != -EPROTO && result != -EMFILE)) {
        /* A worker that outlives its master would keep the port in use. */
        log_write(worker->log, LOG_ALERT, "the master has exited; this worker exits");
        worker_stop(worker);
        return;
    }
    wait_for_message(worker, result == -EMFILE);
}

void worker_channel_start(struct worker *worker)
{
    if (worker->channel_fd < 0)
        return;
    worker->channel.done = receive_messages;
    wait_for_message(worker, false);
}
