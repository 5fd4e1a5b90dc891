/*
 * `proxy_pass`: passes requests to HTTP upstreams. This file has the module and its table of functions; modules/gateway
 * has the parts that are common to all gateways.
 */
#include "proxy.h"

static enum outcome proxy_handler(struct exchange *x, const void *conf, void *state)
{
    const struct proxy_conf *own = conf;

    return gateway_handler(x, &own->gateway);
}

static bool proxy_idle(const void *conf)
{
    const struct proxy_conf *own = conf;

    return !own->gateway.pass.text;
}

/* A request to HTTP/2 servers cannot be upgraded. */
static bool proxy_upgrades(const void *conf)
{
    const struct proxy_conf *own = conf;

    return own->gateway.gateway == &proxy_gateway;
}

const struct module module_proxy = {
    .name = "proxy",
    .directives = proxy_directives,
    .conf_size = sizeof(struct proxy_conf),
    .conf_check = proxy_conf_check,
    .idle = proxy_idle,
    .upgrades = proxy_upgrades,
    .handler = proxy_handler,
    .cancel = gateway_cancel,
    .variables = &proxy_variables,
    .explain_mode = EXPLAIN_UPSTREAM,
};
