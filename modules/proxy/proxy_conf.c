/*
 * Reads and checks the directives of proxy; their table is in proxy_directives.c.
 */
#include "proxy.h"

#include "base/limits.h"
#include "modules/gateway/cache/response_cache.h"
#include "modules/gateway/slice/slice.h"
#include "site/field_name.h"

#include <errno.h>

#define PASS_HINT  STR("write: proxy_pass: http://127.0.0.1:9001, http://backend/path/, or unix:/run/app.sock")
#define FIELD_HINT STR("write: proxy_set_header: [X-Request-Id $request_id, {Host: $host}]")

static int reject_pass(struct conf_reader *reader, const struct conf_node *node, struct str hint, struct str text)
{
    conf_error(reader->errors, node->mark, hint, "\"" STR_FMT "\" is not an address of a server",
               STR_ARG(text));
    return -EINVAL;
}

int proxy_read_pass_as(struct conf_reader *reader, const struct conf_node *node,
                       int (*parse)(struct str text, struct gateway_target *out_target), struct str hint, void *out)
{
    struct gateway_pass pass = {.set_in_location = reader->scope == SCOPE_LOCATION};
    struct gateway_pass *into = out;
    int error = conf_read_template(reader, node, &pass.text);
    struct str text;

    if (error < 0)
        return error;
    text = template_text(pass.text);
    if (template_constant(pass.text)) {
        if (parse(text, &pass.target) < 0)
            return reject_pass(reader, node, hint, text);
        pass.upstream = upstreams_target(reader->upstreams, pass.target.authority,
                                         proxy_target_port(&pass.target), &error);
        if (!pass.upstream)
            return error == -ENOMEM ? error : reject_pass(reader, node, hint, text);
    } else {
        reader->upstreams->any_address = true;
    }
    *into = pass;
    return 0;
}

int proxy_read_pass(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return proxy_read_pass_as(reader, node, proxy_target_parse, PASS_HINT, out);
}

/* Hop-by-hop and framing fields that the server generates. Upgrade and Connection may be set. */
static const char *const own_fields[] = {
    "Content-Length", "Transfer-Encoding", "Keep-Alive", "TE", "Trailer", "Expect", NULL};

static int read_fields_map(struct conf_reader *reader, const struct conf_node *node,
                           struct proxy_fields *fields)
{
    int error = 0;

    fields->items = arena_zalloc(reader->arena, node->count + 1, sizeof(*fields->items));
    if (!fields->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count && error == 0; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        struct proxy_field *field = &fields->items[fields->count++];

        field->name = pair->key->text;
        error = field_name_check(reader, pair->key->mark, field->name, "proxy_set_header", own_fields,
                                 FIELD_HINT);
        if (error == 0)
            error = conf_read_template(reader, pair->value, &field->value);
    }
    return error;
}

/* "Name value", or a map from names to values. */
int proxy_read_fields(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct proxy_fields *fields = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP)
        return read_fields_map(reader, node, fields);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count != 2) {
        conf_error(reader->errors, node->mark, FIELD_HINT,
                   "proxy_set_header takes a name and a value (\"\" removes the field)");
        return -EINVAL;
    }
    fields->items = arena_zalloc(reader->arena, 1, sizeof(*fields->items));
    if (!fields->items)
        return -ENOMEM;
    fields->count = 1;
    fields->items->name = words.items[0];
    error = field_name_check(reader, node->mark, words.items[0], "proxy_set_header", own_fields, FIELD_HINT);
    return error < 0 ? error : conf_read_template_word(reader, node, words.items[1], &fields->items->value);
}

/* Returns true if requests may be sent by https. */
static bool uses_tls(const struct gateway_pass *pass)
{
    struct str text = pass->text ? template_text(pass->text) : STR("");

    if (!pass->text || pass->upstream)
        return pass->target.https;
    return !str_starts(text, STR("http://")) && !str_starts(text, STR("unix:"));
}

int proxy_complete_tls(struct proxy_conf *conf, const char *prefix, struct conf_reader *reader,
                       const struct conf_node *at)
{
    return upstream_ssl_conf_complete(&conf->gateway.ssl, prefix, uses_tls(&conf->gateway.pass), reader, at);
}

int proxy_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct proxy_conf *own = conf;
    struct gateway_pass *pass = &own->gateway.pass;
    struct gateway_cache_conf *cache = &own->gateway.cache;
    int error;

    own->gateway.gateway = own->http_version ? &proxy_http2_gateway : &proxy_gateway;
    own->gateway.ssl.settings.http2 = own->http_version > 0;
    own->gateway.drop_body = !own->pass_body;
    own->drop_fields = !own->pass_fields;
    if (pass->set_in_location && !reader->is_overlay && !conf_map_get(at, STR("proxy_pass")))
        *pass = (struct gateway_pass){0};
    error = proxy_complete_tls(own, "proxy", reader, at);
    if (error == 0)
        error = gateway_conf_complete(&own->gateway, reader, at);
    if (error == 0)
        error = gateway_cache_check(cache, reader, at);
    cache->functions = cache->cache ? &response_cache : NULL;
    cache->slices = cache->slice > 0 ? &slices : NULL;
    return error == 0 && pass->text ? gateway_cache_check_methods(cache, reader, at) : error;
}
