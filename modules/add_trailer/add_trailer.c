/*
 * `add_trailer`: trailer fields, evaluated when the last byte of the body has been read. The body is then sent
 * chunked, since only the chunked coding has a trailer section (RFC 9112 7.1.2).
 */
#include "http/exchange.h"
#include "http/h1_parse.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct trailer {
    struct str name;
    const struct template *value;
};

struct trailer_conf {
    struct conf_rows rows; /* struct trailer */
};

/* Wraps the response body and appends the trailer at its end. */
struct trailer_body {
    struct body body;
    struct body *inner;
    struct exchange *x;
    const struct trailer_conf *conf;
};

#define HINT STR("write: add_trailer: [X-Sent $body_bytes_sent]")

/* Fields that concern framing, routing, content processing or authentication (RFC 9110 6.5.1). */
static bool is_forbidden_trailer(struct str name)
{
    static const char *const names[] = {"Content-Length",
                                        "Transfer-Encoding",
                                        "Connection",
                                        "Trailer",
                                        "Upgrade",
                                        "Host",
                                        "Date",
                                        "Content-Type",
                                        "Content-Range",
                                        "Content-Encoding",
                                        "Set-Cookie",
                                        "Location",
                                        "Cache-Control",
                                        "Authorization",
                                        "WWW-Authenticate",
                                        "Vary"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_equal_nocase(name, str_from(names[i])))
            return true;
    }
    return false;
}

static int read_trailer(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct trailer *trailer = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count != 2) {
        conf_error(reader->errors, node->mark, HINT, "add_trailer takes a name and a value");
        return -EINVAL;
    }
    trailer->name = words.items[0];
    if (!h1_is_token(trailer->name)) {
        conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is not a field name",
                   STR_ARG(trailer->name));
        return -EINVAL;
    }
    if (is_forbidden_trailer(trailer->name)) {
        conf_error(reader->errors, node->mark, STR("write it with add_header"),
                   STR_FMT " cannot be a trailer field", STR_ARG(trailer->name));
        return -EINVAL;
    }
    return conf_read_template_word(reader, node, words.items[1], &trailer->value);
}

static const struct directive directives[] = {
    {.name = "add_trailer",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = offsetof(struct trailer_conf, rows),
     .row_size = sizeof(struct trailer),
     .row = read_trailer,
     .syntax = "name value | {name: value, ...}",
     .example = "add_trailer: [X-Sent $body_bytes_sent]",
     .help = "Trailer fields of responses without an error status, computed after the body; the body is then "
             "chunked. Not in HTTP/1.0.",
     .schema = "{\"type\": \"string\"}"},
    {0},
};

static int add_all(struct trailer_body *trailing)
{
    const struct trailer *trailers = trailing->conf->rows.items;
    struct exchange *x = trailing->x;

    for (size_t i = 0; i < trailing->conf->rows.count; i++) {
        struct str value = exchange_eval(x, trailers[i].value);

        if (!value.data)
            return -ENOMEM;
        if (value.length && headers_add(&x->response.trailers, &x->arena, trailers[i].name, value) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int wrapped_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct trailer_body *trailing = container_of(body, struct trailer_body, body);
    int result = trailing->inner->ops->next(trailing->inner, accept, room, out);

    return result == 0 ? add_all(trailing) : result;
}

static void wrapped_close(struct body *body)
{
    body_close(&container_of(body, struct trailer_body, body)->inner);
}

static void trailer_inner_woken(void *owner)
{
    struct trailer_body *trailing = owner;

    trailing->body.wake(trailing->body.owner);
}

static const struct body_ops trailer_body_ops = {.next = wrapped_next, .close = wrapped_close};

static int add_trailer_filter(struct exchange *x, const void *conf)
{
    const struct trailer_conf *own = conf;
    struct trailer_body *trailing;

    if (!x->response.body || x->response.status < 200 || x->response.status >= 300 ||
        x->request.version < HTTP_1_1 || x->request.method == METHOD_HEAD)
        return 0;
    trailing = arena_zalloc(&x->arena, 1, sizeof(*trailing));
    if (!trailing)
        return -ENOMEM;
    *trailing = (struct trailer_body){.body = {.ops = &trailer_body_ops, .length = BODY_LENGTH_UNKNOWN},
                                      .inner = x->response.body,
                                      .x = x,
                                      .conf = own};
    trailing->inner->wake = trailer_inner_woken;
    trailing->inner->owner = trailing;
    x->response.body = &trailing->body;
    return 0;
}

static bool add_trailer_idle(const void *conf)
{
    const struct trailer_conf *own = conf;

    return own->rows.count == 0;
}

const struct module module_add_trailer = {
    .name = "add_trailer",
    .directives = directives,
    .conf_size = sizeof(struct trailer_conf),
    .idle = add_trailer_idle,
    .filter = add_trailer_filter,
};
