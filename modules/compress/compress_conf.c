/*
 * The directives of the three codings: the same four for each, and the other gzip directives of nginx.
 */
#include "compress.h"

#include <errno.h>
#include <stddef.h>

static const char *const versions[] = {"1.0", "1.1", NULL};
static const char *const proxied[] = {
    "off", "expired", "no-cache", "no-store", "private", "no_last_modified", "no_etag", "auth", "any", NULL};

#define AT(field) offsetof(struct compress_conf, field)
#define OF(coding, field)                                                                                    \
    (AT(codings) + (coding) * sizeof(struct compress_coding) + offsetof(struct compress_coding, field))
#define TYPES_HELP      "Media types of responses that are encoded, in addition to text/html; *: all."
#define MIN_LENGTH_HELP "Shorter responses are sent unencoded; a response of unknown length is encoded."

const struct directive compress_directives[] = {
    {.name = "gzip",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = OF(CODING_GZIP, on),
     .default_value = "off",
     .example = "gzip: on",
     .help = "Encode responses with gzip while they are sent, for clients that accept it. Do not use it for pages "
             "that contain both a secret and input of the client (BREACH)."},
    {.name = "gzip_types",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .offset = OF(CODING_GZIP, types),
     .default_value = "text/html",
     .example = "gzip_types: [text/css, text/plain, application/json, application/javascript, image/svg+xml]",
     .help = TYPES_HELP},
    {.name = "gzip_min_length",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = OF(CODING_GZIP, min_length),
     .default_value = "20",
     .example = "gzip_min_length: 1k",
     .help = MIN_LENGTH_HELP},
    {.name = "gzip_comp_level",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .low = 1,
     .high = 9,
     .offset = OF(CODING_GZIP, level),
     .default_value = "1",
     .example = "gzip_comp_level: 6",
     .help = "The compression level of zlib; 1 is the fastest."},
    {.name = "gzip_vary",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .ignored = &(const struct directive_ignored){"without Vary, caches would confuse encoded and unencoded "
                                                  "responses", "delete it"},
     .default_value = "on",
     .example = "gzip_vary: on",
     .help = "Responses that could be encoded always have Vary: Accept-Encoding, so that caches distinguish them. "
             "off causes a warning and has no effect."},
    {.name = "gzip_http_version",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .choices = versions,
     .offset = AT(min_version),
     .default_value = "1.1",
     .example = "gzip_http_version: \"1.0\"",
     .help = "The lowest HTTP version of a request whose response is encoded, with gzip, br or zstd."},
    {.name = "gzip_proxied",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_FLAGS,
     .choices = proxied,
     .offset = AT(proxied),
     .default_value = "off",
     .example = "gzip_proxied: [expired, no-cache, no-store, private, auth]",
     .help = "The responses that are encoded, with gzip, br or zstd, for requests that came through another proxy "
             "(Via): those that caches do not store, or any."},
    {.name = "gzip_buffers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .ignored = &(const struct directive_ignored){0},
     .example = "gzip_buffers: 16 8k",
     .help = "Accepted, without effect: one small buffer holds the next encoded bytes."},
    {.name = "gunzip",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(gunzip),
     .default_value = "off",
     .example = "gunzip: on",
     .help = "Decode responses that are already encoded with gzip, from an upstream server or a file (gzip_static: "
             "always), for clients that do not accept it. A decoded response has no ranges and a weak ETag."},
    {.name = "brotli",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = OF(CODING_BR, on),
     .default_value = "off",
     .example = "brotli: on",
     .help = "As gzip, with br, which is preferred to gzip and zstd if a request accepts several with the same "
             "weight."},
    {.name = "brotli_types",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .offset = OF(CODING_BR, types),
     .default_value = "text/html",
     .example =
         "brotli_types: [text/css, text/plain, application/json, application/javascript, image/svg+xml]",
     .help = TYPES_HELP},
    {.name = "brotli_min_length",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = OF(CODING_BR, min_length),
     .default_value = "20",
     .example = "brotli_min_length: 1k",
     .help = MIN_LENGTH_HELP},
    {.name = "brotli_comp_level",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .high = 9,
     .offset = OF(CODING_BR, level),
     .default_value = "4",
     .example = "brotli_comp_level: 5",
     .help = "The compression level of libbrotlienc; 0 is the fastest. 10 and 11 are for files that are encoded in "
             "advance: precompressed."},
    {.name = "zstd",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = OF(CODING_ZSTD, on),
     .default_value = "off",
     .example = "zstd: on",
     .help = "As gzip, with zstd, which is preferred to gzip if a request accepts both with the same weight."},
    {.name = "zstd_types",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .offset = OF(CODING_ZSTD, types),
     .default_value = "text/html",
     .example = "zstd_types: [text/css, text/plain, application/json, application/javascript, image/svg+xml]",
     .help = TYPES_HELP},
    {.name = "zstd_min_length",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = OF(CODING_ZSTD, min_length),
     .default_value = "20",
     .example = "zstd_min_length: 1k",
     .help = MIN_LENGTH_HELP},
    {.name = "zstd_comp_level",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .low = 1,
     .high = 9,
     .offset = OF(CODING_ZSTD, level),
     .default_value = "3",
     .example = "zstd_comp_level: 5",
     .help = "The compression level of libzstd; 1 is the fastest. Levels above 9 are for files that are encoded in "
             "advance: precompressed."},
    {0},
};

static const char *const type_keys[CODINGS] = {
    [CODING_BR] = "brotli_types", [CODING_ZSTD] = "zstd_types", [CODING_GZIP] = "gzip_types"};

static void check_types(struct conf_reader *reader, const struct conf_node *at, enum coding coding,
                        const struct conf_words *types)
{
    const struct conf_node *node = conf_map_get(at, str_from(type_keys[coding]));

    for (size_t i = 0; node && i < types->count; i++) {
        if (str_find(types->items[i], '/') > 0 || str_equal(types->items[i], STR("*")))
            continue;
        conf_error(reader->errors, node->mark, STR("write: gzip_types: [text/css, application/json], or '*'"),
                   "\"" STR_FMT "\" is not a media type", STR_ARG(types->items[i]));
        return;
    }
}

int compress_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct compress_conf *own = conf;

    own->any = false;
    for (enum coding coding = 0; coding < CODINGS; coding++) {
        own->any = own->any || own->codings[coding].on;
        check_types(reader, at, coding, &own->codings[coding].types);
    }
    return 0;
}
