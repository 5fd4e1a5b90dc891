/*
 * `limit_rate`: limits the bytes per second of a response body. A wrapping body passes on its input in shares, and a
 * timer separates the shares. File chunks remain file chunks, so that sendfile and kTLS still apply.
 */
#include "base/limits.h"
#include "base/saturate.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct limit_rate_conf {
    const struct template *rate, *after; /* NULL: not configured */
};

/* The wrapped response body, its current file chunk, and the bytes that may be sent. */
struct throttled_body {
    struct body body;
    struct body *inner;
    struct exchange *x;   /* held while the timer runs */
    struct chunk span;    /* CHUNK_FILE, or empty */
    struct op timer;
    bool waits;           /* -EAGAIN was returned: waits for the timer */
    uint64_t rate;        /* bytes per second */
    uint64_t share;       /* minimum number of bytes to send at once, except at the end */
    uint64_t free;        /* bytes that limit_rate_after still exempts */
    uint64_t credit;      /* thousandths of a byte */
    uint64_t counted_ms;  /* time up to which credit was added */
};

extern const struct module module_limit_rate;

#define AT(field) offsetof(struct limit_rate_conf, field)

static const struct directive directives[] = {
    {.name = "limit_rate",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(rate),
     .row_size = sizeof(const struct template *),
     .row = conf_read_size_template,
     .syntax = "size | variable",
     .example = "limit_rate: 500k",
     .schema = "{\"type\": [\"string\", \"integer\"]}",
     .help = "The rate in bytes per second at which the body of each response is sent; variables are possible. 0 "
             "or empty: no limit. Two requests of one client together get twice the rate: limit_conn limits their "
             "number."},
    {.name = "limit_rate_after",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(after),
     .row_size = sizeof(const struct template *),
     .row = conf_read_size_template,
     .syntax = "size | variable",
     .example = "limit_rate_after: 10m",
     .schema = "{\"type\": [\"string\", \"integer\"]}",
     .help = "The bytes of each response that are sent before limit_rate applies."},
    {0},
};

/*
 * Converts elapsed time to credit, limited to that of one second, so that a client that pauses gets no large burst.
 */
static void count_time(struct throttled_body *throttled_body)
{
    uint64_t now_ms = exchange_clock(throttled_body->x)->monotonic_ms;
    uint64_t passed_ms = u64_sub_sat(now_ms, throttled_body->counted_ms);
    uint64_t max =
        (throttled_body->rate > throttled_body->share ? throttled_body->rate : throttled_body->share) * 1000;

    throttled_body->counted_ms = now_ms;
    if (passed_ms > 1000)
        passed_ms = 1000;
    throttled_body->credit += throttled_body->rate * passed_ms;
    if (throttled_body->credit > max)
        throttled_body->credit = max;
}

static void consume_credit(struct throttled_body *throttled_body, uint64_t bytes)
{
    uint64_t given = bytes < throttled_body->free ? bytes : throttled_body->free;

    throttled_body->free -= given;
    throttled_body->credit = u64_sub_sat(throttled_body->credit, (bytes - given) * 1000);
    if (throttled_body->body.length != BODY_LENGTH_UNKNOWN)
        throttled_body->body.length = u64_sub_sat(throttled_body->body.length, bytes);
}

static void credit_timer_done(struct op *op, int result)
{
    struct throttled_body *throttled_body = container_of(op, struct throttled_body, timer);
    struct exchange *x = throttled_body->x;

    if (throttled_body->waits) {
        throttled_body->waits = false;
        throttled_body->body.wake(throttled_body->body.owner);
    }
    exchange_release(x);
}

static int wait_for_credit(struct throttled_body *throttled_body, uint64_t needed)
{
    uint64_t missing = u64_sub_sat(needed * 1000, throttled_body->credit);

    throttled_body->waits = true;
    if (!op_idle(&throttled_body->timer))
        return -EAGAIN;
    exchange_hold(throttled_body->x);
    throttled_body->timer.done = credit_timer_done;
    worker_timer(exchange_worker(throttled_body->x), &throttled_body->timer,
                 (missing + throttled_body->rate - 1) / throttled_body->rate);
    return -EAGAIN;
}

static int next_of_span(struct throttled_body *throttled_body, uint64_t max, struct chunk *out)
{
    *out = throttled_body->span;
    if (out->file.length > max)
        out->file.length = max;
    chunk_advance(&throttled_body->span, out->file.length);
    consume_credit(throttled_body, out->file.length);
    return 1;
}

/* Excludes CHUNK_PIPE: a pipe must be sent as a whole. */
static int throttled_body_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct throttled_body *throttled_body = container_of(body, struct throttled_body, body);
    uint64_t needed = body->length < throttled_body->share ? body->length : throttled_body->share;
    uint64_t max;
    int result;

    count_time(throttled_body);
    max = throttled_body->free + throttled_body->credit / 1000;
    if (max < needed)
        return wait_for_credit(throttled_body, needed);
    throttled_body->waits = false;
    if (chunk_length(&throttled_body->span) > 0)
        return next_of_span(throttled_body, max, out);
    if (room > max && max > 0)
        room = (size_t)max;
    result = throttled_body->inner->ops->next(throttled_body->inner, accept & ~(unsigned)CHUNK_PIPE, room, out);
    if (result <= 0)
        return result;
    if (out->kind == CHUNK_FILE) {
        throttled_body->span = *out;
        throttled_body->span.file.whole = out->file.length; /* length of the whole span, for each of its shares */
        return next_of_span(throttled_body, max, out);
    }
    consume_credit(throttled_body, out->bytes.length);
    return 1;
}

static void throttled_body_close(struct body *body)
{
    struct throttled_body *throttled_body = container_of(body, struct throttled_body, body);

    throttled_body->waits = false;
    if (!op_idle(&throttled_body->timer))
        worker_cancel(exchange_worker(throttled_body->x), &throttled_body->timer);
    body_close(&throttled_body->inner);
}

static void throttled_inner_woken(void *owner)
{
    struct throttled_body *throttled_body = owner;

    throttled_body->body.wake(throttled_body->body.owner);
}

static const struct body_ops throttled_body_ops = {.next = throttled_body_next, .close = throttled_body_close};

/* Evaluates a size. *out is 0 if the text is empty, or invalid, which is logged. 0 or -ENOMEM. */
static int size_of(struct exchange *x, const struct template *template, uint64_t *out)
{
    struct str text = template ? exchange_eval(x, template) : STR("");

    *out = 0;
    if (!text.data)
        return -ENOMEM;
    if (!str_empty(text) && conf_size_parse(text, out) < 0)
        exchange_log_error(x, LOG_ERROR, "limit_rate: \"" STR_FMT "\" is not a size", STR_ARG(text));
    return 0;
}

/* A tenth of the bytes of a second, but at least 512 (or one second's) and at most LIMIT_ITERATION_BYTES. */
static uint64_t share_of(uint64_t rate)
{
    uint64_t share = rate / 10;

    if (share > LIMIT_ITERATION_BYTES)
        return LIMIT_ITERATION_BYTES;
    return share < 512 ? (rate < 512 ? rate : 512) : share;
}

static int limit_rate_filter(struct exchange *x, const void *conf)
{
    const struct limit_rate_conf *own = conf;
    uint64_t rate, after;
    struct throttled_body *throttled_body;

    if (!x->response.body || x->request.method == METHOD_HEAD || x->response.status == 101)
        return 0;
    if ((!exchange_rate(x, &rate) && size_of(x, own->rate, &rate) < 0) || size_of(x, own->after, &after) < 0)
        return -ENOMEM;
    if (rate == 0)
        return 0;
    if (rate > LIMIT_RATE_MAX)
        rate = LIMIT_RATE_MAX;
    throttled_body = exchange_state(x, &module_limit_rate, sizeof(*throttled_body));
    if (!throttled_body)
        return -ENOMEM;
    *throttled_body = (struct throttled_body){.body = {.ops = &throttled_body_ops, .length = x->response.body->length},
                                              .inner = x->response.body,
                                              .x = x,
                                              .rate = rate,
                                              .share = share_of(rate),
                                              .free = after,
                                              .credit = share_of(rate) * 1000,
                                              .counted_ms = exchange_clock(x)->monotonic_ms};
    throttled_body->inner->wake = throttled_inner_woken;
    throttled_body->inner->owner = throttled_body;
    x->response.body = &throttled_body->body;
    return 0;
}

static bool limit_rate_idle(const void *conf)
{
    const struct limit_rate_conf *own = conf;

    return !own->rate;
}

static struct str get_rate(const void *subject, struct str parameter, struct arena *arena)
{
    const struct throttled_body *throttled_body = exchange_state_found(subject, &module_limit_rate);

    return arena_print_number(arena, throttled_body ? throttled_body->rate : 0);
}

static const struct variable variables[] = {{"limit_rate", false, get_rate, .type = "bytes per second",
     .help = "Limit of the response."}};
static const struct variable_table variable_table = {variables, 1, NULL};

const struct module module_limit_rate = {
    .name = "limit_rate",
    .directives = directives,
    .conf_size = sizeof(struct limit_rate_conf),
    .idle = limit_rate_idle,
    .filter = limit_rate_filter,
    .limits_rate = true,
    .variables = &variable_table,
};
