/*
 * `return`: a response from the configuration: a status, a text or a redirect. The smallest module with a handler.
 */
#include "http/exchange.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct return_value {
    int status;                  /* 0: the module is inactive */
    const struct template *text; /* the body, or the redirect's target; NULL: only the status */
    bool set_in_location;        /* set in a location: not inherited by nested locations */
};

struct return_conf {
    struct return_value value;
};

#define HINT                                                                                                 \
    STR("write: return: 404, return: '200 \"some text\"', or return: 301 https://example.com$request_uri")

static int read_status(struct conf_reader *reader, const struct conf_node *node, struct str word,
                       int *out_status)
{
    uint64_t status;

    if (str_to_u64(word, &status) < 0 || status < 200 || status > 999) {
        conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is not a status", STR_ARG(word));
        return -EINVAL;
    }
    *out_status = (int)status;
    return 0;
}

static bool is_url(struct str word)
{
    return str_starts(word, STR("http://")) || str_starts(word, STR("https://")) ||
           str_starts(word, STR("$scheme"));
}

/* "404", "200 text", "301 URL", or a URL alone (302). */
static int read_return(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct return_value value = {.set_in_location = reader->scope == SCOPE_LOCATION};
    struct return_value *into = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 1 || words.count > 2) {
        conf_error(reader->errors, node->mark, HINT,
                   "return takes a status and one text or URL, not %zu words", words.count);
        return -EINVAL;
    }
    if (words.count == 1 && is_url(words.items[0]))
        value.status = 302;
    else
        error = read_status(reader, node, words.items[0], &value.status);
    if (error == 0 && (words.count == 2 || is_url(words.items[0])))
        error = conf_read_template_word(reader, node, words.items[words.count - 1], &value.text);
    if (error < 0)
        return error;
    if (status_redirects(value.status) && !value.text) {
        conf_error(reader->errors, node->mark, HINT, "return: %d requires a URL", value.status);
        return -EINVAL;
    }
    if (status_redirects(value.status) && str_find(template_text(value.text), '\n') >= 0) {
        conf_error(reader->errors, node->mark, HINT, "the URL of a redirect has a line break");
        return -EINVAL;
    }
    *into = value;
    return 0;
}

/* As in nginx, nested locations do not inherit a location's return; a server's applies to all locations. */
static int check_return(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct return_conf *own = conf;

    if (own->value.set_in_location && !reader->is_overlay && !conf_map_get(at, STR("return")))
        own->value = (struct return_value){0};
    return 0;
}

static const struct directive directives[] = {
    {.name = "return",
     .scopes = SCOPE_SERVER | SCOPE_LOCATION,
     .type = DIRECTIVE_CUSTOM,
     .offset = offsetof(struct return_conf, value),
     .row_size = sizeof(struct return_value),
     .row = read_return,
     .syntax = "status [text | URL] | URL",
     .example = "return: 308 https://$host$request_uri",
     .help = "Answer with a status and optionally a text, or redirect; 444 closes the connection without a "
             "response. In a server it applies before a location is selected.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}]}"},
    {0},
};

/* A server's return applies before the location is selected. */
static bool return_will_respond(const struct exchange *x, const void *conf)
{
    const struct return_value *value = &((const struct return_conf *)conf)->value;

    return value->status && (value->set_in_location || exchange_in_server_rules(x)) && !exchange_return_skipped(x);
}

static enum outcome return_handler(struct exchange *x, const void *conf, void *state)
{
    const struct return_value *value = &((const struct return_conf *)conf)->value;
    struct str text = {NULL, 0};

    if (!return_will_respond(x, conf))
        return OUTCOME_DECLINED;
    if (value->status == 444)
        return exchange_close_without_response(x);
    if (value->text) {
        text = exchange_eval(x, value->text);
        if (!text.data)
            return exchange_error_response(x, 500);
    }
    if (value->status >= 300 && !value->text)
        exchange_keep_status(x);
    if (status_redirects(value->status))
        return exchange_redirect(x, value->status, text);
    exchange_error_response(x, value->status);
    /* An error without a text gets its error page; 204 and 304 have no body. */
    if (status_bodiless(value->status) || (!value->text && value->status >= 300))
        return OUTCOME_RESPONDED;
    x->response.body = body_bytes(&x->arena, text.data ? text : STR(""));
    if (!x->response.body ||
        headers_add(&x->response.headers, &x->arena, STR("Content-Type"), exchange_text_type(x)) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

static bool return_idle(const void *conf)
{
    const struct return_conf *own = conf;

    return !own->value.status;
}

const struct module module_return = {
    .name = "return",
    .directives = directives,
    .conf_size = sizeof(struct return_conf),
    .conf_check = check_return,
    .idle = return_idle,
    .server_rule = SERVER_RULE_RESPONDS,
    .responds = return_will_respond,
    .handler = return_handler,
};
