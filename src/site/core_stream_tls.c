/*
 * Directives of `stream` about TLS to upstream servers: those of http, and proxy_ssl, which enables it.
 */
#include "site/core_stream.h"
#include "upstream/upstream_ssl.h"

#include <stddef.h>

#define AT(field) offsetof(struct core_stream_tls, field)
#define BOTH      (SCOPE_STREAM | SCOPE_STREAM_SERVER)

static int check_tls(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct core_stream_tls *own = conf;

    own->ssl.settings.no_alpn = true;
    return own->on ? upstream_ssl_conf_complete(&own->ssl, "proxy", true, reader, at) : 0;
}

static const struct directive directives[] = {
    {.name = "proxy_ssl",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(on),
     .default_value = "off",
     .example = "proxy_ssl: on",
     .help = "Whether connections to servers use TLS."},
    UPSTREAM_SSL_ROWS("proxy", BOTH, AT(ssl)),
    {0},
};

const struct conf_group core_stream_tls_group = {
    .name = "stream_ssl",
    .directives = directives,
    .size = sizeof(struct core_stream_tls),
    .check = check_tls,
};
