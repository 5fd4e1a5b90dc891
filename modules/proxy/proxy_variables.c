/*
 * $proxy_host, $proxy_port and $proxy_add_x_forwarded_for.
 */
#include "proxy.h"

#define ABSENT ((struct str){NULL, 0})

static const struct gateway_request *passed_on(const void *subject)
{
    const struct gateway_request *p = gateway_request_of(subject);

    return p && p->x ? p : NULL;
}

static struct str get_proxy_host(const void *subject, struct str parameter, struct arena *arena)
{
    const struct gateway_request *p = passed_on(subject);

    return p ? gateway_target_host(&p->target) : ABSENT;
}

static struct str get_proxy_port(const void *subject, struct str parameter, struct arena *arena)
{
    const struct gateway_request *p = passed_on(subject);
    ssize_t colon = p ? str_rfind(p->target.authority, ':') : -1;
    struct str port;
    uint64_t value;

    if (!p)
        return ABSENT;
    port = str_skip(p->target.authority, (size_t)(colon + 1));
    return colon >= 0 && str_to_u64(port, &value) == 0 ? port : p->target.https ? STR("443") : STR("80");
}

/* X-Forwarded-For of the request, with the client's address appended. */
static struct str get_add_forwarded(const void *subject, struct str parameter, struct arena *arena)
{
    const struct gateway_request *p = passed_on(subject);
    const struct exchange *x = subject;
    struct str forwarded, address;

    if (!p || headers_join(&x->request.headers, str_equal_nocase, STR("X-Forwarded-For"), STR(", "), arena,
                            &forwarded) < 0)
        return ABSENT;
    address = exchange_eval(p->x, p->conf->remote_addr);
    return str_empty(forwarded) ? address : arena_join(arena, (const struct str[]){forwarded, STR(", "), address}, 3);
}

static const struct variable variables[] = {
    {"proxy_add_x_forwarded_for", false, get_add_forwarded, .type = "text",
     .help = "X-Forwarded-For of the request with the address of the client appended."},
    {"proxy_host", false, get_proxy_host, .type = "text",
     .help = "Host and port in proxy_pass."},
    {"proxy_port", false, get_proxy_port, .type = "number",
     .help = "Port in proxy_pass."},
};

const struct variable_table proxy_variables = {variables, sizeof(variables) / sizeof(variables[0]), NULL};
