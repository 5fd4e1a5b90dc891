/*
 * Reads the cache directives that have a syntax of their own.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/saturate.h"
#include "modules/gateway/fields.h"

#include <errno.h>

#define VALID_HINT STR("write: proxy_cache_valid: [10m, 404 1m, any 10s]")
#define KEY_HINT   STR("write a proxy_cache_key that distinguishes POST requests")
#define PURGE_HINT STR("write: proxy_cache_purge: PURGE 127.0.0.1 10.0.0.0/8")

static int reject_valid(struct conf_reader *reader, const struct conf_node *node, struct str word)
{
    conf_error(reader->errors, node->mark, VALID_HINT, "\"" STR_FMT "\" is not a status", STR_ARG(word));
    return -EINVAL;
}

/* A time alone applies to 200, 301 and 302, as in nginx. */
static int read_statuses(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *words,
                         struct gateway_cache_valid *valid)
{
    static unsigned usual[] = {200, 301, 302};
    size_t count = size_sub_sat(words->count, 1);

    if (count == 0) {
        valid->statuses = usual;
        valid->count = 3;
        return 0;
    }
    if (count == 1 && str_equal(words->items[0], STR("any")))
        return 0;
    valid->statuses = arena_zalloc(reader->arena, count, sizeof(*valid->statuses));
    if (!valid->statuses)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        uint64_t status;

        if (str_to_u64(words->items[i], &status) < 0 || status < 200 || status > 599)
            return reject_valid(reader, node, words->items[i]);
        valid->statuses[valid->count++] = (unsigned)status;
    }
    return 0;
}

int gateway_read_cache_valid(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct gateway_cache_valid *valid = out;
    struct conf_node word;
    struct conf_words words;
    uint64_t ms = 0;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count == 0)
        return reject_valid(reader, node, STR(""));
    word = conf_word_node(node, words.items[words.count - 1]);
    error = conf_read_duration(reader, &word, &ms);
    valid->seconds = ms / 1000;
    return error < 0 ? error : read_statuses(reader, node, &words, valid);
}

int gateway_read_cache_purge(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct gateway_cache_purge *purge = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 2 || !h1_is_token(words.items[0])) {
        conf_error(reader->errors, node->mark, PURGE_HINT, "proxy_cache_purge takes a method and the addresses that "
                                                           "may use it");
        return -EINVAL;
    }
    purge->method = words.items[0];
    purge->from = arena_zalloc(reader->arena, words.count, sizeof(*purge->from));
    if (!purge->from)
        return -ENOMEM;
    for (size_t i = 1; i < words.count; i++) {
        if (cidr_parse(words.items[i], &purge->from[purge->count++]) < 0) {
            conf_error(reader->errors, node->mark, PURGE_HINT, "\"" STR_FMT "\" is not an address or a range of "
                                                                            "addresses",
                       STR_ARG(words.items[i]));
            return -EINVAL;
        }
    }
    return 0;
}

int gateway_read_cache_range_offset(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct gateway_cache_range_offset *max_offset = out;

    max_offset->set = true;
    return conf_read_size(reader, node, &max_offset->bytes);
}

bool cached_exceeds_range_offset(const struct gateway_request *p)
{
    struct str range = headers_value(&p->x->request.headers, STR("Range"));
    uint64_t first;

    if (!p->conf->cache.max_range_offset.set || !range.data ||
        !str_equal_nocase(str_trim(str_cut(&range, '=')), STR("bytes")))
        return false;
    if (!range.data || p->conf->cache.max_range_offset.bytes == 0)
        return true;
    return str_starts(str_trim(range), STR("-")) || /* a suffix range: its start is unknown */
           (str_to_u64(str_trim(str_cut(&range, '-')), &first) == 0 && first >= p->conf->cache.max_range_offset.bytes);
}

int gateway_cache_check(struct gateway_cache_conf *conf, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(at, STR("proxy_cache"));

    conf->methods |= 1u << METHOD_GET | 1u << METHOD_HEAD;
    conf->cache = NULL;
    if (str_empty(conf->name) || str_equal(conf->name, STR("off")))
        return 0;
    conf->cache = caches_find(reader->caches, conf->name);
    if (conf->cache)
        return 0;
    conf_error(reader->errors, node ? node->mark : at->mark, STR("proxy_cache_path names it: keys_zone: NAME:SIZE"),
               "proxy_cache: there is no cache \"" STR_FMT "\"", STR_ARG(conf->name));
    return -EINVAL;
}

int gateway_cache_check_methods(const struct gateway_cache_conf *conf, struct conf_reader *reader,
                                const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(at, STR("proxy_cache_methods"));

    if (!conf->cache || conf->key || !(conf->methods & 1u << METHOD_POST))
        return 0;
    conf_error(reader->errors, node ? node->mark : at->mark, KEY_HINT,
               "proxy_cache_methods: POST without a proxy_cache_key: the default key lacks the request's body");
    return -EINVAL;
}

int cached_test_predicates(struct exchange *x, const struct conf_templates *templates)
{
    for (size_t i = 0; i < templates->count; i++) {
        struct str value = exchange_eval(x, templates->items[i]);

        if (!value.data)
            return -ENOMEM;
        if (!str_empty(value) && !str_equal(value, STR("0")))
            return 1;
    }
    return 0;
}

bool cached_uses_slices(const struct gateway_request *p)
{
    return p->conf->cache.slices && !p->slice.of &&
           (p->x->request.method == METHOD_GET || p->x->request.method == METHOD_HEAD) &&
           !gateway_drops_fields(&p->x->request.headers);
}
