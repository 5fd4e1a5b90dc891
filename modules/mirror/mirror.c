/*
 * `mirror`: sends copies of a request to other URIs of this server, and discards their responses. The client's response
 * does not wait for the copies. The request body is read completely first, so that each copy has all of it.
 */
#include "modules/gateway/request_body.h"

#include <errno.h>
#include <stddef.h>

struct mirror_conf {
    struct conf_rows uris; /* struct mirror_uri */
    bool bodies;           /* copies have the request body */
};

struct mirror_uri {
    const struct template *text; /* NULL: off */
};

struct mirror_state {
    bool done;
};

extern const struct module module_mirror;

static int read_uri(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct mirror_uri *uri = out;
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0 || str_equal(text, STR("off")) || str_equal(text, STR("false")))
        return error;
    if (str_starts(text, STR("/")) || str_starts(text, STR("$")))
        return conf_read_template_word(reader, node, text, &uri->text);
    conf_error(reader->errors, node->mark, STR("write: mirror: /mirror, or off"),
               "\"" STR_FMT "\" is not a path of this server", STR_ARG(text));
    return -EINVAL;
}

static const struct directive directives[] = {
    {.name = "mirror",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .offset = offsetof(struct mirror_conf, uris),
     .row_size = sizeof(struct mirror_uri),
     .row = read_uri,
     .syntax = "URI | off",
     .example = "mirror: [/mirror, /other-mirror]",
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .help = "Send a copy of each request to each of these URIs, with its method, header fields and body. The "
             "responses are discarded, and the client does not wait for them. off: no copies."},
    {.name = "mirror_request_body",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = offsetof(struct mirror_conf, bodies),
     .default_value = "on",
     .example = "mirror_request_body: off",
     .help = "Whether the copies have the body. It is then read completely before the request is processed, into "
             "memory up to client_body_buffer_size, then into a file, regardless of proxy_request_buffering."},
    {0},
};

/* Creates a subrequest with the same method and header fields, and the body if `with_body`. */
static int start_mirror(struct exchange *x, const struct template *text, bool with_body)
{
    struct str uri = exchange_eval(x, text);
    struct str query = uri;
    struct str path = str_cut(&query, '?');
    struct exchange *child;
    int error = -ENOMEM;

    if (uri.data && exchange_path_traverses(x, text, uri, path, false))
        return -EINVAL;
    if (uri.data)
        error = exchange_subrequest(x, uri, NULL, NULL, &child);
    if (error < 0)
        return error;
    child->request.method = x->request.method;
    child->request.method_name = x->request.method_name;
    if (!child->request.query.data)
        child->request.query = x->request.query;
    if (with_body)
        error = gateway_share_body(x, child);
    if (error < 0)
        exchange_subrequest_end(child);
    return error;
}

static void start_all(struct exchange *x, const struct mirror_conf *conf, bool with_body)
{
    const struct mirror_uri *uris = conf->uris.items;

    for (size_t i = 0; i < conf->uris.count; i++) {
        int error = uris[i].text ? start_mirror(x, uris[i].text, with_body) : 0;

        if (error < 0)
            exchange_log_error(x, LOG_ERROR, "mirror: the subrequest failed (%d: %s)", -error, strerror(-error));
    }
}

/*
 * Called when the body has been read, or reading failed with `error`. A body that could not be stored completely is
 * not available to the copies.
 */
static enum outcome start_mirrors(struct exchange *x, const struct mirror_conf *conf, int error)
{
    if (error < 0) {
        exchange_drop_body(x);
        return exchange_error_response_log(x, exchange_body_status(error), LOG_INFO,
                                           "mirror: reading the client's request body failed (%d: %s)", -error,
                                           strerror(-error));
    }
    if (buffered_body_of(&x->request)->whole)
        start_all(x, conf, true);
    else
        exchange_log_error(x, LOG_ERROR, "mirror: no copies were sent: the body could not be buffered");
    return OUTCOME_DECLINED;
}

static void body_read(void *owner, int error)
{
    struct exchange *x = owner;

    exchange_resume(x, start_mirrors(x, exchange_conf(x, &module_mirror), error));
}

static bool has_mirrors(const struct mirror_conf *conf)
{
    const struct mirror_uri *uris = conf->uris.items;
    bool asks = false;

    for (size_t i = 0; i < conf->uris.count; i++)
        asks |= uris[i].text != NULL;
    return asks;
}

static enum outcome mirror_handler(struct exchange *x, const void *conf, void *state)
{
    const struct mirror_conf *own = conf;
    struct mirror_state *mirrored = exchange_state(x, &module_mirror, sizeof(*mirrored));
    int error;

    if (!mirrored || mirrored->done || exchange_is_subrequest(x) || !has_mirrors(own))
        return OUTCOME_DECLINED;
    mirrored->done = true; /* once per request, regardless of internal redirects */
    if (!own->bodies || x->request.content_length == 0) {
        start_all(x, own, false);
        return OUTCOME_DECLINED;
    }
    if (gateway_body_is_lost(x)) {
        exchange_log_error(x, LOG_ERROR, "mirror: no copies were sent: a part of the body was not buffered");
        return OUTCOME_DECLINED;
    }
    error = buffered_body_of(&x->request) ? 0 : gateway_buffer_body(x, body_read, x);
    return error == -EAGAIN ? OUTCOME_PENDING : start_mirrors(x, own, error);
}

static void mirror_cancel(struct exchange *x, void *state)
{
    buffered_body_cancel(buffered_body_of(&x->request));
}

static bool mirror_idle(const void *conf)
{
    const struct mirror_conf *own = conf;

    return own->uris.count == 0;
}

const struct module module_mirror = {
    .name = "mirror",
    .directives = directives,
    .conf_size = sizeof(struct mirror_conf),
    .idle = mirror_idle,
    .handler = mirror_handler,
    .cancel = mirror_cancel,
    .explain_mode = EXPLAIN_SKIP,
};
