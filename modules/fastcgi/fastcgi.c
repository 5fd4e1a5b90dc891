/*
 * `fastcgi_pass`: the module.
 */
#include "fastcgi.h"

extern const struct module module_fastcgi;

static enum outcome fastcgi_handler(struct exchange *x, const void *conf, void *state)
{
    const struct fastcgi_conf *own = conf;

    return gateway_handler(x, &own->gateway);
}

static bool fastcgi_idle(const void *conf)
{
    const struct fastcgi_conf *own = conf;

    return !own->gateway.pass.text;
}

const struct module module_fastcgi = {
    .name = "fastcgi",
    .directives = fastcgi_directives,
    .conf_size = sizeof(struct fastcgi_conf),
    .conf_check = fastcgi_conf_check,
    .idle = fastcgi_idle,
    .handler = fastcgi_handler,
    .cancel = gateway_cancel,
    .variables = &fastcgi_variables,
    .explain_mode = EXPLAIN_UPSTREAM,
};
