/*
 * Rows that the tables of directives of several gateways have. `prefix` is that of their names, "proxy"; `at` is the
 * offset of the struct gateway_conf in the struct of the module.
 */
#ifndef MODULES_GATEWAY_GATEWAY_ROWS_H
#define MODULES_GATEWAY_GATEWAY_ROWS_H

#include "base/limits.h"
#include "modules/gateway/gateway_conf.h"

#include <stddef.h>

#define GATEWAY_SWITCH_ROW(key, at, field, text)                                                                \
    {.name = (key),                                                                                             \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_SWITCH,                                                                                  \
     .offset = (at) + offsetof(struct gateway_conf, field),                                                     \
     .default_value = "off",                                                                                    \
     .example = key ": on",                                                                                     \
     .help = (text)}
#define GATEWAY_DURATION_ROW(key, at, field, initial, sample, text)                                             \
    {.name = (key),                                                                                             \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_DURATION,                                                                                \
     .offset = (at) + offsetof(struct gateway_conf, field),                                                     \
     .default_value = (initial),                                                                                \
     .example = key ": " sample,                                                                                \
     .help = (text)}
#define GATEWAY_FIELDS_ROW(key, at, field, sample, text)                                                        \
    {.name = (key),                                                                                             \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_WORDS,                                                                                   \
     .merge = MERGE_APPEND,                                                                                     \
     .offset = (at) + offsetof(struct gateway_conf, field),                                                     \
     .example = key ": " sample,                                                                                \
     .help = (text)}
#define GATEWAY_BUFFER_SIZE_ROW(prefix, at)                                                                     \
    {.name = prefix "_buffer_size",                                                                             \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_SIZE,                                                                                    \
     .offset = (at) + offsetof(struct gateway_conf, buffer_size),                                               \
     .default_value = "16k",                                                                                    \
     .low = 1024,                                                                                               \
     .high = LIMIT_REQUEST_HEAD,                                                                                \
     .example = prefix "_buffer_size: 32k",                                                                     \
     .help = "The maximum length of a response head."}
#define GATEWAY_BUFFERS_ROW(prefix, at)                                                                         \
    {.name = prefix "_buffers",                                                                                 \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_CUSTOM,                                                                                  \
     .offset = (at) + offsetof(struct gateway_conf, buffering.count),                                           \
     .row_size = 2 * sizeof(uint64_t),                                                                          \
     .row = gateway_read_buffers,                                                                               \
     .default_value = "8 8k",                                                                                   \
     .syntax = "number size",                                                                                   \
     .example = prefix "_buffers: 16 16k",                                                                      \
     .help = "Number and size of the buffers in memory for a response, with " prefix "_buffering."}
#define GATEWAY_FILE_SIZE_ROW(prefix, at, text)                                                                 \
    {.name = prefix "_max_temp_file_size",                                                                      \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_SIZE,                                                                                    \
     .offset = (at) + offsetof(struct gateway_conf, buffering.file_max),                                        \
     .default_value = "1g",                                                                                     \
     .high = LIMIT_SPOOL_FILE,                                                                                  \
     .example = prefix "_max_temp_file_size: 256m",                                                             \
     .help = (text)}
#define GATEWAY_FILE_FOLDER_ROW(prefix, at, text)                                                               \
    {.name = prefix "_temp_path",                                                                               \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_PATH,                                                                                    \
     .written = true,                                                                                           \
     .offset = (at) + offsetof(struct gateway_conf, buffering.directory),                                       \
     .default_value = "/var/tmp",                                                                               \
     .example = prefix "_temp_path: /var/cache/sluice",                                                         \
     .help = (text)}
#define GATEWAY_IGNORE_HEADERS_ROW(prefix, at, text)                                                            \
    {.name = prefix "_ignore_headers",                                                                          \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_FLAGS,                                                                                   \
     .offset = (at) + offsetof(struct gateway_conf, cache.ignore),                                              \
     .choices = gateway_ignored_headers,                                                                        \
     .example = prefix "_ignore_headers: X-Accel-Redirect",                                                     \
     .help = (text)}
#define GATEWAY_NEXT_ROW(prefix, at, text)                                                                      \
    {.name = prefix "_next_upstream",                                                                           \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_FLAGS,                                                                                   \
     .offset = (at) + offsetof(struct gateway_conf, next),                                                      \
     .choices = gateway_next_words,                                                                             \
     .default_value = "error timeout",                                                                          \
     .example = prefix "_next_upstream: [error, timeout, http_503]",                                            \
     .help = (text)}
#define GATEWAY_NEXT_TRIES_ROW(prefix, at)                                                                      \
    {.name = prefix "_next_upstream_tries",                                                                     \
     .scopes = SCOPE_SITE,                                                                                      \
     .type = DIRECTIVE_NUMBER,                                                                                  \
     .offset = (at) + offsetof(struct gateway_conf, next_tries),                                                \
     .default_value = "0",                                                                                      \
     .example = prefix "_next_upstream_tries: 2",                                                               \
     .help = "The maximum number of servers that are tried for one request; 0: all."}
#define GATEWAY_NEXT_TIMEOUT_ROW(prefix, at)                                                                    \
    GATEWAY_DURATION_ROW(prefix "_next_upstream_timeout", at, next_timeout_ms, "0", "10s",                      \
                         "How long further servers are tried, counted from the first attempt; 0: no limit.")
#define GATEWAY_INTERCEPT_ROW(prefix, at)                                                                       \
    GATEWAY_SWITCH_ROW(prefix "_intercept_errors", at, intercept_errors,                                        \
                       "Responses with a status from 300 on that error_page lists are replaced by the error page.")
#define GATEWAY_IGNORE_ABORT_ROW(prefix, at)                                                                    \
    GATEWAY_SWITCH_ROW(prefix "_ignore_client_abort", at, ignore_client_abort,                                  \
                       "Continue a request whose client has closed its side of the connection.")

#endif
