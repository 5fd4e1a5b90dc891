/*
 * Upstream blocks, from the tree to the groups used by proxy_pass.
 */
#include "site/load.h"

#include <errno.h>

static int load_upstream(struct load *load, const struct conf_pair *pair,
                         const struct conf_scope_values *http)
{
    struct upstreams *upstreams = &load->configuration->upstreams;
    const struct conf_scope_values *values = load_scope(load, SCOPE_UPSTREAM, pair->value, http, NULL);
    int error;

    if (!values)
        return -ENOMEM;
    if (pair->value->kind != CONF_MAP)
        return 0;
    error = upstreams_add(upstreams, &load->reader, pair->value, pair->key->text,
                          conf_scope_group(values, CORE_UPSTREAM));
    return error == -ENOMEM ? error : 0;
}

int load_upstreams(struct load *load, const struct conf_node *http, const struct conf_scope_values *values)
{
    const struct conf_node *node = conf_map_get(http, STR("upstream"));
    int error = upstreams_begin(&load->configuration->upstreams, conf_scope_group(values, CORE_UPSTREAM));

    if (error < 0 || !node)
        return error;
    if (node->kind != CONF_MAP) {
        conf_error(load->errors, node->mark,
                   STR("upstream: {backend: {server: [127.0.0.1:9001, 127.0.0.1:9002]}}"),
                   "upstream takes a mapping of names to their servers");
        return 0;
    }
    for (size_t i = 0; i < node->count; i++) {
        if (!str_starts(node->pairs[i].key->text, STR("x-")))
            error = load_upstream(load, &node->pairs[i], values);
        if (error < 0)
            return error;
    }
    return 0;
}
