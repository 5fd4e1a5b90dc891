/*
 * The client's address behind a trusted proxy (`set_real_ip_from`), from a request header field or from the PROXY
 * protocol header. Runs first, so that all other modules use the client's address.
 */
#include "forwarded.h"
#include "server/module.h"
#include "stream/stream_module.h"

#include <stddef.h>

struct realip_conf {
    struct conf_rows from; /* struct cidr */
    struct str header;
    bool recursive;
};

static int read_from(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return conf_read_cidr(reader, node, out);
}

static const struct directive directives[] = {
    {.name = "set_real_ip_from",
     .scopes = SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .offset = offsetof(struct realip_conf, from),
     .row_size = sizeof(struct cidr),
     .row = read_from,
     .syntax = "address | address/bits | unix:",
     .example = "set_real_ip_from: [10.0.0.0/8, \"2001:db8::/32\", \"unix:\"]",
     .help = "Proxies whose information about the client is trusted (real_ip_header). Their X-Forwarded-For and "
             "related fields are passed on by proxy_pass, with their own address appended. In stream the "
             "information is in the PROXY protocol header."},
    {.name = "real_ip_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEXT,
     .offset = offsetof(struct realip_conf, header),
     .default_value = "X-Real-IP",
     .example = "real_ip_header: X-Forwarded-For",
     .help = "The source of the client's address from trusted proxies: a header field (X-Real-IP, X-Forwarded-For, "
             "Forwarded or another), or proxy_protocol."},
    {.name = "real_ip_recursive",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = offsetof(struct realip_conf, recursive),
     .default_value = "off",
     .example = "real_ip_recursive: on",
     .help = "Use the last address of a list that is not trusted, instead of the last one."},
    {0},
};

static struct forwarded_trust trust_of(const struct realip_conf *conf)
{
    return (struct forwarded_trust){conf->from.items, conf->from.count, conf->recursive};
}

static enum outcome realip_handler(struct exchange *x, const void *conf, void *state)
{
    const struct realip_conf *own = conf;
    const struct forwarded_trust trust = trust_of(own);
    const struct sockaddr *peer = exchange_peer(x);
    const struct proxy_header *proxy_header = exchange_proxy_header(x);
    union proxy_address client = {0};

    if (exchange_is_internally_redirected(x) || !forwarded_is_trusted(&trust, peer))
        return OUTCOME_DECLINED;
    if (str_equal(
            own->header,
            STR("proxy_protocol"))) { /* it authenticates the connection, not its requests */
        if (proxy_header && proxy_header->source.any.sa_family != AF_UNSPEC)
            exchange_set_client(x, &proxy_header->source, false);
        return OUTCOME_DECLINED;
    }
    if (!forwarded_find_client(&trust, &x->request.headers, own->header, &client))
        client = *(const union proxy_address *)(const void *)peer;
    exchange_set_client(x, &client, true);
    return OUTCOME_DECLINED;
}

static int realip_connected(struct stream *stream, const void *conf, void *state)
{
    const struct forwarded_trust trust = trust_of(conf);
    const struct proxy_header *proxy_header = stream_proxy_header(stream);

    if (proxy_header && proxy_header->source.any.sa_family != AF_UNSPEC &&
        forwarded_is_trusted(&trust, stream_peer(stream)))
        stream_set_client(stream, &proxy_header->source);
    return 0;
}

static const struct stream_part stream_part = {.connected = realip_connected};

static bool realip_idle(const void *conf)
{
    const struct realip_conf *own = conf;

    return own->from.count == 0;
}

const struct module module_realip = {
    .name = "realip",
    .directives = directives,
    .conf_size = sizeof(struct realip_conf),
    .idle = realip_idle,
    .server_rule = SERVER_RULE_PREPARES,
    .handler = realip_handler,
    .stream = &stream_part,
};
