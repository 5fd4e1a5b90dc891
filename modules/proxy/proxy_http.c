/*
 * HTTP, spoken to the server.
 */
#include "proxy.h"

static int begin(struct gateway_request *p)
{
    const struct h1_reply_settings expected = {.head = p->method == METHOD_HEAD,
                                               .upgrade = !str_empty(p->upgrade),
                                               .head_max = p->conf->buffer_size};

    h1_reply_init(&p->reply, &expected, &p->x->arena, &p->x->response.trailers);
    return 0;
}

static int next(struct gateway_request *p, size_t room, struct chunk *out)
{
    return h1_request_next(&p->request, room, out);
}

static enum h1_reply_step read_reply(struct gateway_request *p, struct str *in, struct str *out_part)
{
    return h1_reply_read(&p->reply, in, out_part);
}

static enum h1_reply_step ended(struct gateway_request *p, bool cut)
{
    return h1_reply_ended(&p->reply, cut);
}

static void finish(struct gateway_request *p)
{
    h1_reply_finish(&p->reply);
}

const struct gateway proxy_gateway = {
    .scheme = "http",
    .tls_scheme = "https",
    .parse = proxy_target_parse,
    .rewrites = true,
    .write_head = proxy_write_head,
    .begin = begin,
    .next = next,
    .read = read_reply,
    .ended = ended,
    .finish = finish,
};
