/*
 * Directives of `http` only: the open-file cache of the worker, log formats.
 */
#include "site/core.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct core_http, field)

static int read_cache_option(struct conf_reader *reader, const struct conf_node *node, struct str name,
                             const struct conf_node *value, struct core_file_cache *out)
{
    if (str_equal(name, STR("max")))
        return conf_read_number(reader, value, 1, 1000000, &out->max_entries);
    if (str_equal(name, STR("inactive")))
        return conf_read_duration(reader, value, &out->inactive_ms);
    conf_error(reader->errors, node->mark, STR("write: open_file_cache: max=1000 inactive=60s, or off"),
               "open_file_cache has no option \"" STR_FMT "\"", STR_ARG(name));
    return -EINVAL;
}

static int read_cache_map(struct conf_reader *reader, const struct conf_node *node,
                          struct core_file_cache *out)
{
    for (size_t i = 0; i < node->count; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        int error = read_cache_option(reader, pair->key, pair->key->text, pair->value, out);

        if (error < 0)
            return error;
    }
    return 0;
}

/* Reads off, on, "max=1000 inactive=60s", or a map of the same. */
static int read_cache(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_file_cache cache = {.enabled = true, .max_entries = 1000, .inactive_ms = 60000};
    struct core_file_cache *into = out;
    struct conf_words words;
    int error = 0;

    if (node->kind == CONF_MAP) {
        error = read_cache_map(reader, node, &cache);
        if (error == 0)
            *into = cache;
        return error;
    }
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count == 1 && str_find(words.items[0], '=') < 0) {
        error = conf_read_switch(reader, node, &cache.enabled);
        words.count = 0;
    }
    for (size_t i = 0; i < words.count && error == 0; i++) {
        struct str value = words.items[i];
        struct str name = str_cut(&value, '=');
        struct conf_node word = conf_word_node(node, value);

        error = read_cache_option(reader, node, name, &word, &cache);
    }
    if (error == 0)
        *into = cache;
    return error;
}

static const struct directive directives[] = {
    {.name = "log_format",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(log_formats),
     .row_size = sizeof(struct conf_rows),
     .row = core_log_formats_read,
     .help = "Named line formats for access_log; main, combined and json are built in.",
     .syntax = "{name: text | {escape: default | json | none, format: text}, ...}",
     .example = "log_format: {short: '$remote_addr \"$request\" $status $tls_path'}",
     .schema = "{\"type\": \"object\"}"},
    {.name = "open_file_cache",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(open_file_cache),
     .row_size = sizeof(struct core_file_cache),
     .row = read_cache,
     .default_value = "max=1000 inactive=60s",
     .syntax = "off | max=number [inactive=time]",
     .example = "open_file_cache: max=10000 inactive=5m",
     .help =
         "Descriptors, sizes and small contents of files, kept by each worker (absent files too), or off.",
     .schema =
         "{\"oneOf\": [{\"type\": \"boolean\"}, {\"type\": \"string\"}, {\"type\": \"object\", "
         "\"additionalProperties\": false, \"properties\": {\"max\": {\"type\": \"integer\"}, \"inactive\": "
         "{\"type\": \"string\"}}}]}"},
    {.name = "open_file_cache_valid",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_DURATION,
     .offset = AT(open_file_cache_valid_ms),
     .default_value = "1s",
     .example = "open_file_cache_valid: 10s",
     .help = "The time after which a cached file is checked again."},
    {.name = "open_file_cache_min_uses",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(open_file_cache_min_uses),
     .low = 1,
     .high = 1000000,
     .default_value = "1",
     .example = "open_file_cache_min_uses: 2",
     .help = "How often a file must be requested, while it is not inactive, to be cached: until then each request "
             "opens it."},
    {.name = "open_file_cache_errors",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(open_file_cache_errors),
     .default_value = "on",
     .example = "open_file_cache_errors: off",
     .help = "Cache absent and rejected files too (on by default, unlike nginx)."},
    {0},
};

const struct conf_group core_http_group = {
    .name = "http",
    .directives = directives,
    .size = sizeof(struct core_http),
};
