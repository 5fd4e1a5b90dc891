/*
 * The server of the control socket: a virtual server beside those of the file, with default settings, because access
 * rules, limits and header fields of `http` concern other clients.
 */
#include "site/load.h"

#include <errno.h>

/* Errors are JSON; the control module responds to every request that can be parsed. */
static const char settings[] = "access_log: off\nerror_page_format: json\n";

static const struct conf_scope_values *read_defaults(struct load *load, const struct conf_scope_values *main)
{
    const struct conf_node *node =
        conf_tree_parse(load->reader.arena, STR("(control)"), str_from(settings), load->errors);
    const struct core_http *http = load->http;
    const struct conf_scope_values *values = node ? load_scope(load, SCOPE_HTTP, node, main, NULL) : NULL;

    load->http = http;
    return values;
}

int load_control(struct load *load, const struct conf_scope_values *main)
{
    const struct core_control *control = &load->configuration->main->control;
    struct arena *arena = load->reader.arena;
    struct conf_node *node = arena_zalloc(arena, 1, sizeof(*node));
    struct listen_row *row = arena_zalloc(arena, 1, sizeof(*row));
    const struct conf_scope_values *defaults;
    struct core_server *own;
    struct loaded_server *loaded;

    if (str_empty(control->text))
        return 0;
    defaults = node && row ? read_defaults(load, main) : NULL;
    if (!defaults)
        return -ENOMEM;
    *node = (struct conf_node){.kind = CONF_MAP, .mark = control->mark};
    *row = (struct listen_row){.address = control->address,
                               .text = control->text,
                               .mark = control->mark,
                               .control = true,
                               .backlog = 16};
    if (load_server(load, node, defaults) < 0)
        return -ENOMEM;
    loaded = &load->servers[load->server_count - 1];
    own = conf_scope_group(loaded->values, CORE_SERVER);
    own->listens = (struct conf_rows){.items = row, .count = 1};
    loaded->server->control = true;
    return 0;
}
