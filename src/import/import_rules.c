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
    {"events", MAIN, carry_block, "events"},
    {"http", MAIN, carry_block, "http"},
    {"stream", MAIN, carry_block, "stream"},
    {"server", HTTP | SCOPE_STREAM, carry_server, NULL},
    {"location", SERVER | LOCATION, carry_location, NULL},
    {"upstream", HTTP | SCOPE_STREAM, carry_upstream, NULL},
    {"map", HTTP | SCOPE_STREAM, carry_map, NULL},
    {"geo", HTTP | SCOPE_STREAM, carry_geo, NULL},
    {"types", SITE, carry_types, NULL},
    {"if", SERVER | LOCATION, carry_if, NULL},
    {"limit_except", LOCATION, carry_limit_except, NULL},

    {"listen", SERVER | SCOPE_STREAM_SERVER, carry_listen, NULL},
    {"server_name", SERVER | SCOPE_STREAM_SERVER, carry_names, NULL},
    {"ssl", HTTP | SERVER, carry_ssl, NULL},
    {"ssl_protocols", ANY, carry_protocols, LEGACY_TLS},
    {"proxy_ssl_protocols", ANY, carry_protocols, LEGACY_TLS},
    {"allow", SITE | STREAMS, carry_access, NULL},
    {"deny", SITE | STREAMS, carry_access, NULL},

    {"root", SITE, carry_path, NULL},
    {"alias", LOCATION, carry_alias, NULL},
    {"pid", MAIN, carry_path, NULL},
    {"uwsgi_temp_path", ANY, carry_needless, "no files are written there"},
    {"scgi_temp_path", ANY, carry_needless, "no files are written there"},
    {"*_temp_path", SITE, carry_path, NULL},
    {"ssl_certificate", ANY, carry_conf_path, NULL},
    {"ssl_certificate_key", ANY, carry_conf_path, NULL},
    {"ssl_trusted_certificate", ANY, carry_conf_path, NULL},
    {"ssl_client_certificate", ANY, carry_conf_path, NULL},
    {"ssl_crl", ANY, carry_conf_path, NULL},
    {"ssl_password_file", ANY, carry_conf_path, NULL},
    {"ssl_session_ticket_key", ANY, carry_conf_path, NULL},
    {"ssl_dhparam", ANY, carry_conf_path, NULL},
    {"proxy_ssl_certificate", ANY, carry_conf_path, NULL},
    {"proxy_ssl_certificate_key", ANY, carry_conf_path, NULL},
    {"proxy_ssl_trusted_certificate", ANY, carry_conf_path, NULL},
    {"proxy_ssl_crl", ANY, carry_conf_path, NULL},
    {"proxy_ssl_password_file", ANY, carry_conf_path, NULL},
    {"auth_basic_user_file", ANY, carry_conf_path, NULL},
    {"access_log", SITE | STREAMS, carry_log, NULL},
    {"error_log", ANY, carry_error_log, NULL},
    {"log_format", HTTP | SCOPE_STREAM, carry_log_format, NULL},
    {"proxy_cache_path", HTTP, carry_cache_path, NULL},

    /* Directives with another syntax in sluice. */
    {"rewrite", SERVER | LOCATION, carry_rewrite, NULL},
    {"proxy_set_header", SITE, carry_set_header, "this field follows from the request that is passed on"},
    {"proxy_pass", LOCATION, carry_pass, NULL},
    {"grpc_pass", LOCATION, carry_grpc_pass, NULL},
    {"grpc_set_header", SITE, carry_set_header, "this field follows from the request that is passed on"},
    {"grpc_ssl_protocols", ANY, carry_protocols, LEGACY_TLS},
    {"grpc_ssl_certificate", ANY, carry_conf_path, NULL},
    {"grpc_ssl_certificate_key", ANY, carry_conf_path, NULL},
    {"grpc_ssl_trusted_certificate", ANY, carry_conf_path, NULL},
    {"grpc_ssl_crl", ANY, carry_conf_path, NULL},
    {"grpc_ssl_password_file", ANY, carry_conf_path, NULL},
    {"fastcgi_pass", LOCATION, carry_pass, NULL},
    {"fastcgi_split_path_info", SITE, carry_raw, NULL},
    {"auth_basic", SITE, carry_text, NULL},
    {"limit_req", SITE, carry_limit, NULL},
    {"limit_conn", SITE | STREAMS, carry_limit, NULL},
    {"autoindex", SITE, carry_autoindex, NULL},
    {"keepalive_timeout", SITE, carry_first_time, "the Keep-Alive field is not sent"},
    {"proxy_http_version", SITE, carry_http_version, NULL},
    {"proxy_cache_valid", SITE, carry_last_time, NULL},

    {"charset_types", SITE, carry_refused, "charset is added to all of text/*, and to nothing else"},

    /* Directives that apply to all of http in sluice. */
    {"resolver", SERVER | LOCATION, carry_lifted, NULL},
    {"resolver_timeout", SERVER | LOCATION, carry_lifted, NULL},
    {"open_file_cache", SERVER | LOCATION, carry_lifted, NULL},
    {"open_file_cache_valid", SERVER | LOCATION, carry_lifted, NULL},
    {"open_file_cache_min_uses", SERVER | LOCATION, carry_lifted, NULL},
    {"open_file_cache_errors", SERVER | LOCATION, carry_lifted, NULL},

    /* Not needed, unless sluice has a directive of that name. */
    {"accept_mutex*", ANY, carry_needless, "every worker has its own sockets"},
    {"aio*", ANY, carry_needless, "files are read without blocking anyway"},
    {"chunked_transfer_encoding", ANY, carry_needless, "a body of unknown length is chunked"},
    {"connection_pool_size", ANY, carry_needless, "the sizes of memory areas cannot be set"},
    {"directio*", ANY, carry_needless, "files are sent from the page cache"},
    {"gunzip_buffers", ANY, carry_needless, "the sizes of memory areas cannot be set"},
    {"gzip_buffers", ANY, carry_needless, "the sizes of memory areas cannot be set"},
    {"gzip_disable", ANY, carry_needless, "the browsers that needed it are obsolete"},
    {"load_module", ANY, carry_needless, "modules are built in: sluice -V lists them"},
    {"lock_file", ANY, carry_needless, "there is no lock"},
    {"log_not_found", ANY, carry_needless, "absent files are in the access log only"},
    {"map_hash_*", ANY, carry_needless, "hash tables grow as needed"},
    {"master_process", ANY, carry_needless, "there is always a master process"},
    {"msie_*", ANY, carry_needless, "the browsers that needed it are obsolete"},
    {"multi_accept", ANY, carry_needless, "all waiting connections are always accepted"},
    {"open_log_file_cache", ANY, carry_needless, "logs stay open"},
    {"output_buffers", ANY, carry_needless, "the sizes of memory areas cannot be set"},
    {"pcre_jit", ANY, carry_needless, "regular expressions are compiled to machine code where the system allows it"},
    {"postpone_output", ANY, carry_needless, "output is always batched"},
    {"proxy_headers_hash_*", ANY, carry_needless, "hash tables grow as needed"},
    {"fastcgi_keep_conn", ANY, carry_needless, "the sizes of memory and connections cannot be set"},
    {"request_pool_size", ANY, carry_needless, "the sizes of memory areas cannot be set"},
    {"send_lowat", ANY, carry_needless, "the kernel chooses the value"},
    {"sendfile_max_chunk", ANY, carry_needless, "the loop limits the bytes per connection and iteration"},
    {"server_names_hash_*", ANY, carry_needless, "hash tables grow as needed"},
    {"ssl_stapling*", ANY, carry_needless, "certificate authorities have ended OCSP"},
    {"subrequest_output_buffer_size", ANY, carry_needless, "the sizes of memory areas cannot be set"},
    {"tcp_nopush", ANY, carry_needless, "heads and files are always sent in full packets"},
    {"thread_pool", ANY, carry_needless, "blocking calls run on helper threads"},
    {"timer_resolution", ANY, carry_needless, "the clock is read once per loop iteration"},
    {"types_hash_*", ANY, carry_needless, "hash tables grow as needed"},
    {"uninitialized_variable_warn", ANY, carry_needless,
     "a variable that is never set is an error at load"},
    {"use", EVENTS, carry_needless, "the best kernel interface is selected at start"},
    {"variables_hash_*", ANY, carry_needless, "hash tables grow as needed"},
    {"worker_aio_requests", ANY, carry_needless, "the event loop has no such limit"},
    {"worker_cpu_affinity", ANY, carry_needless, "the kernel or the service manager assigns processes to CPUs"},
    {"worker_priority", ANY, carry_needless, "the service manager sets it (Nice=)"},
    {"worker_rlimit_core", ANY, carry_needless,
     "the service manager sets it (LimitCORE=), and sandbox forbids core dumps"},
    {"worker_rlimit_nofile", ANY, carry_needless, "the service manager sets it (LimitNOFILE=)"},
    {0},
};
