/*
 * `proxy_limit_rate`: limits the rate of reading from the upstream server. The number of received bytes determines the
 * time of the next read; meanwhile TCP flow control slows the upstream server down.
 */
#include "rate_limit.h"

#include <errno.h>

/* In the exchange's arena, which is referenced while the timer runs. */
struct gateway_rate_limit {
    struct gateway_request *p;
    void (*due)(struct gateway_request *p);
    struct op timer;
    uint64_t rate;     /* bytes per second */
    uint64_t began_ms;
};

int gateway_rate_limit_begin(struct gateway_request *p, void (*due)(struct gateway_request *p))
{
    struct exchange *x = p->x;
    struct str text = p->conf->limit_rate ? exchange_eval(x, p->conf->limit_rate) : STR("");
    uint64_t rate = 0;

    if (!text.data)
        return -ENOMEM;
    if (!str_empty(text) && conf_size_parse(text, &rate) < 0)
        exchange_log_error(x, LOG_ERROR, "proxy_limit_rate: \"" STR_FMT "\" is not a size", STR_ARG(text));
    if (rate == 0)
        return 0;
    p->incoming.rate_limit = arena_zalloc(&x->arena, 1, sizeof(*p->incoming.rate_limit));
    if (!p->incoming.rate_limit)
        return -ENOMEM;
    *p->incoming.rate_limit = (struct gateway_rate_limit){
        .p = p, .due = due, .rate = rate, .began_ms = exchange_clock(x)->monotonic_ms};
    return 0;
}

static void timer_due(struct op *op, int result)
{
    struct gateway_rate_limit *rate_limit = container_of(op, struct gateway_rate_limit, timer);
    struct gateway_request *p = rate_limit->p;
    struct exchange *x = p->x;

    if (p->incoming.rate_limit == rate_limit && p->stage == GATEWAY_RESPONDING)
        rate_limit->due(p);
    exchange_release(x);
}

bool gateway_is_rate_limited(struct gateway_request *p)
{
    struct gateway_rate_limit *rate_limit = p->incoming.rate_limit;
    uint64_t now_ms, due_ms;

    if (!rate_limit)
        return false;
    now_ms = exchange_clock(p->x)->monotonic_ms;
    due_ms = rate_limit->began_ms + (uint64_t)((double)p->attempt->bytes_received * 1000 / (double)rate_limit->rate);
    if (due_ms <= now_ms)
        return false;
    if (!op_idle(&rate_limit->timer))
        return true;
    exchange_hold(p->x);
    rate_limit->timer.done = timer_due;
    worker_timer(exchange_worker(p->x), &rate_limit->timer, due_ms - now_ms);
    return true;
}

void gateway_rate_limit_end(struct gateway_request *p)
{
    struct gateway_rate_limit *rate_limit = p->incoming.rate_limit;

    p->incoming.rate_limit = NULL;
    if (rate_limit && !op_idle(&rate_limit->timer))
        worker_cancel(exchange_worker(p->x), &rate_limit->timer);
}
