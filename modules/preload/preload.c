/*
 * `preload`: sends Link fields (RFC 8288) for resources that a page needs: in 103 Early Hints before the response (RFC
 * 8297), and in the response. 103 is sent only to browsers that navigate to a page (GET with Sec-Fetch-Mode: navigate),
 * since these accept interim responses; in HTTP/1.1 only over TLS, since old proxies may treat a 103 as the final
 * response.
 */
#include "http/exchange.h"
#include "http/h1_parse.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct hint {
    const struct template *url;
    struct str parameters; /* the text after "<url>" in Link */
};

struct preload_conf {
    struct conf_rows rows; /* struct hint */
};

#define HINT                                                                                                 \
    STR("write: preload: [/style.css as=style, /font.woff2 as=font crossorigin, 'https://cdn.example "       \
        "preconnect']")

static int read_hint(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct hint *hint = out;
    struct str as = STR("");
    bool crossorigin = false, preconnect = false;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    for (size_t i = 1; i < words.count; i++) {
        struct str word = words.items[i];

        if (str_starts(word, STR("as=")) && h1_is_token(str_skip(word, 3)))
            as = str_skip(word, 3);
        else if (str_equal(word, STR("crossorigin")))
            crossorigin = true;
        else if (str_equal(word, STR("preconnect")))
            preconnect = true;
        else
            as = (struct str){NULL, 0};
    }
    if (words.count == 0 || !as.data || str_empty(as) != preconnect) {
        conf_error(reader->errors, node->mark, HINT,
                   "preload takes a URL and as=..., or a URL and preconnect");
        return -EINVAL;
    }
    hint->parameters =
        arena_printf(reader->arena, "; rel=%s%s" STR_FMT "%s", preconnect ? "preconnect" : "preload",
                     preconnect ? "" : "; as=", STR_ARG(as), crossorigin ? "; crossorigin" : "");
    return hint->parameters.data ? conf_read_template_word(reader, node, words.items[0], &hint->url)
                                 : -ENOMEM;
}

static const struct directive directives[] = {
    {.name = "preload",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .offset = offsetof(struct preload_conf, rows),
     .row_size = sizeof(struct hint),
     .row = read_hint,
     .syntax = "URI [as=kind] [crossorigin]",
     .example = "preload: [/style.css as=style, /font.woff2 as=font crossorigin]",
     .help = "Resources that the pages of this scope need: sent as Link with each page (text/html), and before it "
             "as 103 Early Hints to browsers that navigate to a page (GET, Sec-Fetch-Mode: navigate), in HTTP/1.1 "
             "over TLS only.",
     .schema = "{\"type\": \"string\"}"},
    {0},
};

/* A URL with "<" or ">", which delimit the URL in Link, is omitted. */
static int add_links(struct exchange *x, const struct preload_conf *own, struct headers *headers)
{
    const struct hint *hints = own->rows.items;

    for (size_t i = 0; i < own->rows.count; i++) {
        struct str url = exchange_eval(x, hints[i].url);
        struct str link;

        if (url.data && (str_empty(url) || str_find(url, '>') >= 0 || str_find(url, '<') >= 0))
            continue;
        link = arena_join(&x->arena,
                          (const struct str[]){STR("<"), url, STR(">"), str_or_empty(hints[i].parameters)}, 4);
        if (!link.data || headers_add(headers, &x->arena, STR("Link"), link) < 0)
            return -ENOMEM;
    }
    return 0;
}

static bool takes_hints(const struct exchange *x)
{
    return x->request.method == METHOD_GET && (x->request.version > HTTP_1_1 || exchange_is_secure(x)) &&
           x->request.version >= HTTP_1_1 && !exchange_uri_changed(x) &&
           str_equal(headers_value(&x->request.headers, STR("Sec-Fetch-Mode")), STR("navigate"));
}

static enum outcome preload_handler(struct exchange *x, const void *conf, void *state)
{
    const struct preload_conf *own = conf;
    struct headers headers = {0};

    if (!takes_hints(x))
        return OUTCOME_DECLINED;
    if (add_links(x, own, &headers) < 0 || (headers.count && exchange_inform(x, 103, &headers) == -ENOMEM))
        return exchange_error_response(x, 500);
    return OUTCOME_DECLINED;
}

static int preload_filter(struct exchange *x, const void *conf)
{
    const struct preload_conf *own = conf;

    if (x->response.status != 200 ||
        !str_starts(headers_value(&x->response.headers, STR("Content-Type")), STR("text/html")))
        return 0;
    return add_links(x, own, &x->response.headers);
}

static bool preload_idle(const void *conf)
{
    const struct preload_conf *own = conf;

    return own->rows.count == 0;
}

const struct module module_preload = {
    .name = "preload",
    .directives = directives,
    .conf_size = sizeof(struct preload_conf),
    .idle = preload_idle,
    .handler = preload_handler,
    .filter = preload_filter,
};
