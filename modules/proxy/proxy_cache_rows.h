/*
 * The rows of the cache in the table of gateway_request, which proxy_conf.c puts together. AT is the offset of a field in proxy_conf.
 */
#ifndef MODULES_PROXY_PROXY_CACHE_ROWS_H
#define MODULES_PROXY_PROXY_CACHE_ROWS_H

#include "cache/cache_conf.h"

static const char *const cache_methods[] = {"GET", "HEAD", "POST", NULL};
static const char *const cache_stale[] = {"error", "timeout", "invalid_header", "updating", "http_500", "http_502", "http_503",
                                          "http_504", "http_403", "http_404", "http_429", "off", NULL};

#define PROXY_CACHE_ROWS                                                                                                         \
    {.name = "proxy_cache_path", .scopes = SCOPE_HTTP, .type = DIRECTIVE_REPEAT, .offset = AT(gateway.cache.paths),                      \
     .row_size = sizeof(struct cache_conf *), .row = caches_read, .schema = "{\"type\": \"object\"}",                            \
     .syntax = "{path: folder, keys_zone: name:size, levels: number[:number[:number]], max_size: size, "                         \
               "inactive: time, ...}",                                                                                           \
     .example = "proxy_cache_path: {path: /var/cache/sluice, keys_zone: \"one:10m\", max_size: 1g, inactive: 1h}",               \
     .help = "A cache on disk, and its name for proxy_cache. path: its folder. keys_zone: NAME:SIZE, the memory of its index "   \
             "(1m knows some 11,000 answers). levels (1:2): folders in it. max_size: bytes of all files; inactive (10m): what "  \
             "nobody asks for so long goes; min_free: bytes that the disk keeps free. manager_files (100), manager_threshold "   \
             "(200ms), manager_sleep (50ms): files and time of one step of loading and deleting, and the pause after it."},      \
    {.name = "proxy_cache", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEXT, .offset = AT(gateway.cache.name), .fallback = "off",           \
     .example = "proxy_cache: one",                                                                                              \
     .help = "The cache that answers are kept in, by the name of its keys_zone, or off. What may be kept, and said again, "      \
             "RFC 9111 says."},                                                                                                  \
    {.name = "proxy_cache_key", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATE, .offset = AT(gateway.cache.key),                       \
     .example = "proxy_cache_key: $scheme$proxy_host$request_uri",                                                               \
     .help = "What tells one answer from another. Without it, all that the server is told of where the request goes: scheme, "   \
             "server, host and port as the client asked for them, what a trusted peer says of these in X-Forwarded-Proto, "      \
             "-Host and -Port, the target, the path that became of it, and what proxy_method and "                               \
             "proxy_set_body send."},                                                                                            \
    {.name = "proxy_cache_valid", .scopes = SCOPE_SITE, .type = DIRECTIVE_REPEAT, .offset = AT(gateway.cache.valid),                     \
     .row_size = sizeof(struct proxy_cache_valid), .row = proxy_read_cache_valid,                                                \
     .schema = "{\"type\": \"string\"}", .syntax = "[status ... | any] time",                                                    \
     .example = "proxy_cache_valid: [10m, 404 1m, any 10s]",                                                                     \
     .help = "How long answers of these statuses are fresh that do not say so themselves; a time alone: 200, 301 and 302. "      \
             "Without it they are not kept."},                                                                                   \
    {.name = "proxy_cache_heuristic", .scopes = SCOPE_SITE, .type = DIRECTIVE_DURATION, .offset = AT(gateway.cache.heuristic_ms),        \
     .fallback = "0", .high = 31536000000, .example = "proxy_cache_heuristic: 1d",                                               \
     .help = "How long at most an answer is fresh for which neither its fields nor proxy_cache_valid say a time, but which has " \
             "Last-Modified: a tenth of the time since then (RFC 9111 4.2.2). 0: it is not kept."},                              \
    {.name = "proxy_cache_targeted", .scopes = SCOPE_SITE, .type = DIRECTIVE_WORDS, .offset = AT(gateway.cache.targeted),                \
     .fallback = "CDN-Cache-Control", .example = "proxy_cache_targeted: [Sluice-Cache-Control, CDN-Cache-Control]",              \
     .help = "Fields that say to this cache what Cache-Control and Expires say to all (RFC 9213): the first one of an answer "   \
             "that is no empty and no malformed dictionary counts in their place. []: none does."},                              \
    {.name = "proxy_cache_methods", .scopes = SCOPE_SITE, .type = DIRECTIVE_FLAGS, .offset = AT(gateway.cache.methods),                  \
     .choices = cache_methods, .fallback = "GET HEAD", .example = "proxy_cache_methods: GET HEAD POST",                          \
     .help = "Methods whose answers are kept; GET and HEAD always. POST needs a proxy_cache_key that tells one request from "    \
             "another: the default key does not contain the request's body."},                                                   \
    {.name = "proxy_cache_bypass", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATES, .offset = AT(gateway.cache.bypass),                \
     .example = "proxy_cache_bypass: [$cookie_nocache, $arg_nocache]",                                                           \
     .help = "Where one of these is neither empty nor 0, a server is asked, whatever is stored."},                               \
    {.name = "proxy_no_cache", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATES, .offset = AT(gateway.cache.no_cache),                  \
     .example = "proxy_no_cache: $upstream_http_x_private",                                                                      \
     .help = "Where one of these is neither empty nor 0, the answer is not kept."},                                              \
    {.name = "proxy_cache_min_uses", .scopes = SCOPE_SITE, .type = DIRECTIVE_NUMBER, .offset = AT(gateway.cache.min_uses),               \
     .fallback = "1", .example = "proxy_cache_min_uses: 3", .low = 1, .high = 1000000,                                           \
     .help = "How often something must be asked for to be kept."},                                                               \
    {.name = "proxy_ignore_headers", .scopes = SCOPE_SITE, .type = DIRECTIVE_FLAGS, .offset = AT(gateway.cache.ignore),                  \
     .choices = gateway_ignored_headers, .example = "proxy_ignore_headers: [Cache-Control, Set-Cookie]",                           \
     .help = "Fields of an answer that do not count: for the cache (an answer that sets a cookie is kept only with Set-Cookie), " \
             "for a redirect within this server (X-Accel-Redirect), for proxy_buffering (X-Accel-Buffering), "           \
             "for limit_rate (X-Accel-Limit-Rate), for the charset of Content-Type (X-Accel-Charset)."},                                \
    {.name = "proxy_cache_use_stale", .scopes = SCOPE_SITE, .type = DIRECTIVE_FLAGS, .offset = AT(gateway.cache.use_stale),              \
     .choices = cache_stale, .fallback = "off", .example = "proxy_cache_use_stale: [error, timeout, updating, http_502]",        \
     .help = "When something stale may be the answer: where servers fail like this, or (updating) while somebody fetches it. "   \
             "Never where the answer forbids it (must-revalidate, proxy-revalidate, s-maxage, no-cache); its own "               \
             "stale-while-revalidate and stale-if-error hold without being asked for. An answer that has neither and was stale " \
             "when it came is used after it was validated alone (proxy_cache_revalidate)."},                                     \
    {.name = "proxy_cache_revalidate", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH, .offset = AT(gateway.cache.revalidate),           \
     .fallback = "off", .example = "proxy_cache_revalidate: on",                                                                 \
     .help = "Ask whether something stale still holds (If-None-Match, If-Modified-Since); 304 renews it. What was stale when "   \
             "it came is stored only with this on, and where it has ETag or Last-Modified."},                                    \
    {.name = "proxy_cache_lock", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH, .offset = AT(gateway.cache.lock), .fallback = "off",    \
     .example = "proxy_cache_lock: on",                                                                                          \
     .help = "One request alone fetches what is missing, of all workers; the others wait for it."},                              \
    {.name = "proxy_cache_lock_timeout", .scopes = SCOPE_SITE, .type = DIRECTIVE_DURATION, .offset = AT(gateway.cache.lock_timeout_ms),  \
     .fallback = "5s", .example = "proxy_cache_lock_timeout: 10s",                                                               \
     .help = "How long the others wait; then each asks for itself, and its answer is not kept."},                                \
    {.name = "proxy_cache_lock_age", .scopes = SCOPE_SITE, .type = DIRECTIVE_DURATION, .offset = AT(gateway.cache.lock_age_ms),          \
     .fallback = "5s", .example = "proxy_cache_lock_age: 10s", .low = 1,                                                         \
     .help = "How long the one may take before another may try."},                                                               \
    {.name = "proxy_cache_background_update", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH,                                    \
     .offset = AT(gateway.cache.background_update), .fallback = "off", .example = "proxy_cache_background_update: on",                   \
     .help = "What may be said stale while it is updated is said at once, and updated behind the answer."},                      \
    {.name = "proxy_cache_obey_requests", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH, .offset = AT(gateway.cache.obey),              \
     .fallback = "on", .example = "proxy_cache_obey_requests: off",                                                              \
     .help = "Whether Cache-Control of a request counts (no-cache, no-store, max-age, min-fresh, max-stale, only-if-cached)."},  \
    {.name = "slice", .scopes = SCOPE_SITE, .type = DIRECTIVE_SIZE, .offset = AT(gateway.cache.slice), .fallback = "0",                  \
     .example = "slice: 1m",                                                                                                     \
     .help = "Bytes of the pieces in which what is large is fetched and stored, each by a request for a range, as they are "     \
             "asked for; answers are put together of them. 0: whole. A server that knows no ranges, or says nothing to tell "    \
             "one version from another, is asked as without."},                                                                  \
    {.name = "proxy_cache_max_range_offset", .scopes = SCOPE_SITE, .type = DIRECTIVE_CUSTOM, .offset = AT(gateway.cache.far),            \
     .row_size = sizeof(struct proxy_cache_far), .row = proxy_read_cache_far,                                                    \
     .schema = "{\"type\": [\"string\", \"integer\"]}", .syntax = "size",                                                        \
     .example = "proxy_cache_max_range_offset: 10m",                                                                             \
     .help = "A range that begins at this byte or later, or counts from the end, of what is not stored is asked for as it is, "  \
             "and not kept; else the whole is fetched for it. 0: every range. With slice there is no need of it."},              \
    {.name = "proxy_cache_convert_head", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH, .offset = AT(gateway.cache.convert_head),       \
     .fallback = "on", .example = "proxy_cache_convert_head: off",                                                               \
     .help = "Whether what is not stored is asked for by GET where a client asks by HEAD, and kept. off: by HEAD, and nothing "  \
             "is kept of that. What GET has stored answers HEAD either way."},                                                   \
    {.name = "proxy_cache_purge", .scopes = SCOPE_SITE, .type = DIRECTIVE_CUSTOM, .offset = AT(gateway.cache.purge),                     \
     .row_size = sizeof(struct proxy_cache_purge), .row = proxy_read_cache_purge, .schema = "{\"type\": \"string\"}",            \
     .syntax = "method address ...",                                                                                             \
     .example = "proxy_cache_purge: PURGE 127.0.0.1 10.0.0.0/8",                                                                 \
     .help = "A method that forgets what is stored under its URI, and the addresses that may use it. 204: it is forgotten, "     \
             "in all its variants; 404: nothing was stored; 403: not from there. Without this key nobody may."}

#endif
