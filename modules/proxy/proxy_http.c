/*
 * The functions of the proxy gateway: HTTP/1.1 and HTTP/2.
 */
#include "proxy.h"

#include "modules/gateway/h2/stream.h"

#include <errno.h>

static int http_begin(struct gateway_request *p)
{
    const struct h1_reply_settings expected = {.head = p->sent.method == METHOD_HEAD,
                                               .upgrade = !str_empty(p->upgrade),
                                               .head_max = p->conf->buffer_size};

    h1_reply_init(&p->reply, &expected, &p->x->arena, &p->x->response.trailers);
    return proxy_forwards_expect(p) ? proxy_expect_begin(p) : 0;
}

static int http_next(struct gateway_request *p, size_t room, struct chunk *out)
{
    return h1_request_next(&p->sent.request, room, out);
}

static enum h1_reply_step check_switch(struct gateway_request *p)
{
    const char *fault = proxy_websocket_check(p);

    if (!fault)
        return REPLY_HEAD;
    h1_reply_finish(&p->reply);
    p->reply.fault = fault;
    return REPLY_BAD;
}

static enum h1_reply_step read_reply(struct gateway_request *p, struct str *in, struct str *out_part)
{
    enum h1_reply_step step = h1_reply_read(&p->reply, in, out_part);

    if (step == REPLY_INTERIM && p->reply.status == 100)
        proxy_expect_met(p);
    if (step == REPLY_HEAD && p->reply.status == 101)
        return check_switch(p);
    return step;
}

static enum h1_reply_step http_ended(struct gateway_request *p, bool truncated)
{
    return h1_reply_ended(&p->reply, truncated);
}

static void http_finish(struct gateway_request *p)
{
    if (p->own_state)
        proxy_expect_end(p);
    h1_reply_finish(&p->reply);
}

/* Maps Location, Refresh and Set-Cookie from the upstream server's URLs, domains and paths to this server's. */
static int rewrite_head(struct gateway_request *p)
{
    return proxy_rewrite_location(p) < 0 || proxy_rewrite_cookies(p) < 0 ? -ENOMEM : 0;
}

const struct gateway proxy_gateway = {
    .name = "proxy",
    .scheme = "http",
    .tls_scheme = "https",
    .parse = proxy_target_parse,
    .write_head = proxy_write_head,
    .begin = http_begin,
    .next = http_next,
    .read = read_reply,
    .ended = http_ended,
    .finish = http_finish,
    .rewrite_head = rewrite_head,
};

const struct gateway proxy_http2_gateway = {
    .name = "proxy",
    .scheme = "http",
    .tls_scheme = "https",
    .streams = &gateway_http2_streams,
    .parse = proxy_target_parse,
    .write_head = proxy_write_head,
    .rewrite_head = rewrite_head,
};
