/*
 * A body that encodes (or decodes) another one on demand. Input is not buffered: a piece is read after the previous one
 * was encoded, and encoded only as fast as the output is consumed. The bytes that a worker encodes per iteration of its
 * loop, over all bodies, and their time are limited: beyond the limit, bodies wait for a later iteration in the order
 * of their arrival.
 */
#include "compress.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>

struct compress_worker {
    struct worker *worker;
    const struct clock *clock;
    size_t memory;       /* upper bound for all open coders */
    uint64_t iteration_us; /* start of the current iteration */
    uint64_t end_us;     /* clock_monotonic_us() at which `left` becomes 0 */
    size_t left;         /* bytes left in this iteration */
    struct list waiting; /* struct stream */
    struct op next_iteration; /* a timer due at once */
    bool stopped;
};

struct stream {
    struct body body;
    struct body *inner;
    struct compress_worker *shared;
    const struct coder_kind *kind;
    void *coder; /* NULL once the end is encoded */
    struct list waiting;
    bool granted;  /* the next step, after waiting */
    struct str in; /* owned by `inner`, not yet consumed */
    enum coder_flush flush;
    bool endless;      /* `inner` has no known length: flush when it returns -EAGAIN */
    bool unflushed;    /* bytes were consumed since the last flush */
    bool inner_waits;  /* `inner` returned -EAGAIN: coder_inner_woken follows */
    bool wake_pending; /* this body returned -EAGAIN: its owner must be woken */
    size_t at, length; /* the part of `out` not yet passed on */
    char out[LIMIT_COMPRESS_OUTPUT];
};

static void wake_body(struct stream *stream)
{
    if (!stream->wake_pending)
        return;
    stream->wake_pending = false;
    stream->body.wake(stream->body.owner);
}

/* Iterations of the loop. */

static void begin_iteration(struct compress_worker *shared)
{
    if (shared->iteration_us == shared->clock->monotonic_us)
        return;
    shared->iteration_us = shared->clock->monotonic_us;
    shared->end_us = clock_monotonic_us() + LIMIT_ITERATION_US;
    shared->left = LIMIT_COMPRESS_ITERATION;
}

static void request_iteration(struct compress_worker *shared)
{
    if (op_idle(&shared->next_iteration) && !list_empty(&shared->waiting))
        worker_timer(shared->worker, &shared->next_iteration, 0);
}

/* Grants a step to the body that waits longest, unless the limit is reached. */
static void grant_step(struct compress_worker *shared)
{
    struct stream *stream;

    if (shared->left == 0 || list_empty(&shared->waiting))
        return;
    stream = container_of(list_pop(&shared->waiting), struct stream, waiting);
    stream->granted = true;
    wake_body(stream);
}

static void iteration_started(struct op *op, int result)
{
    struct compress_worker *shared = container_of(op, struct compress_worker, next_iteration);

    if (shared->stopped) {
        free(shared);
        return;
    }
    begin_iteration(shared);
    grant_step(shared);
    request_iteration(shared);
}

/* True if the stream may make a step now. Streams that already wait come first. */
static bool may_step(struct stream *stream)
{
    struct compress_worker *shared = stream->shared;

    begin_iteration(shared);
    return shared->left > 0 && (stream->granted || list_empty(&shared->waiting));
}

/* A stream that was granted its step too late in an iteration is the first of the next one. */
static int wait_for_iteration(struct stream *stream)
{
    struct list *waiting = &stream->shared->waiting;

    stream->wake_pending = true;
    if (list_empty(&stream->waiting))
        list_insert_before(stream->granted ? waiting->next : waiting, &stream->waiting);
    request_iteration(stream->shared);
    return -EAGAIN;
}

/* The body. */

static void coder_inner_woken(void *owner)
{
    struct stream *stream = owner;

    stream->inner_waits = false;
    wake_body(stream);
}

/* Reads the next piece into `in`, or sets the flush for the coder. 0, -EAGAIN or another error. */
static int read_input(struct stream *stream)
{
    struct chunk chunk;
    int result = -EAGAIN;

    if (!stream->inner_waits)
        result = stream->inner->ops->next(stream->inner, CHUNK_BYTES, LIMIT_COMPRESS_INPUT, &chunk);
    if (result > 0) {
        stream->in = chunk.bytes;
        stream->unflushed = true;
    } else if (result == 0) {
        stream->flush = CODER_END;
    } else if (result == -EAGAIN) {
        stream->inner_waits = true;
        if (!stream->endless || !stream->unflushed) {
            stream->wake_pending = true;
            return -EAGAIN;
        }
        stream->flush = CODER_FLUSH;
        stream->unflushed = false;
    }
    return result < 0 && result != -EAGAIN ? result : 0;
}

static void end_coder(struct stream *stream)
{
    if (!stream->coder)
        return;
    stream->kind->close(stream->coder);
    stream->coder = NULL;
    stream->shared->memory = size_sub_sat(stream->shared->memory, stream->kind->memory);
}

/* Charges a step. Until the limit or the end of the time is reached, the next body that waits makes one. */
static void charge_step(struct stream *stream, size_t spent)
{
    struct compress_worker *shared = stream->shared;

    stream->granted = false;
    shared->left = clock_monotonic_us() >= shared->end_us ? 0 : size_sub_sat(shared->left, spent);
    grant_step(shared);
}

/*
 * Runs one step of the coder within the limit of the iteration; input consumed or output produced, whichever is more,
 * is charged. 0 or an error.
 */
static int run_coder(struct stream *stream)
{
    struct str part = str_slice(stream->in, 0, stream->shared->left);
    size_t offered = part.length, spent;
    enum coder_flush flush = offered == stream->in.length ? stream->flush : CODER_MORE;
    int result =
        stream->kind->step(stream->coder, &part, flush, stream->out, sizeof(stream->out), &stream->length);

    if (result < 0)
        return result;
    stream->at = 0;
    stream->in = str_skip(stream->in, offered - part.length);
    spent = offered - part.length > stream->length ? offered - part.length : stream->length;
    charge_step(stream, spent);
    if (result > 0 && flush == CODER_END)
        end_coder(stream);
    if (result > 0 && flush != CODER_MORE)
        stream->flush = CODER_MORE;
    return 0;
}

static int produce_output(struct stream *stream)
{
    int error = 0;

    if (str_empty(stream->in) && stream->flush == CODER_MORE)
        error = read_input(stream);
    if (error < 0)
        return error;
    return may_step(stream) ? run_coder(stream) : wait_for_iteration(stream);
}

static int stream_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct stream *stream = container_of(body, struct stream, body);

    while (stream->at == stream->length) {
        int error = stream->coder ? produce_output(stream) : 1;

        if (error)
            return error < 0 ? error : 0;
    }
    *out = (struct chunk){.kind = CHUNK_BYTES,
                          .bytes =
                              str_slice(str_of(stream->out, stream->length), stream->at, stream->at + room)};
    stream->at += out->bytes.length;
    return 1;
}

static void stream_close(struct body *body)
{
    struct stream *stream = container_of(body, struct stream, body);

    list_remove(&stream->waiting);
    end_coder(stream);
    body_close(&stream->inner);
    free(stream);
}

struct body *compress_body(struct compress_worker *shared, const struct coder_kind *kind, unsigned level,
                           struct body *inner)
{
    static const struct body_ops ops = {.next = stream_next, .close = stream_close};
    struct stream *stream;

    if (shared->memory + kind->memory > LIMIT_COMPRESS_MEMORY)
        return NULL;
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    stream->coder = kind->open(level, inner->length);
    if (!stream->coder) {
        free(stream);
        return NULL;
    }
    shared->memory += kind->memory;
    stream->shared = shared;
    stream->kind = kind;
    stream->endless = inner->length == BODY_LENGTH_UNKNOWN;
    list_init(&stream->waiting);
    stream->inner = inner;
    inner->wake = coder_inner_woken;
    inner->owner = stream;
    stream->body = (struct body){.ops = &ops, .length = BODY_LENGTH_UNKNOWN};
    return &stream->body;
}

/* State of the worker. */

int compress_worker_start(struct worker *worker, void **out_state)
{
    struct compress_worker *shared = calloc(1, sizeof(*shared));

    if (!shared)
        return -ENOMEM;
    shared->worker = worker;
    shared->clock = worker_clock(worker);
    shared->next_iteration.done = iteration_started;
    list_init(&shared->waiting);
    *out_state = shared;
    return 0;
}

/* At this time all bodies are closed, but the timer may be pending. */
void compress_worker_stop(void *state)
{
    struct compress_worker *shared = state;

    shared->stopped = true;
    if (op_idle(&shared->next_iteration))
        free(shared);
    else
        worker_cancel(shared->worker, &shared->next_iteration);
}

bool compress_wrap(struct exchange *x, struct compress_worker *shared, const struct coder_kind *kind, unsigned level)
{
    struct body *body;

    if (x->request.method == METHOD_HEAD) {
        x->response.body->length = BODY_LENGTH_UNKNOWN;
        return true;
    }
    body = compress_body(shared, kind, level, x->response.body);
    if (body)
        x->response.body = body;
    return body;
}
