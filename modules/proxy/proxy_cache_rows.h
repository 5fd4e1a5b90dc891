/*
 * The cache directives in the table of directives of proxy. AT is the offset of a field in proxy_conf.
 */
#ifndef MODULES_PROXY_PROXY_CACHE_ROWS_H
#define MODULES_PROXY_PROXY_CACHE_ROWS_H

#include "cache/cache_conf.h"

static const char *const cache_methods[] = {"GET", "HEAD", "POST", NULL};
static const char *const cache_stale[] = {"error", "timeout", "invalid_header", "updating", "http_500", "http_502",
                                          "http_503", "http_504", "http_403", "http_404", "http_429", "off",
                                          NULL};

#define PROXY_CACHE_ROWS                                                                                               \
    {.name = "proxy_cache_path", .scopes = SCOPE_HTTP, .type = DIRECTIVE_REPEAT, .offset = AT(gateway.cache.paths),    \
     .row_size = sizeof(struct cache_conf *), .row = caches_read, .schema = "{\"type\": \"object\"}",                  \
     .syntax = "{path: directory, keys_zone: name:size, levels: number[:number[:number]], max_size: size, "            \
               "inactive: time, ...}",                                                                                 \
     .example = "proxy_cache_path: {path: /var/cache/sluice, keys_zone: \"one:10m\", max_size: 1g, inactive: 1h}",     \
     .help = "A cache on disk, and its name for proxy_cache. path: a directory of its own. keys_zone: NAME:SIZE, "     \
             "the memory of its index (1m holds about 11,000 responses). levels (1:2): subdirectories. max_size: "     \
             "total size of the files; inactive (10m): entries not used for this time are deleted; min_free: free "    \
             "space to leave on the disk. manager_files (100), manager_threshold (200ms), manager_sleep (50ms): "      \
             "number of files and time of one step of loading and deleting, and the pause after it."},                 \
    {.name = "proxy_cache", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEXT, .offset = AT(gateway.cache.name),            \
     .default_value = "off",                                                                                           \
     .example = "proxy_cache: one",                                                                                    \
     .help = "The name of the cache for responses (its keys_zone), or off. RFC 9111 determines what is stored and "    \
             "when it is used."},                                                                                      \
    {.name = "proxy_cache_key", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATE, .offset = AT(gateway.cache.key),     \
     .example = "proxy_cache_key: $scheme$proxy_host$request_uri",                                                     \
     .help = "The key of a stored response. Default: everything that determines the target of the upstream "           \
             "request: scheme, server, host and port as in the client's request, X-Forwarded-Proto, -Host and -Port "  \
             "of a trusted peer, the target, the path after rewriting, and the values that proxy_method and "          \
             "proxy_set_body send."},                                                                                  \
    {.name = "proxy_cache_valid", .scopes = SCOPE_SITE, .type = DIRECTIVE_REPEAT, .offset = AT(gateway.cache.valid),   \
     .row_size = sizeof(struct gateway_cache_valid), .row = gateway_read_cache_valid,                                  \
     .schema = "{\"type\": \"string\"}", .syntax = "[status ... | any] time",                                          \
     .example = "proxy_cache_valid: [10m, 404 1m, any 10s]",                                                           \
     .help = "The lifetime of responses with these statuses that state none themselves; a time alone: 200, 301 and "   \
             "302. Without this directive, responses without a lifetime are not stored."},                             \
    {.name = "proxy_cache_heuristic", .scopes = SCOPE_SITE, .type = DIRECTIVE_DURATION,                                \
     .offset = AT(gateway.cache.heuristic_ms),                                                                         \
     .default_value = "0", .high = 31536000000, .example = "proxy_cache_heuristic: 1d",                                \
     .help = "The maximum lifetime of a response for which neither its fields nor proxy_cache_valid state one, but "   \
             "which has Last-Modified: a tenth of the time since then (RFC 9111 4.2.2). 0: it is not stored."},        \
    {.name = "proxy_cache_targeted", .scopes = SCOPE_SITE, .type = DIRECTIVE_WORDS,                                    \
     .offset = AT(gateway.cache.targeted),                                                                             \
     .default_value = "CDN-Cache-Control",                                                                             \
     .example = "proxy_cache_targeted: [Sluice-Cache-Control, CDN-Cache-Control]",                                     \
     .help = "Targeted cache control fields (RFC 9213): the first one of a response that is a valid and non-empty "    \
             "dictionary replaces Cache-Control and Expires. []: none does."},                                         \
    {.name = "proxy_cache_methods", .scopes = SCOPE_SITE, .type = DIRECTIVE_FLAGS,                                     \
     .offset = AT(gateway.cache.methods),                                                                              \
     .choices = cache_methods, .default_value = "GET HEAD", .example = "proxy_cache_methods: GET HEAD POST",           \
     .help = "Methods whose responses are stored; GET and HEAD always. POST needs a proxy_cache_key that "             \
             "distinguishes the requests: the default key does not contain the request body."},                        \
    {.name = "proxy_cache_bypass", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATES,                                  \
     .offset = AT(gateway.cache.bypass),                                                                               \
     .example = "proxy_cache_bypass: [$cookie_nocache, $arg_nocache]",                                                 \
     .help = "If one of these is neither empty nor 0, the request goes to the upstream server and not to the "         \
             "cache."},                                                                                                \
    {.name = "proxy_no_cache", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATES,                                      \
     .offset = AT(gateway.cache.no_cache),                                                                             \
     .example = "proxy_no_cache: $upstream_http_x_private",                                                            \
     .help = "If one of these is neither empty nor 0, the response is not stored."},                                   \
    {.name = "proxy_cache_min_uses", .scopes = SCOPE_SITE, .type = DIRECTIVE_NUMBER,                                   \
     .offset = AT(gateway.cache.min_uses),                                                                             \
     .default_value = "1", .example = "proxy_cache_min_uses: 3", .low = 1, .high = 1000000,                            \
     .help = "The number of requests after which a response is stored."},                                              \
    {.name = "proxy_ignore_headers", .scopes = SCOPE_SITE, .type = DIRECTIVE_FLAGS,                                    \
     .offset = AT(gateway.cache.ignore),                                                                               \
     .choices = gateway_ignored_headers, .example = "proxy_ignore_headers: [Cache-Control, Set-Cookie]",               \
     .help = "Header fields of a response that are ignored: for the cache (a response with a cookie is stored only "   \
             "with Set-Cookie here), for an internal redirect (X-Accel-Redirect), for proxy_buffering "                \
             "(X-Accel-Buffering), for limit_rate (X-Accel-Limit-Rate), for the charset of Content-Type "              \
             "(X-Accel-Charset)."},                                                                                    \
    {.name = "proxy_cache_use_stale", .scopes = SCOPE_SITE, .type = DIRECTIVE_FLAGS,                                   \
     .offset = AT(gateway.cache.use_stale),                                                                            \
     .choices = cache_stale, .default_value = "off",                                                                   \
     .example = "proxy_cache_use_stale: [error, timeout, updating, http_502]",                                         \
     .help = "Cases in which a stale response is used: these failures of the upstream server, or (updating) while "    \
             "another request fetches it. Never if the response forbids it (must-revalidate, proxy-revalidate, "       \
             "s-maxage, no-cache); its own stale-while-revalidate and stale-if-error always apply. A response that "   \
             "has neither and was stale on arrival is used only after validation (proxy_cache_revalidate)."},          \
    {.name = "proxy_cache_revalidate", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH,                                 \
     .offset = AT(gateway.cache.revalidate),                                                                           \
     .default_value = "off", .example = "proxy_cache_revalidate: on",                                                  \
     .help = "Validate a stale response by a conditional request (If-None-Match, If-Modified-Since); 304 makes it "    \
             "fresh. A response that was stale on arrival is stored only with this directive on, and if it has ETag "  \
             "or Last-Modified."},                                                                                     \
    {.name = "proxy_cache_lock", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH, .offset = AT(gateway.cache.lock),     \
     .default_value = "off",                                                                                           \
     .example = "proxy_cache_lock: on",                                                                                \
     .help = "Only one request of all workers fetches a missing response; the others wait for it."},                   \
    {.name = "proxy_cache_lock_timeout", .scopes = SCOPE_SITE, .type = DIRECTIVE_DURATION,                             \
     .offset = AT(gateway.cache.lock_timeout_ms),                                                                      \
     .default_value = "5s", .example = "proxy_cache_lock_timeout: 10s",                                                \
     .help = "How long requests wait for the one that fetches a missing response (proxy_cache_lock); then each is "    \
             "sent to the upstream server, and its response is not stored."},                                          \
    {.name = "proxy_cache_lock_age", .scopes = SCOPE_SITE, .type = DIRECTIVE_DURATION,                                 \
     .offset = AT(gateway.cache.lock_age_ms),                                                                          \
     .default_value = "5s", .example = "proxy_cache_lock_age: 10s", .low = 1,                                          \
     .help = "How long the request that fetches a missing response may take (proxy_cache_lock), before another one "   \
             "is sent as well."},                                                                                      \
    {.name = "proxy_cache_background_update", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH,                          \
     .offset = AT(gateway.cache.background_update), .default_value = "off",                                            \
     .example = "proxy_cache_background_update: on",                                                                   \
     .help = "If a stale response may be used during an update, it is sent at once, and the update runs in the "       \
             "background."},                                                                                           \
    {.name = "proxy_cache_obey_requests", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH,                              \
     .offset = AT(gateway.cache.obey),                                                                                 \
     .default_value = "on", .example = "proxy_cache_obey_requests: off",                                               \
     .help = "Whether Cache-Control of a request is respected (no-cache, no-store, max-age, min-fresh, max-stale, "    \
             "only-if-cached)."},                                                                                      \
    {.name = "slice", .scopes = SCOPE_SITE, .type = DIRECTIVE_SIZE, .offset = AT(gateway.cache.slice),                 \
     .default_value = "0",                                                                                             \
     .example = "slice: 1m",                                                                                           \
     .help = "The size of the slices in which large responses are fetched and stored, each by a range request, when "  \
             "they are needed; responses are assembled from them. 0: no slices. For a server without range support, "  \
             "or without a validator in its responses, slices are not used."},                                         \
    {.name = "proxy_cache_max_range_offset", .scopes = SCOPE_SITE, .type = DIRECTIVE_CUSTOM,                           \
     .offset = AT(gateway.cache.max_range_offset),                                                                     \
     .row_size = sizeof(struct gateway_cache_range_offset), .row = gateway_read_cache_range_offset,                    \
     .schema = "{\"type\": [\"string\", \"integer\"]}", .syntax = "size",                                              \
     .example = "proxy_cache_max_range_offset: 10m",                                                                   \
     .help = "A range that begins at this byte or later, or counts from the end, of a response that is not stored "    \
             "is requested unchanged, and its response is not stored; for another range the whole response is "        \
             "fetched. 0: every range. Not needed with slice."},                                                       \
    {.name = "proxy_cache_partial", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH,                                    \
     .offset = AT(gateway.cache.partial),                                                                              \
     .default_value = "off", .example = "proxy_cache_partial: on",                                                     \
     .help = "Whether incomplete responses are stored (RFC 9111 3.3): a range that is not stored is requested "        \
             "unchanged (with proxy_cache_max_range_offset, from that byte on) and its 206 is stored; of an "          \
             "interrupted 200 the beginning is stored. One contiguous span per response, with a strong ETag, or a "    \
             "Last-Modified a minute older than Date. Ranges inside it are hits; bytes missing on one side are "       \
             "requested with If-Range and stored with it ($upstream_cache_status: PARTIAL). No effect with slice, "    \
             "proxy_method and proxy_set_body."},                                                                      \
    {.name = "proxy_cache_convert_head", .scopes = SCOPE_SITE, .type = DIRECTIVE_SWITCH,                               \
     .offset = AT(gateway.cache.convert_head),                                                                         \
     .default_value = "on", .example = "proxy_cache_convert_head: off",                                                \
     .help = "Whether HEAD for a response that is not stored is sent to the upstream server as GET, and the "          \
             "response stored. HEAD is answered once a body of up to 64 KiB is stored, and earlier if the body is "    \
             "longer. off: it is sent as HEAD and not stored. A response stored by GET answers HEAD in either "        \
             "case."},                                                                                                 \
    {.name = "proxy_cache_purge", .scopes = SCOPE_SITE, .type = DIRECTIVE_CUSTOM, .offset = AT(gateway.cache.purge),   \
     .row_size = sizeof(struct gateway_cache_purge), .row = gateway_read_cache_purge,                                  \
     .schema = "{\"type\": \"string\"}",                                                                               \
     .syntax = "method address ...",                                                                                   \
     .example = "proxy_cache_purge: PURGE 127.0.0.1 10.0.0.0/8",                                                       \
     .help = "The method that removes the stored response of its URI, and the addresses that may use it. 204: "        \
             "removed with all variants; 404: nothing was stored; 403: not permitted. Without this directive purging " \
             "is off."}

#endif
