/*
 * `limit_rate`: the body of an answer leaves at no more than so many bytes a second. A wrapper hands the body out
 * in shares, and waits between them by a timer; file spans stay file spans, so that the kernel sends and encrypts
 * them as ever.
 */
#include "base/limits.h"
#include "base/saturate.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct limit_rate_conf {
    const struct template *rate, *after; /* NULL: none */
};

/* The answer's own body, the span of it that is being handed out, and what may leave. */
struct paced {
    struct body body;
    struct body *inner;
    struct exchange *x;   /* held while the timer runs */
    struct chunk span;    /* CHUNK_FILE, or nothing */
    struct op timer;
    bool waits;           /* for the timer: -EAGAIN was said */
    uint64_t rate;        /* bytes a second */
    uint64_t share;       /* bytes: less is waited for */
    uint64_t free;        /* bytes that may leave at once */
    uint64_t credit;      /* thousandths of bytes */
    uint64_t counted_ms;  /* up to when */
};

extern const struct module module_limit_rate;

#define AT(field) offsetof(struct limit_rate_conf, field)

/* A constant is checked where it stands. */
static int read_rate(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    const struct template **into = out;
    uint64_t bytes;
    int error = conf_read_template(reader, node, into);

    if (error < 0 || !template_constant(*into))
        return error;
    return conf_read_size(reader, node, &bytes);
}

static const struct directive directives[] = {
    {.name = "limit_rate",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(rate),
     .row_size = sizeof(const struct template *),
     .row = read_rate,
     .syntax = "size | variable",
     .example = "limit_rate: 500k",
     .schema = "{\"type\": [\"string\", \"integer\"]}",
     .help = "Bytes a second at which the body of each answer leaves; variables may say it. 0, or "
             "nothing: no limit. Two requests of one client have twice as much: limit_conn bounds that."},
    {.name = "limit_rate_after",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(after),
     .row_size = sizeof(const struct template *),
     .row = read_rate,
     .syntax = "size | variable",
     .example = "limit_rate_after: 10m",
     .schema = "{\"type\": [\"string\", \"integer\"]}",
     .help = "Bytes of each answer that leave before limit_rate holds."},
    {0},
};

/* Time passes into credit: at most a second of it is kept, so that a client that was slow is not let run. */
static void count_time(struct paced *paced)
{
    uint64_t now_ms = exchange_clock(paced->x)->monotonic_ms;
    uint64_t passed_ms = u64_sub_sat(now_ms, paced->counted_ms);
    uint64_t most = (paced->rate > paced->share ? paced->rate : paced->share) * 1000;

    paced->counted_ms = now_ms;
    if (passed_ms > 1000)
        passed_ms = 1000;
    paced->credit += paced->rate * passed_ms;
    if (paced->credit > most)
        paced->credit = most;
}

static void consume_credit(struct paced *paced, uint64_t bytes)
{
    uint64_t given = bytes < paced->free ? bytes : paced->free;

    paced->free -= given;
    paced->credit = u64_sub_sat(paced->credit, (bytes - given) * 1000);
    if (paced->body.length != BODY_LENGTH_UNKNOWN)
        paced->body.length = u64_sub_sat(paced->body.length, bytes);
}

static void credit_timer_done(struct op *op, int result)
{
    struct paced *paced = container_of(op, struct paced, timer);
    struct exchange *x = paced->x;

    if (paced->waits) {
        paced->waits = false;
        paced->body.wake(paced->body.owner);
    }
    exchange_release(x);
}

static int wait_for_credit(struct paced *paced, uint64_t needed)
{
    uint64_t missing = u64_sub_sat(needed * 1000, paced->credit);

    paced->waits = true;
    if (!op_idle(&paced->timer))
        return -EAGAIN;
    exchange_hold(paced->x);
    paced->timer.done = credit_timer_done;
    worker_timer(exchange_worker(paced->x), &paced->timer, (missing + paced->rate - 1) / paced->rate);
    return -EAGAIN;
}

static int next_of_span(struct paced *paced, uint64_t most, struct chunk *out)
{
    *out = paced->span;
    if (out->file.length > most)
        out->file.length = most;
    chunk_advance(&paced->span, out->file.length);
    consume_credit(paced, out->file.length);
    return 1;
}

/* Pipes are left out of `accept`: what is in one has to leave as a whole. */
static int paced_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct paced *paced = container_of(body, struct paced, body);
    uint64_t needed = body->length < paced->share ? body->length : paced->share;
    uint64_t most;
    int result;

    count_time(paced);
    most = paced->free + paced->credit / 1000;
    if (most < needed)
        return wait_for_credit(paced, needed);
    paced->waits = false;
    if (chunk_length(&paced->span) > 0)
        return next_of_span(paced, most, out);
    if (room > most && most > 0)
        room = (size_t)most;
    result = paced->inner->ops->next(paced->inner, accept & ~(unsigned)CHUNK_PIPE, room, out);
    if (result <= 0)
        return result;
    if (out->kind == CHUNK_FILE) {
        paced->span = *out;
        paced->span.file.whole = out->file.length; /* what each share belongs to */
        return next_of_span(paced, most, out);
    }
    consume_credit(paced, out->bytes.length);
    return 1;
}

static void paced_close(struct body *body)
{
    struct paced *paced = container_of(body, struct paced, body);

    paced->waits = false;
    if (!op_idle(&paced->timer))
        worker_cancel(exchange_worker(paced->x), &paced->timer);
    body_close(&paced->inner);
}

static void rate_inner_woken(void *owner)
{
    struct paced *paced = owner;

    paced->body.wake(paced->body.owner);
}

static const struct body_ops paced_ops = {.next = paced_next, .close = paced_close};

/* 0 where there is none; what is no size is said, and is none. */
static int size_of(struct exchange *x, const struct template *template, uint64_t *out)
{
    struct str text = template ? exchange_eval(x, template) : STR("");

    *out = 0;
    if (!text.data)
        return -ENOMEM;
    if (!str_empty(text) && conf_size_parse(text, out) < 0)
        exchange_log_error(x, LOG_ERROR, "limit_rate: \"" STR_FMT "\" is no size", STR_ARG(text));
    return 0;
}

/* Ten shares a second, as far as they are neither tiny nor more than a turn of the loop moves. */
static uint64_t share_of(uint64_t rate)
{
    uint64_t share = rate / 10;

    if (share > LIMIT_TURN_BYTES)
        return LIMIT_TURN_BYTES;
    return share < 512 ? (rate < 512 ? rate : 512) : share;
}

static int limit_rate_shape(struct exchange *x, const void *conf)
{
    const struct limit_rate_conf *own = conf;
    uint64_t rate, after;
    struct paced *paced;

    if (!x->response.body || x->request.method == METHOD_HEAD || x->response.status == 101)
        return 0;
    if ((!exchange_rate(x, &rate) && size_of(x, own->rate, &rate) < 0) || size_of(x, own->after, &after) < 0)
        return -ENOMEM;
    if (rate == 0)
        return 0;
    if (rate > LIMIT_PACED_RATE)
        rate = LIMIT_PACED_RATE;
    paced = exchange_state(x, &module_limit_rate, sizeof(*paced));
    if (!paced)
        return -ENOMEM;
    *paced = (struct paced){.body = {.ops = &paced_ops, .length = x->response.body->length},
                            .inner = x->response.body,
                            .x = x,
                            .rate = rate,
                            .share = share_of(rate),
                            .free = after,
                            .credit = share_of(rate) * 1000,
                            .counted_ms = exchange_clock(x)->monotonic_ms};
    paced->inner->wake = rate_inner_woken;
    paced->inner->owner = paced;
    x->response.body = &paced->body;
    return 0;
}

static bool limit_rate_idle(const void *conf)
{
    const struct limit_rate_conf *own = conf;

    return !own->rate;
}

static struct str get_rate(const void *subject, struct str parameter, struct arena *arena)
{
    const struct paced *paced = exchange_state_found(subject, &module_limit_rate);

    return arena_printf(arena, "%llu", paced ? (unsigned long long)paced->rate : 0);
}

static const struct variable variables[] = {{"limit_rate", false, get_rate, .type = "bytes a second",
     .help = "Limit of the answer."}};
static const struct variable_table variable_table = {variables, 1, NULL};

const struct module module_limit_rate = {
    .name = "limit_rate",
    .directives = directives,
    .conf_size = sizeof(struct limit_rate_conf),
    .idle = limit_rate_idle,
    .shape = limit_rate_shape,
    .limits_rate = true,
    .variables = &variable_table,
};
