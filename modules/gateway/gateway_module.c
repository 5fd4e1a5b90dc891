/*
 * Common to all gateways: the end of an exchange, the directory of request bodies, and the $upstream_ variables.
 */
#include "gateway.h"

#include "buffered_body.h"
#include "connection.h"
#include "gateway_variables.h"

#include <stddef.h>

static void gateway_finish(struct exchange *x, const void *conf)
{
    struct gateway_request *p = gateway_request_of(x);

    if (!p)
        return;
    /* Detached: the handler has not run, so gateway_cancel was not called. Or a 304 of HTTP/2 without END_STREAM. */
    if (p->detached || gateway_is_connected(p))
        gateway_discard(p);
    if (p->cache)
        p->cache->finish(p);
    buffer_finish(&p->incoming.input); /* the response was another one */
    if (p->sent.owned)
        buffered_body_close(p->sent.owned);
}

static const struct directive directives[] = {
    {.name = "client_body_temp_path",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .written = true,
     .offset = offsetof(struct gateway_module_conf, body_directory),
     .default_value = "/var/tmp",
     .example = "client_body_temp_path: /var/cache/sluice",
     .help = "The directory of temporary files with request bodies. They are unnamed and disappear with their "
             "request. It is created as that of proxy_temp_path."},
    {0},
};

const struct module module_gateway = {
    .name = "gateway",
    .directives = directives,
    .conf_size = sizeof(struct gateway_module_conf),
    .finish = gateway_finish,
    .variables = &gateway_variables,
};
