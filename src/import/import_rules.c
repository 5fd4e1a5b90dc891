/*
 * The table of rules. A directive without a row is carried over unchanged if sluice has one of that name in the
 * scope, so a new directive needs a row only if its syntax differs.
 */
#include "import/import_scope.h"

#define MAIN     SCOPE_MAIN
#define EVENTS   SCOPE_EVENTS
#define HTTP     SCOPE_HTTP
#define SERVER   SCOPE_SERVER
#define LOCATION SCOPE_LOCATION
#define SITE     SCOPE_SITE
#define UPSTREAM SCOPE_UPSTREAM
#define STREAMS  (SCOPE_STREAM | SCOPE_STREAM_SERVER)
#define ANY      (~0u)

#define LEGACY_TLS "versions before TLS 1.2 are not supported (RFC 8996)"

const struct rule import_rules[] = {
    {"events", MAIN, translate_block, "events"},
    {"http", MAIN, translate_block, "http"},
    {"stream", MAIN, translate_block, "stream"},
    {"server", HTTP | SCOPE_STREAM, translate_server, NULL},
    {"location", SERVER | LOCATION, translate_location, NULL},
    {"upstream", HTTP | SCOPE_STREAM, translate_upstream, NULL},
    {"map", HTTP | SCOPE_STREAM, translate_map, NULL},
    {"geo", HTTP | SCOPE_STREAM, translate_geo, NULL},
    {"types", SITE, translate_types, NULL},
    {"if", SERVER | LOCATION, translate_if, NULL},
    {"limit_except", LOCATION, translate_limit_except, NULL},

    {"listen", SERVER | SCOPE_STREAM_SERVER, translate_listen, NULL},
    {"server_name", SERVER | SCOPE_STREAM_SERVER, translate_names, NULL},
    {"ssl", HTTP | SERVER, translate_ssl, NULL},
    {"ssl_protocols", ANY, translate_protocols, LEGACY_TLS},
    {"proxy_ssl_protocols", ANY, translate_protocols, LEGACY_TLS},
    {"allow", SITE | STREAMS, translate_access, NULL},
    {"deny", SITE | STREAMS, translate_access, NULL},

    {"root", SITE, translate_path, NULL},
    {"alias", LOCATION, translate_alias, NULL},
    {"pid", MAIN, translate_path, NULL},
    {"uwsgi_temp_path", ANY, omit_unneeded, "no files are written there"},
    {"scgi_temp_path", ANY, omit_unneeded, "no files are written there"},
    {"*_temp_path", SITE, translate_path, NULL},
    {"ssl_certificate", ANY, translate_conf_path, NULL},
    {"ssl_certificate_key", ANY, translate_conf_path, NULL},
    {"ssl_trusted_certificate", ANY, translate_conf_path, NULL},
    {"ssl_client_certificate", ANY, translate_conf_path, NULL},
    {"ssl_crl", ANY, translate_conf_path, NULL},
    {"ssl_password_file", ANY, translate_conf_path, NULL},
    {"ssl_session_ticket_key", ANY, translate_conf_path, NULL},
    {"ssl_dhparam", ANY, translate_conf_path, NULL},
    {"proxy_ssl_certificate", ANY, translate_conf_path, NULL},
    {"proxy_ssl_certificate_key", ANY, translate_conf_path, NULL},
    {"proxy_ssl_trusted_certificate", ANY, translate_conf_path, NULL},
    {"proxy_ssl_crl", ANY, translate_conf_path, NULL},
    {"proxy_ssl_password_file", ANY, translate_conf_path, NULL},
    {"auth_basic_user_file", ANY, translate_conf_path, NULL},
    {"access_log", SITE | STREAMS, translate_log, NULL},
    {"error_log", ANY, translate_error_log, NULL},
    {"log_format", HTTP | SCOPE_STREAM, translate_log_format, NULL},
    {"proxy_cache_path", HTTP, translate_cache_path, NULL},

    /* Directives with another syntax in sluice. */
    {"rewrite", SERVER | LOCATION, translate_rewrite, NULL},
    {"proxy_set_header", SITE, translate_set_header, "this field follows from the request that is passed on"},
    {"proxy_pass", LOCATION, translate_pass, NULL},
    {"grpc_pass", LOCATION, translate_grpc_pass, NULL},
    {"grpc_set_header", SITE, translate_set_header, "this field follows from the request that is passed on"},
    {"grpc_ssl_protocols", ANY, translate_protocols, LEGACY_TLS},
    {"grpc_ssl_certificate", ANY, translate_conf_path, NULL},
    {"grpc_ssl_certificate_key", ANY, translate_conf_path, NULL},
    {"grpc_ssl_trusted_certificate", ANY, translate_conf_path, NULL},
    {"grpc_ssl_crl", ANY, translate_conf_path, NULL},
    {"grpc_ssl_password_file", ANY, translate_conf_path, NULL},
    {"fastcgi_pass", LOCATION, translate_pass, NULL},
    {"fastcgi_split_path_info", SITE, translate_word, NULL},
    {"auth_basic", SITE, translate_text, NULL},
    {"limit_req", SITE, translate_limit, NULL},
    {"limit_conn", SITE | STREAMS, translate_limit, NULL},
    {"autoindex", SITE, translate_autoindex, NULL},
    {"keepalive_timeout", SITE, translate_first_time, "the Keep-Alive field is not sent"},
    {"proxy_http_version", SITE, translate_http_version, NULL},
    {"proxy_cache_valid", SITE, translate_last_time, NULL},

    {"otel_exporter", HTTP, omit_unsupported,
     "spans are sent by OTLP/HTTP, not by gRPC: write otel_exporter: {endpoint: \"http://HOST:4318\"}, with the "
     "collector's port for HTTP"},
    {"charset_types", SITE, omit_unsupported, "charset is added to all of text/*, and to nothing else"},

    /* Directives that apply to all of http in sluice. */
    {"resolver", SERVER | LOCATION, translate_in_http, NULL},
    {"resolver_timeout", SERVER | LOCATION, translate_in_http, NULL},
    {"open_file_cache", SERVER | LOCATION, translate_in_http, NULL},
    {"open_file_cache_valid", SERVER | LOCATION, translate_in_http, NULL},
    {"open_file_cache_min_uses", SERVER | LOCATION, translate_in_http, NULL},
    {"open_file_cache_errors", SERVER | LOCATION, translate_in_http, NULL},

    /* Not needed, unless sluice has a directive of that name. */
    {"accept_mutex*", ANY, omit_unneeded, "every worker has its own sockets"},
    {"aio*", ANY, omit_unneeded, "files are read without blocking anyway"},
    {"chunked_transfer_encoding", ANY, omit_unneeded, "a body of unknown length is chunked"},
    {"connection_pool_size", ANY, omit_unneeded, "the sizes of memory areas cannot be set"},
    {"directio*", ANY, omit_unneeded, "files are sent from the page cache"},
    {"gunzip_buffers", ANY, omit_unneeded, "the sizes of memory areas cannot be set"},
    {"gzip_buffers", ANY, omit_unneeded, "the sizes of memory areas cannot be set"},
    {"gzip_disable", ANY, omit_unneeded, "the browsers that needed it are obsolete"},
    {"load_module", ANY, omit_unneeded, "modules are built in: sluice -V lists them"},
    {"lock_file", ANY, omit_unneeded, "there is no lock"},
    {"log_not_found", ANY, omit_unneeded, "absent files are in the access log only"},
    {"map_hash_*", ANY, omit_unneeded, "hash tables grow as needed"},
    {"master_process", ANY, omit_unneeded, "there is always a master process"},
    {"msie_*", ANY, omit_unneeded, "the browsers that needed it are obsolete"},
    {"multi_accept", ANY, omit_unneeded, "all waiting connections are always accepted"},
    {"open_log_file_cache", ANY, omit_unneeded, "logs stay open"},
    {"output_buffers", ANY, omit_unneeded, "the sizes of memory areas cannot be set"},
    {"pcre_jit", ANY, omit_unneeded, "regular expressions are compiled to machine code where the system allows it"},
    {"postpone_output", ANY, omit_unneeded, "output is always batched"},
    {"proxy_headers_hash_*", ANY, omit_unneeded, "hash tables grow as needed"},
    {"request_pool_size", ANY, omit_unneeded, "the sizes of memory areas cannot be set"},
    {"send_lowat", ANY, omit_unneeded, "the kernel chooses the value"},
    {"sendfile_max_chunk", ANY, omit_unneeded, "the loop limits the bytes per connection and iteration"},
    {"server_names_hash_*", ANY, omit_unneeded, "hash tables grow as needed"},
    {"ssl_stapling*", ANY, omit_unneeded, "certificate authorities have ended OCSP"},
    {"subrequest_output_buffer_size", ANY, omit_unneeded, "the sizes of memory areas cannot be set"},
    {"tcp_nopush", ANY, omit_unneeded, "heads and files are always sent in full packets"},
    {"thread_pool", ANY, omit_unneeded, "blocking calls run on helper threads"},
    {"timer_resolution", ANY, omit_unneeded, "the clock is read once per loop iteration"},
    {"types_hash_*", ANY, omit_unneeded, "hash tables grow as needed"},
    {"uninitialized_variable_warn", ANY, omit_unneeded,
     "a variable that is never set is an error at load"},
    {"use", EVENTS, omit_unneeded, "the best kernel interface is selected at start"},
    {"variables_hash_*", ANY, omit_unneeded, "hash tables grow as needed"},
    {"worker_aio_requests", ANY, omit_unneeded, "the event loop has no such limit"},
    {"worker_cpu_affinity", ANY, omit_unneeded, "the kernel or the service manager assigns processes to CPUs"},
    {"worker_priority", ANY, omit_unneeded, "the service manager sets it (Nice=)"},
    {"worker_rlimit_core", ANY, omit_unneeded,
     "the service manager sets it (LimitCORE=), and sandbox forbids core dumps"},
    {"worker_rlimit_nofile", ANY, omit_unneeded, "the service manager sets it (LimitNOFILE=)"},
    {0},
};
