/*
 * `auth_request`: access decided by a subrequest to another URI of this server, usually proxied to an authentication
 * service. The subrequest has no body; only the status and the header of its response are used.
 */
#include "server/module.h"
#include "site/user_variables.h"

#include <errno.h>
#include <stddef.h>

/* One item of auth_request_set: a line, or a map of several. */
struct auth_sets {
    struct auth_set {
        struct user_variable *variable;
        const struct template *value;
    } * items;
    size_t count;
};

struct auth_conf {
    const struct template *uri; /* NULL: no subrequest */
    struct conf_rows sets;      /* struct auth_sets */
};

struct auth_subrequest {
    struct exchange *x;
    const struct auth_conf *conf;
};

extern const struct module module_auth_request;

#define AT(field) offsetof(struct auth_conf, field)

static int read_uri(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0 || str_equal(text, STR("off")) || str_equal(text, STR("false")))
        return error;
    if (str_starts(text, STR("/")) || str_starts(text, STR("$")))
        return conf_read_template_word(reader, node, text, out);
    conf_error(reader->errors, node->mark, STR("write: auth_request: /auth, or off"),
               "\"" STR_FMT "\" is not a path of this server", STR_ARG(text));
    return -EINVAL;
}

static int read_set(struct conf_reader *reader, const struct conf_node *node, struct str name,
                    struct auth_sets *sets)
{
    return user_variable_read(reader, node, name, &sets->items[sets->count++].variable);
}

static int read_set_map(struct conf_reader *reader, const struct conf_node *node, struct auth_sets *sets)
{
    int error = 0;

    for (size_t i = 0; i < node->count && error == 0; i++) {
        error = read_set(reader, node->pairs[i].key, node->pairs[i].key->text, sets);
        if (error == 0)
            error = conf_read_template(reader, node->pairs[i].value, &sets->items[i].value);
    }
    return error;
}

/* "$name value", or a map from names to values. */
static int read_sets(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct auth_sets *sets = out;
    struct conf_words words;
    int error;

    sets->items = arena_zalloc(reader->arena, node->count + 1, sizeof(*sets->items));
    if (!sets->items)
        return -ENOMEM;
    if (node->kind == CONF_MAP)
        return read_set_map(reader, node, sets);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count != 2) {
        conf_error(reader->errors, node->mark, STR("write: auth_request_set: {$user: $upstream_http_x_user}"),
                   "auth_request_set takes a variable and its value");
        return -EINVAL;
    }
    error = read_set(reader, node, words.items[0], sets);
    return error < 0 ? error : conf_read_template_word(reader, node, words.items[1], &sets->items[0].value);
}

static const struct directive directives[] = {
    {.name = "auth_request",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(uri),
     .row_size = sizeof(const struct template *),
     .row = read_uri,
     .syntax = "URI | off",
     .example = "auth_request: /auth",
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .help = "A subrequest to this URI, with the header fields of the request and without its body, determines "
             "access: 2xx grants access, 401 and 403 are passed on to the client, anything else is 500. off: no "
             "subrequest."},
    {.name = "auth_request_set",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(sets),
     .row_size = sizeof(struct auth_sets),
     .row = read_sets,
     .syntax = "$variable value | {$variable: value, ...}",
     .example = "auth_request_set: {$user: $upstream_http_x_user}",
     .schema = "{\"type\": [\"string\", \"object\"]}",
     .help = "Variables that are set from the response to auth_request, such as $upstream_http_..., regardless of "
             "its status."},
    {0},
};

/* Removes conditions and ranges: they apply to the resource of the request, not to that of the subrequest. */
static void remove_conditions(struct headers *fields)
{
    static const char *const names[] = {
        "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        headers_remove(fields, str_from(names[i]));
}

static int copy_demands(const struct exchange *child, struct exchange *x)
{
    const struct headers *headers = &child->response.headers;
    struct str name = STR("WWW-Authenticate");
    int error = 0;

    for (const struct header *field = headers_find(headers, name); field && error == 0;
         field = headers_next(headers, name, field)) {
        struct str value = arena_copy(&x->arena, field->value);

        error = value.data ? headers_add(&x->response.headers, &x->arena, name, value) : -ENOMEM;
    }
    return error;
}

/* Evaluates the values in the subrequest, and copies them to the arena of the request. */
static int set_all(struct exchange *x, struct exchange *child, const struct auth_conf *own)
{
    const struct auth_sets *rows = own->sets.items;
    int error = 0;

    for (size_t i = 0; i < own->sets.count; i++) {
        for (size_t k = 0; k < rows[i].count && error == 0; k++) {
            struct str value = exchange_eval(child, rows[i].items[k].value);

            if (value.data)
                value = arena_copy(&x->arena, value);
            error = value.data ? user_variable_set(x, rows[i].items[k].variable, value) : -ENOMEM;
        }
    }
    return error;
}

static enum outcome outcome_of_subrequest(struct exchange *x, const struct exchange *child)
{
    int status = child->response.status;

    if (status >= 200 && status < 300)
        return OUTCOME_ALLOWED;
    if (status != 401 && status != 403)
        return exchange_error_response_log(x, 500, LOG_ERROR, "auth_request: unexpected status %d", status);
    exchange_error_response(x, status);
    return copy_demands(child, x) < 0 ? exchange_error_response(x, 500) : OUTCOME_RESPONDED;
}

static void subrequest_responded(struct exchange *child, void *owner)
{
    const struct auth_subrequest *auth_subrequest = owner;
    struct exchange *x = auth_subrequest->x;

    if (set_all(x, child, auth_subrequest->conf) < 0)
        exchange_resume(x, exchange_error_response(x, 500));
    else
        exchange_resume(x, outcome_of_subrequest(x, child));
    exchange_subrequest_end(child);
}

static enum outcome auth_handler(struct exchange *x, const void *conf, void *state)
{
    const struct auth_conf *own = conf;
    struct auth_subrequest *auth_subrequest;
    struct exchange *child;
    struct str uri, query, path;
    int error;

    uri = query = exchange_eval(x, own->uri);
    auth_subrequest = exchange_state(x, &module_auth_request, sizeof(*auth_subrequest));
    if (auth_subrequest)
        *auth_subrequest = (struct auth_subrequest){x, own};
    path = str_cut(&query, '?');
    if (uri.data && exchange_path_traverses(x, own->uri, uri, path, false))
        return exchange_error_response(x, 404);
    error = uri.data && auth_subrequest ? exchange_subrequest(x, uri, subrequest_responded, auth_subrequest, &child)
                                        : -ENOMEM;
    if (error < 0)
        return exchange_error_response_log(x, 500, LOG_ERROR, "auth_request: subrequest to \"" STR_FMT "\" failed "
                                                                                                       "(%d: %s)",
                                           STR_ARG(uri), -error, strerror(-error));
    remove_conditions(&child->request.headers);
    return OUTCOME_PENDING;
}

static bool auth_idle(const void *conf)
{
    const struct auth_conf *own = conf;

    return !own->uri;
}

const struct module module_auth_request = {
    .name = "auth_request",
    .directives = directives,
    .conf_size = sizeof(struct auth_conf),
    .idle = auth_idle,
    .handler = auth_handler,
    .access = true,
    .explain_mode = EXPLAIN_SKIP,
};
