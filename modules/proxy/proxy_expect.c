/*
 * `Expect: 100-continue` (RFC 9110 10.1.1): without request buffering the expectation is forwarded to the upstream
 * server. The client gets its 100 when the upstream server sends 100, or after LIMIT_CONTINUE_MS, since upstream
 * servers may ignore the expectation; and no 100 if the final status arrives first.
 */
#include "proxy.h"

#include "base/limits.h"

#include <errno.h>

/* In the exchange's arena; the exchange is held while the timer runs. */
struct proxy_expect {
    struct gateway_request *p;
    struct op timer;
};

static void continue_timer_done(struct op *op, int result)
{
    struct proxy_expect *expect = container_of(op, struct proxy_expect, timer);
    struct exchange *x = expect->p->x;

    if (expect->p->own_state == expect)
        proxy_expect_met(expect->p);
    exchange_release(x);
}

int proxy_expect_begin(struct gateway_request *p)
{
    struct proxy_expect *expect = arena_zalloc(&p->x->arena, 1, sizeof(*expect));

    if (!expect)
        return -ENOMEM;
    *expect = (struct proxy_expect){.p = p, .timer.done = continue_timer_done};
    p->own_state = expect;
    p->sent.request.body_not_pulled = true;
    exchange_hold(p->x);
    worker_timer(exchange_worker(p->x), &expect->timer, LIMIT_CONTINUE_MS);
    return 0;
}

void proxy_expect_met(struct gateway_request *p)
{
    if (!p->sent.request.body_not_pulled || p->stage != GATEWAY_SENDING || !p->upstream.connection)
        return;
    p->sent.request.body_not_pulled = false;
    upstream_wake(p->upstream.connection);
    proxy_expect_end(p);
}

void proxy_expect_end(struct gateway_request *p)
{
    struct proxy_expect *expect = p->own_state;

    p->own_state = NULL;
    if (expect && !op_idle(&expect->timer))
        worker_cancel(exchange_worker(p->x), &expect->timer);
}
