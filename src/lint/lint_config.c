/*
 * Looks up directives of a configuration by name.
 */
#include "lint/lint_config.h"

#include <netinet/in.h>

const struct conf_node *config_find(const struct conf_scope_values *values, const char *name)
{
    return values && values->node ? conf_map_get(values->node, str_from(name)) : NULL;
}

const struct conf_node *config_find_inherited(const struct conf_scope_values *values, const char *name)
{
    for (; values; values = values->outer) {
        const struct conf_node *node = config_find(values, name);

        if (node)
            return node;
    }
    return NULL;
}

struct str config_text(const struct conf_node *node)
{
    return node && node->kind == CONF_SCALAR ? node->text : STR("");
}

bool config_is_on(const struct conf_node *node)
{
    struct str text = config_text(node);

    return str_equal(text, STR("on")) || str_equal(text, STR("true")) || str_equal(text, STR("yes"));
}

void config_each_scalar(struct lint *lint, const struct conf_node *node, config_scalar_found *each, void *owner)
{
    if (!node)
        return;
    if (node->kind == CONF_SCALAR)
        each(lint, node, owner);
    for (size_t i = 0; node->kind != CONF_SCALAR && i < node->count; i++)
        config_each_scalar(lint, node->kind == CONF_LIST ? node->items[i] : node->pairs[i].value, each, owner);
}

static bool has_word(struct str text, struct str word)
{
    while (text.data) {
        if (str_equal(str_cut(&text, ' '), word))
            return true;
    }
    return false;
}

bool config_has_word(const struct conf_node *node, struct str text)
{
    bool found = false;

    if (!node)
        return false;
    if (node->kind == CONF_SCALAR)
        return has_word(node->text, text);
    for (size_t i = 0; i < node->count && !found; i++)
        found = config_has_word(node->kind == CONF_LIST ? node->items[i] : node->pairs[i].value, text);
    return found;
}

struct conf_mark config_mark(const struct lint_place *place)
{
    const struct conf_node *node = place->location->values->node;
    const struct conf_node *locations = place->outer ? config_find(place->outer->values, "location") : NULL;

    for (size_t i = 0; locations && locations->kind == CONF_MAP && i < locations->count; i++) {
        if (locations->pairs[i].value == node)
            return locations->pairs[i].key->mark;
    }
    return node->mark;
}

static bool is_loopback(const struct listen_address *address)
{
    if (address->socket.ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)&address->socket)->sin_addr.s_addr) >> 24 == 127;
    if (address->socket.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->socket)->sin6_addr);
    return true;
}

/* True if the server listens with (1) or without (0) ssl, or with any (-1); with `outside`, not on loopback. */
static bool server_listens(const struct lint *lint, const struct virtual_server *server, int ssl, bool outside)
{
    for (size_t i = 0; i < lint->configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &lint->configuration->endpoints[i];

        if ((ssl >= 0 && endpoint->ssl != (ssl == 1)) || (outside && is_loopback(&endpoint->address)))
            continue;
        for (size_t k = 0; k < endpoint->server_count; k++) {
            if (endpoint->servers[k] == server)
                return true;
        }
    }
    return false;
}

bool config_listens(const struct lint *lint, const struct virtual_server *server, bool ssl)
{
    return server_listens(lint, server, ssl, false);
}

bool config_listens_outside(const struct lint *lint, const struct virtual_server *server)
{
    return server_listens(lint, server, -1, true);
}

bool config_is_guarded(const struct conf_scope_values *values)
{
    static const char *const restrictions[] = {"deny", "auth_basic", "auth_request", "secure_link_required",
                                         "ssl_verify_client"};

    for (size_t i = 0; i < sizeof(restrictions) / sizeof(restrictions[0]); i++) {
        const struct conf_node *guard = config_find_inherited(values, restrictions[i]);

        if (guard && !str_equal(config_text(guard), STR("off")))
            return true;
    }
    return config_is_on(config_find(values, "internal"));
}
