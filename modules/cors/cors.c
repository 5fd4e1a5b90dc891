/*
 * `cors`: origins whose scripts may read responses (Fetch standard, 3.3). The module answers preflights itself, and
 * adds its fields to all other responses, errors included.
 */
#include "http/exchange.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct cors_conf {
    struct cors {
        struct conf_words origins; /* none: the module is inactive */
        struct conf_words methods;
        struct conf_words headers; /* none: the headers requested by the preflight */
        struct conf_words expose;
        bool credentials;
        uint64_t max_age_ms;
        struct str methods_text, headers_text, expose_text; /* words joined for the field values */
    } cors;
};

#define AT(field) offsetof(struct cors, field)

static const struct directive children[] = {
    {.name = "origins",
     .type = DIRECTIVE_WORDS,
     .offset = AT(origins),
     .help = "https://a.example, https://*.a.example, null, or *"},
    {.name = "methods",
     .type = DIRECTIVE_WORDS,
     .offset = AT(methods),
     .default_value = "GET HEAD POST",
     .help = "Permitted methods."},
    {.name = "headers",
     .type = DIRECTIVE_WORDS,
     .offset = AT(headers),
     .help = "Permitted request header fields; without it, those that a preflight requests."},
    {.name = "expose",
     .type = DIRECTIVE_WORDS,
     .offset = AT(expose),
     .help = "Response header fields that scripts may read."},
    {.name = "credentials",
     .type = DIRECTIVE_SWITCH,
     .offset = AT(credentials),
     .default_value = "off",
     .help = "Whether requests may include cookies."},
    {.name = "max_age",
     .type = DIRECTIVE_DURATION,
     .offset = AT(max_age_ms),
     .default_value = "1h",
     .help = "How long a browser may cache the response to a preflight."},
    {0},
};

static const struct directive directives[] = {
    {.name = "cors",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_BLOCK,
     .offset = offsetof(struct cors_conf, cors),
     .children = children,
     .example =
         "cors: {origins: [https://app.example, 'https://*.app.example'], methods: GET PUT, credentials: on}",
     .help = "Origins whose scripts may read the responses (CORS). Preflights (OPTIONS) are answered, and the "
             "fields are added to every response. origins: https://a.example, https://*.a.example, or *."},
    {0},
};

static bool is_any(const struct cors *cors)
{
    return cors->origins.count == 1 && str_equal(cors->origins.items[0], STR("*"));
}

static int join_words(struct arena *arena, const struct conf_words *words, struct str *out)
{
    *out = STR("");
    for (size_t i = 0; i < words->count; i++) {
        *out =
            arena_printf(arena, STR_FMT "%s" STR_FMT, STR_ARG(*out), i ? ", " : "", STR_ARG(words->items[i]));
        if (!out->data)
            return -ENOMEM;
    }
    return 0;
}

/* scheme://host[:port], as sent by browsers, without a path. */
static bool is_origin(struct str text)
{
    ssize_t at = str_search(text, STR("://"));
    struct str host = at > 0 ? str_skip(text, (size_t)at + 3) : STR("");

    if (str_equal(text, STR("*")) || str_equal(text, STR("null")))
        return true;
    if (str_starts(host, STR("*.")))
        host = str_skip(host, 2);
    return host.length > 0 && str_find(host, '/') < 0 && str_find(host, '*') < 0;
}

static int check_cors(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct cors *cors = &((struct cors_conf *)conf)->cors;
    const struct conf_node *node = conf_map_get(at, STR("cors"));

    if (!node)
        return 0;
    for (size_t i = 0; i < cors->origins.count; i++) {
        if (is_origin(cors->origins.items[i]))
            continue;
        conf_error(reader->errors, node->mark, STR("https://app.example, https://*.app.example, null or *"),
                   "\"" STR_FMT "\" is not an origin", STR_ARG(cors->origins.items[i]));
        return -EINVAL;
    }
    if (cors->origins.count == 0)
        conf_error(reader->errors, node->mark, STR("cors: {origins: https://app.example}"),
                   "cors has no origins");
    for (size_t i = 0; i < cors->origins.count; i++) {
        if (cors->credentials && str_equal(cors->origins.items[i], STR("*")))
            conf_error(reader->errors, node->mark, STR("name the origins, or leave credentials off"),
                       "credentials cannot be combined with origins: '*'");
    }
    if (join_words(reader->arena, &cors->methods, &cors->methods_text) < 0 ||
        join_words(reader->arena, &cors->headers, &cors->headers_text) < 0)
        return -ENOMEM;
    return join_words(reader->arena, &cors->expose, &cors->expose_text);
}

/* A star matches any subdomain, with the same scheme and port. */
static bool origin_matches(struct str pattern, struct str origin)
{
    ssize_t star = str_find(pattern, '*');
    struct str front, end;

    if (star < 0 || pattern.length == 1)
        return pattern.length == 1 ? star == 0 : str_equal_nocase(pattern, origin);
    front = str_slice(pattern, 0, (size_t)star);
    end = str_skip(pattern, (size_t)star + 1);
    return origin.length > pattern.length - 1 && str_equal_nocase(str_slice(origin, 0, front.length), front) &&
           str_equal_nocase(str_skip(origin, origin.length - end.length), end) &&
           str_find(str_skip(origin, front.length), '/') < 0;
}

static bool origin_allowed(const struct cors *cors, struct str origin)
{
    for (size_t i = 0; i < cors->origins.count; i++) {
        if (origin_matches(cors->origins.items[i], origin))
            return true;
    }
    return false;
}

static int add_cors_header(struct exchange *x, const char *name, struct str value)
{
    if (!value.data)
        return -ENOMEM;
    return value.length ? headers_add(&x->response.headers, &x->arena, str_from(name), value) : 0;
}

static bool is_preflight(const struct exchange *x)
{
    return x->request.method == METHOD_OPTIONS &&
           headers_find(&x->request.headers, STR("Access-Control-Request-Method"));
}

/* Adds the fields of a preflight response, except those of the origin, which cors_filter adds. */
static int add_preflight_headers(struct exchange *x, const struct cors *cors)
{
    struct str headers = cors->headers.count
                             ? cors->headers_text
                             : headers_value(&x->request.headers, STR("Access-Control-Request-Headers"));
    int error = add_cors_header(x, "Access-Control-Allow-Methods", cors->methods_text);

    if (error == 0)
        error = add_cors_header(x, "Access-Control-Allow-Headers", headers.data ? headers : STR(""));
    if (error == 0)
        error = add_cors_header(x, "Access-Control-Max-Age",
                                arena_print_number(&x->arena, cors->max_age_ms / 1000));
    return error < 0 ? error
                     : add_cors_header(x, "Vary", STR("Access-Control-Request-Method, Access-Control-Request-Headers"));
}

/* Answers preflights, which have no credentials, before access modules. A 204 without the fields denies the origin. */
static enum outcome cors_handler(struct exchange *x, const void *conf, void *state)
{
    const struct cors *cors = &((const struct cors_conf *)conf)->cors;
    struct str origin = headers_value(&x->request.headers, STR("Origin"));

    if (!origin.data || !is_preflight(x))
        return OUTCOME_DECLINED;
    exchange_error_response(x, 204);
    if (origin_allowed(cors, origin) && add_preflight_headers(x, cors) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

static int cors_filter(struct exchange *x, const void *conf)
{
    const struct cors *cors = &((const struct cors_conf *)conf)->cors;
    struct str origin;
    bool allowed;
    int error = 0;

    origin = headers_value(&x->request.headers, STR("Origin"));
    allowed = origin.data && origin_allowed(cors, origin);
    /* The response depends on the origin: caches need Vary. */
    if (!is_any(cors))
        error = add_cors_header(x, "Vary", STR("Origin"));
    if (error == 0 && (allowed || is_any(cors)))
        error = headers_set(&x->response.headers, &x->arena, STR("Access-Control-Allow-Origin"),
                            is_any(cors) ? STR("*") : origin);
    if (error == 0 && allowed && cors->credentials)
        error = add_cors_header(x, "Access-Control-Allow-Credentials", STR("true"));
    if (error == 0 && allowed && !is_preflight(x))
        error = add_cors_header(x, "Access-Control-Expose-Headers", cors->expose_text);
    return error;
}

static bool cors_idle(const void *conf)
{
    const struct cors_conf *own = conf;

    return own->cors.origins.count == 0;
}

const struct module module_cors = {
    .name = "cors",
    .directives = directives,
    .conf_size = sizeof(struct cors_conf),
    .conf_check = check_cors,
    .idle = cors_idle,
    .handler = cors_handler,
    .filter = cors_filter,
};
