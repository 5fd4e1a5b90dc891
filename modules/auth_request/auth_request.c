/*
 * `auth_request`: who may is asked of another URI of this server, which is usually passed on to one that knows. What it
 * is asked has no body, and of what it says only the head counts.
 */
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct auth_conf {
    const struct template *uri; /* NULL: nobody is asked */
};

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
               "\"" STR_FMT "\" is no path of this server", STR_ARG(text));
    return -EINVAL;
}

static const struct directive directives[] = {
    {.name = "auth_request",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(uri),
     .row_size = sizeof(const struct template *),
     .row = read_uri,
     .example = "auth_request: /auth",
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .help = "Who may is asked of this URI, with the fields of the request and without its body: 2xx lets "
             "in, 401 and "
             "403 are answered as they are, anything else is 500. off: nobody is asked."},
    {0},
};

/* They ask about another resource than the one that is asked for now. */
static void remove_conditions(struct headers *fields)
{
    static const char *const names[] = {
        "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        headers_remove(fields, str_from(names[i]));
}

static int copy_demands(const struct exchange *child, struct exchange *x)
{
    const struct headers *told = &child->response.headers;
    struct str name = STR("WWW-Authenticate");
    int error = 0;

    for (const struct header *field = headers_find(told, name); field && error == 0;
         field = headers_next(told, name, field)) {
        struct str value = arena_copy(&x->arena, field->value);

        error = value.data ? headers_add(&x->response.headers, &x->arena, name, value) : -ENOMEM;
    }
    return error;
}

static enum outcome judge(struct exchange *x, const struct exchange *child)
{
    int status = child->response.status;

    if (status >= 200 && status < 300)
        return OUTCOME_ALLOW;
    if (status != 401 && status != 403)
        return exchange_refuse_because(x, 500, LOG_ERROR, "auth_request: unexpected status %d", status);
    exchange_refuse(x, status);
    return copy_demands(child, x) < 0 ? exchange_refuse(x, 500) : OUTCOME_ANSWERED;
}

static void answered(struct exchange *child, void *asker)
{
    struct exchange *x = asker;

    exchange_resume(x, judge(x, child));
    exchange_child_end(child);
}

static enum outcome auth_answer(struct exchange *x, const void *conf, void *state)
{
    const struct auth_conf *own = conf;
    struct exchange *child;
    struct str uri;
    int error;

    if (!own->uri)
        return OUTCOME_PASS;
    uri = exchange_eval(x, own->uri);
    error = uri.data ? exchange_child(x, uri, answered, x, &child) : -ENOMEM;
    if (error < 0)
        return exchange_refuse_because(x, 500, LOG_ERROR, "auth_request: cannot ask \"" STR_FMT "\" (%d: %s)",
                                       STR_ARG(uri), -error, strerror(-error));
    remove_conditions(&child->request.headers);
    return OUTCOME_PENDING;
}

const struct module module_auth_request = {
    .name = "auth_request",
    .directives = directives,
    .conf_size = sizeof(struct auth_conf),
    .answer = auth_answer,
    .access = true,
};
