/*
 * Reads the client's body into a spool. The upstream request pulls from the spool independently.
 */
#include "buffered_body.h"

#include "base/limits.h"
#include "http/protocol.h"
#include "server/module.h"

#include <errno.h>

static int read_client_body(struct buffered_body *buffered);

static void wake_body(struct buffered_body *buffered)
{
    if (!buffered->wake_pending)
        return;
    buffered->wake_pending = false;
    buffered->body.wake(buffered->body.owner);
}

static void spool_progressed(void *owner)
{
    struct buffered_body *buffered = owner;
    void (*done)(void *owner, int error) = buffered->done;
    int result;

    if (!done) {
        wake_body(buffered);
        return;
    }
    result = read_client_body(buffered);
    if (result == -EAGAIN)
        return;
    buffered->done = NULL;
    done(buffered->owner, result);
}

static void spooling_failed(void *owner, const char *doing, int error)
{
    struct buffered_body *buffered = owner;

    if (!exchange_may_log_error(buffered->x, error))
        return;
    exchange_log_error(buffered->x, LOG_ERROR,
                       "%s in \"" STR_FMT "\" failed (%d: %s): the body is passed on as it arrives", doing,
                       STR_ARG(buffered->directory), -error, strerror(-error));
}

/* More of the client's body arrived. Called inside the session, so the work is only queued. */
static void source_woken(void *owner)
{
    struct buffered_body *buffered = owner;

    spool_wake(buffered->spool);
}

/* Reads the received bytes. 0: complete, or the limits of buffering are reached. */
static int read_client_body(struct buffered_body *buffered)
{
    struct chunk chunk;
    int result = 1;

    while (result == 1 && !spool_full(buffered->spool)) {
        result = buffered->source->ops->next(buffered->source, CHUNK_BYTES, LIMIT_RECEIVE_BYTES, &chunk);
        if (result == 1 && spool_append(buffered->spool, chunk.bytes) < 0)
            result = -ENOMEM;
    }
    buffered->whole = result == 0;
    if (result == 1)
        return spool_streams(buffered->spool) ? 0 : -EAGAIN;
    return result;
}

static int buffered_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct buffered_body *buffered = container_of(body, struct buffered_body, body);
    int result = spool_next(buffered->spool, accept, room, out);

    if (result == 0 && !buffered->whole)
        result = buffered->source->ops->next(buffered->source, accept, room, out);
    buffered->wake_pending = result == -EAGAIN;
    return result;
}

/* The exchange owns it and closes it. */
static void buffered_close(struct body *body)
{
}

static const struct body_ops buffered_ops = {.next = buffered_next, .close = buffered_close};
static const struct spool_events events = {.progress = spool_progressed, .failed = spooling_failed};

static void replace_request_body(struct buffered_body *buffered, struct exchange *x, struct body *source)
{
    buffered->x = x;
    buffered->source = source;
    buffered->body = (struct body){.ops = &buffered_ops, .length = source->length};
    x->request.body = &buffered->body;
}

int buffered_body_read(struct buffered_body *out, struct exchange *x, struct str directory,
                       void (*done)(void *owner, int error), void *owner)
{
    const struct spool_settings settings = {.memory = x->settings->body_buffer_size,
                                            .block = LIMIT_STORED_BLOCK,
                                            .file_max = LIMIT_SPOOL_FILE,
                                            .directory = directory,
                                            .keeps = true};
    int result;

    out->spool = spool_create(exchange_worker(x), &settings, &events, out);
    if (!out->spool)
        return -ENOMEM;
    out->directory = directory;
    replace_request_body(out, x, x->request.body);
    out->source->wake = source_woken;
    out->source->owner = out;
    result = read_client_body(out);
    if (result == -EAGAIN) {
        out->done = done;
        out->owner = owner;
    }
    return result;
}

struct buffered_body *buffered_body_of(const struct request *request)
{
    return request->body->ops == &buffered_ops ? container_of(request->body, struct buffered_body, body) : NULL;
}

int buffered_body_share(const struct buffered_body *buffered, struct buffered_body *out, struct exchange *to)
{
    int error = spool_copy(buffered->spool, &events, out, &out->spool);

    if (error < 0)
        return error;
    replace_request_body(out, to, body_empty());
    out->whole = true;
    out->body.length = to->request.content_length = spool_length(out->spool);
    return 0;
}

void buffered_body_rewind(struct buffered_body *buffered)
{
    if (buffered->whole)
        spool_rewind(buffered->spool);
}

void buffered_body_cancel(struct buffered_body *buffered)
{
    buffered->done = NULL;
}

void buffered_body_close(struct buffered_body *buffered)
{
    spool_close(buffered->spool);
    buffered->spool = NULL;
}
