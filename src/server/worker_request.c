/*
 * Requests of a worker to the master. They are numbered, because one CHANNEL_DONE may stand for several.
 */
#include "server/worker_request.h"

#include "server/connection_debug.h"

#include <errno.h>

int worker_request_send(struct worker *worker, struct worker_request *request, enum channel_kind kind, uint32_t index)
{
    int error = worker->channel_fd < 0 ? -EPIPE : 0;

    if (error == 0)
        error = channel_send(worker->channel_fd, &(struct channel_message){.kind = kind, .index = index, .fd = -1});
    if (error < 0)
        return error;
    request->number = ++worker->request_number;
    list_push(&worker->requests, &request->link);
    return 0;
}

void worker_request_cancel(struct worker_request *request)
{
    list_remove(&request->link);
}

void worker_requests_done(struct worker *worker, uint32_t number)
{
    while (!list_empty(&worker->requests)) {
        struct worker_request *oldest = container_of(worker->requests.next, struct worker_request, link);

        if ((int32_t)(number - oldest->number) < 0)
            break;
        list_remove(&oldest->link);
        oldest->done(oldest);
    }
}

void worker_change_log_level(struct worker *worker, uint32_t level)
{
    if (level > LOG_DEBUG)
        return;
    worker->log->level = (enum log_level)level;
    connection_debug_update(worker);
    if (worker->stream)
        worker->stream->update_debug(worker);
}
