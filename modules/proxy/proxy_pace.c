/*
 * `proxy_limit_rate`: an answer is read from its server at no more than so many bytes a second. What has come says when
 * more of it is due; until then nothing is asked of the connection, and the kernel holds the server back.
 */
#include "proxy.h"

#include <errno.h>

/* In the exchange's arena, which is held while the timer runs. */
struct proxy_pace {
    struct proxying *p;
    struct op timer;
    uint64_t rate;     /* bytes a second */
    uint64_t began_ms;
};

int proxy_read_rate(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    const struct template **into = out;
    uint64_t bytes;
    int error = conf_read_template(reader, node, into);

    if (error < 0 || !template_constant(*into))
        return error;
    return conf_read_size(reader, node, &bytes);
}

int proxy_pace_begin(struct proxying *p)
{
    struct exchange *x = p->x;
    struct str text = p->conf->limit_rate ? exchange_eval(x, p->conf->limit_rate) : STR("");
    uint64_t rate = 0;

    if (!text.data)
        return -ENOMEM;
    if (!str_empty(text) && conf_size_parse(text, &rate) < 0)
        exchange_say(x, LOG_ERROR, "proxy_limit_rate: \"" STR_FMT "\" is no size", STR_ARG(text));
    if (rate == 0)
        return 0;
    p->pace = arena_zalloc(&x->arena, 1, sizeof(*p->pace));
    if (!p->pace)
        return -ENOMEM;
    *p->pace = (struct proxy_pace){.p = p, .rate = rate, .began_ms = exchange_clock(x)->monotonic_ms};
    return 0;
}

static void due(struct op *op, int result)
{
    struct proxy_pace *pace = container_of(op, struct proxy_pace, timer);
    struct proxying *p = pace->p;
    struct exchange *x = p->x;

    if (p->pace == pace && p->stage == PROXY_ANSWERING)
        proxy_read_on(p);
    exchange_release(x);
}

bool proxy_is_ahead(struct proxying *p)
{
    struct proxy_pace *pace = p->pace;
    uint64_t now_ms, due_ms;

    if (!pace)
        return false;
    now_ms = exchange_clock(p->x)->monotonic_ms;
    due_ms = pace->began_ms + (uint64_t)((double)p->attempt->bytes_received * 1000 / (double)pace->rate);
    if (due_ms <= now_ms)
        return false;
    if (!op_idle(&pace->timer))
        return true;
    exchange_hold(p->x);
    pace->timer.done = due;
    worker_timer(exchange_worker(p->x), &pace->timer, due_ms - now_ms);
    return true;
}

void proxy_pace_end(struct proxying *p)
{
    struct proxy_pace *pace = p->pace;

    p->pace = NULL;
    if (pace && !op_idle(&pace->timer))
        worker_cancel(exchange_worker(p->x), &pace->timer);
}
