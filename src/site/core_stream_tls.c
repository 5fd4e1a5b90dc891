/*
 * Directives of `stream` about TLS to upstream servers: those of http, and proxy_ssl, which enables it.
 */
#include "site/core_stream.h"
#include "upstream/upstream_ssl_rows.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct core_stream_tls, field)
#define BOTH      (SCOPE_STREAM | SCOPE_STREAM_SERVER)

/* Returns the place of the directive that most probably caused the error. */
static struct conf_mark mark_of(const struct conf_node *at)
{
    static const char *const names[] = {"proxy_ssl_certificate_key", "proxy_ssl_certificate", "proxy_ssl_ciphers",
                                        "proxy_ssl_trusted_certificate", "proxy_ssl"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct conf_node *node = conf_map_get(at, str_from(names[i]));

        if (node)
            return node->mark;
    }
    return at->mark;
}

/* Reads the files at load: errors are reported at startup, and workers may lack the permission to read keys. */
static int check_tls(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct core_stream_tls *own = conf;
    char error[256];

    own->ssl.no_server_name = !own->server_name;
    own->ssl.no_reuse = !own->session_reuse;
    own->ssl.no_alpn = true;
    if (!own->on || upstreams_add_tls(reader->upstreams, &own->ssl, error, sizeof(error)) == 0)
        return 0;
    conf_error(reader->errors, mark_of(at), STR("PEM files, as proxy_ssl_certificate: /etc/ssl/client.pem"),
               "TLS to the server cannot be set up: %s", error);
    return -EINVAL;
}

static const struct directive directives[] = {
    {.name = "proxy_ssl",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(on),
     .default_value = "off",
     .example = "proxy_ssl: on",
     .help = "Whether connections to servers use TLS."},
    UPSTREAM_SSL_ROWS("proxy", BOTH, AT(ssl), AT(server_name), AT(session_reuse), AT(name)),
    {0},
};

const struct conf_group core_stream_tls_group = {
    .name = "stream_ssl",
    .directives = directives,
    .size = sizeof(struct core_stream_tls),
    .check = check_tls,
};
