/*
 * `health_check`: "uri=/healthz interval=5s", a map of the same words, or on.
 */
#include "upstream/upstream_conf.h"

#include "upstream/upstream_check_http2.h"
#include "wire/proxy_header.h"

#include <errno.h>
#include <stddef.h>

#define HINT STR("write: health_check: {uri: /healthz, interval: 5s, fails: 1, passes: 1, match: [200-299, 304]}")

struct check_words {
    struct str uri, host;
    struct conf_words match;
    uint64_t interval_ms, timeout_ms, fails, passes;
    bool https, http2;
    int proxy_protocol;
};

static const char *const proxy_protocol_words[] = {"off", "on", "v2", NULL}; /* indexed by version */

#define IN(field) offsetof(struct check_words, field)

static const struct directive keys[] = {
    {.name = "uri",
     .type = DIRECTIVE_TEXT,
     .offset = IN(uri),
     .help = "The request target; without it, a connection is sufficient."},
    {.name = "interval",
     .type = DIRECTIVE_DURATION,
     .offset = IN(interval_ms),
     .default_value = "5s",
     .low = 10,
     .high = 3600000,
     .help = "The interval between checks."},
    {.name = "timeout",
     .type = DIRECTIVE_DURATION,
     .offset = IN(timeout_ms),
     .default_value = "5s",
     .low = 1,
     .high = 3600000,
     .help = "The timeout of the whole check, from the start of the connection to the status of the response."},
    {.name = "fails",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(fails),
     .default_value = "1",
     .low = 1,
     .help = "The number of failed checks in a row after which the server is not used."},
    {.name = "passes",
     .type = DIRECTIVE_NUMBER,
     .offset = IN(passes),
     .default_value = "1",
     .low = 1,
     .help = "The number of successful checks in a row after which it is used again."},
    {.name = "match",
     .type = DIRECTIVE_WORDS,
     .offset = IN(match),
     .default_value = "200-399",
     .help = "Statuses of a successful check, and ranges of them."},
    {.name = "host", .type = DIRECTIVE_TEXT, .offset = IN(host), .help = "Host of the request; default: the name "
                                                                         "of the group."},
    {.name = "https",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(https),
     .default_value = "off",
     .help = "Use TLS. The certificate is not verified."},
    {.name = "http2",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(http2),
     .default_value = "off",
     .help = "Send the request over HTTP/2: with https by ALPN, without it by prior knowledge."},
    {.name = "proxy_protocol",
     .type = DIRECTIVE_CHOICE,
     .offset = IN(proxy_protocol),
     .choices = proxy_protocol_words,
     .default_value = "off",
     .help = "Send a PROXY protocol header without a client address before the request: on (version 1), or v2."},
    {0},
};

/* True if the text has no blank and no control byte, so that it can be part of the request. */
static bool is_request_text(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.data[i] <= ' ' || (unsigned char)text.data[i] >= 0x7f)
            return false;
    }
    return true;
}

static bool read_range(struct str word, struct upstream_statuses *out)
{
    struct str high = word;
    struct str low = str_cut(&high, '-');
    uint64_t first, last;

    if (str_to_u64(low, &first) < 0 || (high.data && str_to_u64(high, &last) < 0))
        return false;
    if (!high.data)
        last = first;
    *out = (struct upstream_statuses){(unsigned)first, (unsigned)last};
    return first >= 100 && last <= 599 && first <= last;
}

static int read_match(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *words,
                      struct upstream_check *check)
{
    check->match = arena_zalloc(reader->arena, words->count + 1, sizeof(*check->match));
    if (!check->match)
        return -ENOMEM;
    for (size_t i = 0; i < words->count; i++) {
        if (!read_range(words->items[i], &check->match[check->match_count++])) {
            conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is not a status or a range of statuses",
                       STR_ARG(words->items[i]));
            return -EINVAL;
        }
    }
    return 0;
}

static int read_keys(struct conf_reader *reader, const struct conf_node *node, struct check_words *out)
{
    struct conf_words words;
    struct conf_node map;
    int error;

    if (node->kind == CONF_MAP)
        return conf_read_block(reader, node, keys, out);
    error = conf_read_words(reader, node, &words);
    if (error == 0 && words.count == 1 && str_equal(words.items[0], STR("on")))
        words.count = 0;
    if (error == 0)
        error = upstream_words_to_map(reader, node, &words, NULL, &map);
    return error < 0 ? error : conf_read_block(reader, &map, keys, out);
}

int upstream_read_check(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct upstream_check *check = arena_zalloc(reader->arena, 1, sizeof(*check));
    struct upstream_check **into = out;
    struct check_words words = {0};
    int error = check ? read_keys(reader, node, &words) : -ENOMEM;

    if (error < 0)
        return error;
    if ((words.uri.length > 0 && words.uri.data[0] != '/') || !is_request_text(words.uri) ||
        !is_request_text(words.host)) {
        conf_error(reader->errors, node->mark, HINT, "uri must begin with a slash, and uri and host must not contain "
                                                     "blanks");
        return -EINVAL;
    }
    if (words.http2 && str_empty(words.uri)) {
        conf_error(reader->errors, node->mark, STR("add a uri, e.g. health_check: {uri: /healthz, http2: on}"),
                   "http2 of health_check requires a uri");
        return -EINVAL;
    }
    check->by_http2 = words.http2;
    check->uri = words.uri;
    check->host = words.host;
    check->interval_ms = words.interval_ms;
    check->timeout_ms = words.timeout_ms;
    check->fails = words.fails;
    check->passes = words.passes;
    check->https = words.https;
    check->proxy_protocol = words.proxy_protocol;
    *into = check;
    return read_match(reader, node, &words.match, check);
}

/* Makes the PROXY protocol header of a connection without a client: UNKNOWN in version 1, LOCAL in version 2. */
static int make_check_header(struct upstreams *upstreams, struct upstream_check *check)
{
    const union proxy_address unknown = {.any.sa_family = AF_UNSPEC};
    char text[PROXY_HEADER_WRITTEN];

    if (check->proxy_protocol == 0)
        return 0;
    check->proxy_header = arena_copy(
        upstreams->arena,
        str_of(text, proxy_header_write(&unknown.any, &unknown.any, (unsigned)check->proxy_protocol, text)));
    return check->proxy_header.data ? 0 : -ENOMEM;
}

int upstream_check_complete(struct upstreams *upstreams, struct upstream_check *check, struct str name)
{
    if (make_check_header(upstreams, check) < 0)
        return -ENOMEM;
    if (str_empty(check->host))
        check->host = name;
    if (str_empty(check->uri))
        return 0;
    if (check->by_http2) {
        check->http2 = check_request_create(upstreams->arena, check->https, check->host, check->uri);
        return check->http2 ? 0 : -ENOMEM;
    }
    check->request = arena_printf(upstreams->arena,
                                  "GET " STR_FMT " HTTP/1.1\r\nHost: " STR_FMT
                                  "\r\nUser-Agent: sluice-health-check\r\nConnection: close\r\n\r\n",
                                  STR_ARG(check->uri), STR_ARG(check->host));
    return check->request.data ? 0 : -ENOMEM;
}
