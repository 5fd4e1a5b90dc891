/*
 * `grpc_pass`: the module.
 */
#include "grpc.h"

static enum outcome grpc_handler(struct exchange *x, const void *conf, void *state)
{
    const struct proxy_conf *own = conf;

    return gateway_handler(x, &own->gateway);
}

static bool grpc_idle(const void *conf)
{
    const struct proxy_conf *own = conf;

    return !own->gateway.pass.text;
}

const struct module module_grpc = {
    .name = "grpc",
    .directives = grpc_directives,
    .conf_size = sizeof(struct proxy_conf),
    .conf_check = grpc_conf_check,
    .idle = grpc_idle,
    .handler = grpc_handler,
    .cancel = gateway_cancel,
    .explain_mode = EXPLAIN_UPSTREAM,
};
