/*
 * Directives of nginx that sluice does not have, with alternatives. A directive of this build takes precedence over
 * this table.
 */
#include "conf/conf_vocabulary.h"

static const struct block_word blocks[] = {
    {"events", SCOPE_EVENTS, SCOPE_MAIN, "Settings of the event loop of each worker.",
     "events: {worker_connections: 4096}"},
    {"http", SCOPE_HTTP, SCOPE_MAIN, "Settings that all HTTP servers share, and the servers.",
     "http: {server: {listen: 8080, root: www}}"},
    {"stream", SCOPE_STREAM, SCOPE_MAIN, "Servers for TCP and TLS, without HTTP.",
     "stream: {server: {listen: 5432, proxy_pass: 127.0.0.1:15432}}"},
    {"server", SCOPE_SERVER | SCOPE_STREAM_SERVER, SCOPE_HTTP | SCOPE_STREAM | SCOPE_UPSTREAM,
     "A server: one mapping, or a list of them.", "server: [{listen: 8080, server_name: a.test, root: www}]"},
    {"location", SCOPE_LOCATION, SCOPE_SERVER | SCOPE_LOCATION,
     "Settings for some paths: a mapping from a prefix, '= exact', '^~ prefix', '~ regex', '~* regex' or '@name' to "
     "directives.",
     "location: {/images/: {root: media}, = /health: {return: 200 ok}}"},
    {"upstream", SCOPE_UPSTREAM, SCOPE_HTTP | SCOPE_STREAM, "A named group of upstream servers.",
     "upstream: {backend: {server: [127.0.0.1:9001, 127.0.0.1:9002]}}"},
};

unsigned vocabulary_blocks(struct str name)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        if (str_equal(name, str_from(blocks[i].name)))
            return blocks[i].allowed_in;
    }
    return 0;
}

const struct block_word *vocabulary_block(size_t index)
{
    return index < sizeof(blocks) / sizeof(blocks[0]) ? &blocks[index] : NULL;
}

/* Directives of nginx that sluice does not have; a trailing '*' stands for a family. */
static const struct {
    const char *name;
    const char *hint;
} rejected[] = {
    {"accept_mutex*", "delete it: every worker has its own sockets"},
    {"acme_*", "use ssl_certificate: acme, and acme for the authority and the account"},
    {"add_before_body", "make the pages beforehand, or let an application add it"},
    {"add_after_body", "make the pages beforehand, or let an application add it"},
    {"add_header_inherit", "delete it: sluice help add_header states which values are inherited"},
    {"add_trailer_inherit", "delete it: sluice help add_trailer states which values are inherited"},
    {"addition_types", "make the pages beforehand, or let an application add to them"},
    {"aio*", "delete it: files are read without blocking anyway"},
    {"ancient_browser*", "use map with $http_user_agent"},
    {"api", "use status: on, which has JSON, and sluice ctl for changes"},
    {"auth_delay", "use limit_req in the same location: it delays clients that send too many requests"},
    {"auth_http*", "sluice is not a mail proxy"},
    {"auth_jwt*", "use auth_request with an application that checks the token"},
    {"auth_oidc*", "use auth_request with an application that signs users in"},
    {"auth_require*", "use when with a condition that returns 403"},
    {"break", "use 'rewrite: regex replacement break', or 'when'"},
    {"charset_map", "store the files as UTF-8: sluice does not recode"},
    {"charset_types", "delete it: charset is added to all of text/*"},
    {"chunked_transfer_encoding", "delete it: a body of unknown length is chunked"},
    {"client_body_early_read", "delete it: the conditions of sluice do not read bodies"},
    {"client_body_in_file_only",
     "use proxy_request_buffering: on, which keeps long bodies in files without names"},
    {"client_body_in_single_buffer", "delete it: sluice has no $request_body"},
    {"connection_pool_size", "delete it: the sizes of memory areas cannot be set"},
    {"create_full_put_path", "serve uploads by an application: sluice does not support WebDAV"},
    {"dav_*", "serve uploads by an application: sluice does not support WebDAV"},
    {"min_delete_depth", "serve uploads by an application: sluice does not support WebDAV"},
    {"debug_points", "delete it: use a debugger"},
    {"directio*", "delete it: files are sent from the page cache"},
    {"early_hints",
     "delete it: interim responses of upstream servers are passed on, and preload sends further ones"},
    {"empty_gif", "serve a file, or use return: 204"},
    {"env", "delete it: the environment is read at load, as ${NAME}"},
    {"epoll_events", "delete it: the event loop has no such limit"},
    {"error_log_tag", "delete it: with format=json the error log has fields of the request"},
    {"f4f*", "serve HLS or DASH as files: sluice does not split video"},
    {"fastcgi_allow_upstream", "list the permitted servers in an upstream group"},
    {"fastcgi_bind*", "let the routing table choose the address"},
    {"fastcgi_busy_buffers_size", "delete it: fastcgi_buffers limits the buffered bytes"},
    {"fastcgi_cache*",
     "use HTTP between sluice and the application, and use proxy_cache: FastCGI responses are not cached"},
    {"fastcgi_no_cache", "delete it: FastCGI responses are not cached"},
    {"fastcgi_catch_stderr", "delete it: the application's standard error goes to the error log"},
    {"fastcgi_force_ranges", "use HTTP between sluice and the application, and use proxy_force_ranges"},
    {"fastcgi_limit_rate", "use limit_rate, which limits the rate to the client"},
    {"fastcgi_pass_request_*", "delete it: the application gets body and header fields"},
    {"fastcgi_request_dynamic", "delete it: all servers of a group get the same request"},
    {"fastcgi_send_lowat", "delete it: the kernel chooses the value"},
    {"fastcgi_socket_keepalive", "delete it: timeouts find a dead connection"},
    {"fastcgi_store*",
     "let the application write the file: sluice does not store responses as files of a site"},
    {"fastcgi_temp_file_write_size", "delete it: the size of writes cannot be set"},
    {"flv", "serve the file: players request ranges"},
    {"geoip_*", "use geo with the ranges of addresses, or map of a field that a CDN adds"},
    {"geoip2*", "use geo with the ranges of addresses, or map of a field that a CDN adds"},
    {"google_perftools_profiles", "delete it: profile with perf"},
    {"grpc_allow_upstream", "list the permitted servers in an upstream group"},
    {"grpc_bind_dynamic", "delete it: each connection begins at the address of grpc_bind"},
    {"grpc_request_dynamic", "delete it: all servers of a group get the same request"},
    {"grpc_socket_keepalive", "delete it: it is always on"},
    {"grpc_ssl_certificate_cache", "delete it: certificate and key are loaded with the configuration"},
    {"grpc_ssl_key_log", "delete it: sluice does not write TLS secrets"},
    {"gunzip_buffers", "delete it: one small buffer holds the next encoded bytes"},
    {"gzip_disable", "delete it: the browsers that needed it are obsolete"},
    {"gzip_hash", "delete it: only gzip_comp_level can be set"},
    {"gzip_no_buffer", "delete it: a body is always flushed when it pauses"},
    {"gzip_window", "delete it: only gzip_comp_level can be set"},
    {"health_check_timeout", "use the parameters of health_check"},
    {"hls*", "serve HLS as files: sluice does not split video"},
    {"http2_idle_timeout", "use keepalive_timeout"},
    {"http2_max_field_size", "use large_client_header_buffers"},
    {"http2_max_header_size", "use large_client_header_buffers"},
    {"http2_max_requests", "use keepalive_requests"},
    {"http2_max_concurrent_pushes", "delete it: browsers no longer accept pushed responses; use preload"},
    {"http2_push*", "use preload: browsers no longer accept pushed responses"},
    {"http2_pool_size", "delete it: memory is taken as needed"},
    {"http2_recv_timeout", "use client_header_timeout"},
    {"http2_streams_index_size", "delete it: the table of streams has a fixed size"},
    {"http3*", "delete it: sluice does not support HTTP/3"},
    {"if", "write 'when: {condition: {directives}}'"},
    {"image_filter*", "generate the images in advance, or in an application"},
    {"imap_*", "sluice is not a mail proxy"},
    {"internal_redirect", "use try_files, whose last argument may be a named location"},
    {"js_*", "sluice runs no JavaScript: put the code behind a proxy"},
    {"json_*", "let the application read JSON: sluice does not parse it"},
    {"keepalive_disable", "delete it: the browsers that needed it are obsolete"},
    {"keepalive_min_timeout", "use keepalive_timeout"},
    {"keyval*", "use map with include:, and sluice -s reload"},
    {"limit_zone", "use limit_conn_zone"},
    {"load_module", "delete it: modules are built in, and sluice -V lists them"},
    {"lock_file", "delete it: there is no lock"},
    {"log_not_found", "delete it: absent files are in the access log only"},
    {"log_subrequest", "delete it: subrequests are not logged"},
    {"lua_*", "sluice runs no Lua: put the code behind a proxy"},
    {"mail", "sluice is not a mail proxy: use stream for the connections"},
    {"map_hash_*", "delete it: hash tables grow as needed"},
    {"master_process", "delete it: there is always a master process"},
    {"match", "use the parameters of health_check"},
    {"max_errors", "sluice is not a mail proxy"},
    {"memcached_*", "use proxy_cache: sluice does not support memcached"},
    {"mgmt", "delete it: sluice sends no usage reports"},
    {"modern_browser*", "use map with $http_user_agent"},
    {"mp4*", "serve the file: players request ranges"},
    {"mqtt*", "use proxy_pass in stream, which passes MQTT on unread"},
    {"msie_*", "delete it: the browsers that needed it are obsolete"},
    {"njs*", "sluice runs no JavaScript: put the code behind a proxy"},
    {"ntlm", "use another method of authentication: clients share connections to upstream servers"},
    {"num_map", "use map with regular expressions"},
    {"oidc_provider", "use auth_request with an application that signs users in"},
    {"open_file_cache_events", "delete it: files are checked again after open_file_cache_valid"},
    {"open_log_file_cache", "delete it: logs stay open"},
    {"override_charset", "store the files as UTF-8: sluice does not recode"},
    {"pass", "use proxy_pass in stream, with the address of that server"},
    {"pcre_jit", "delete it: regular expressions are compiled to machine code where the system allows it"},
    {"perl*", "sluice runs no Perl: put the code behind a proxy"},
    {"pop3_*", "sluice is not a mail proxy"},
    {"post_action", "use mirror"},
    {"postpone_gzipping", "delete it: gzip_min_length decides"},
    {"postpone_output", "delete it: output is always batched"},
    {"protocol", "in nginx it is a directive of the mail proxy, which sluice does not have"},
    {"proxy_allow_upstream", "list the permitted servers in an upstream group"},
    {"proxy_bind_dynamic", "delete it: each connection begins at the address of proxy_bind"},
    {"proxy_buffer", "sluice is not a mail proxy"},
    {"proxy_downstream_buffer", "use proxy_buffer_size"},
    {"proxy_headers_hash_*", "delete it: hash tables grow as needed"},
    {"proxy_pass_error_message", "sluice is not a mail proxy"},
    {"proxy_pass_trailers", "delete it: trailers are passed on"},
    {"proxy_protocol_timeout", "use preread_timeout"},
    {"proxy_request_dynamic", "delete it: all servers of a group get the same request"},
    {"proxy_requests", "delete it: UDP is not supported"},
    {"proxy_responses", "delete it: UDP is not supported"},
    {"proxy_send_lowat", "delete it: the kernel chooses the value"},
    {"proxy_session_drop", "use proxy_timeout: connections to a failed server continue"},
    {"proxy_smtp_auth", "sluice is not a mail proxy"},
    {"proxy_socket_keepalive", "delete it: timeouts find a dead connection"},
    {"proxy_ssl_certificate_cache", "delete it: certificate and key are loaded with the configuration"},
    {"proxy_ssl_key_log", "delete it: sluice does not write TLS secrets"},
    {"proxy_store*", "use proxy_cache: sluice stores responses in a cache, not as files of a site"},
    {"proxy_temp_file_write_size", "delete it: the size of writes cannot be set"},
    {"proxy_upstream_buffer", "use proxy_buffer_size"},
    {"queue", "use proxy_next_upstream: requests do not wait for a server"},
    {"quic_*", "delete it: sluice does not support HTTP/3"},
    {"random_index", "use index, or let an application choose"},
    {"read_ahead", "delete it: the kernel reads ahead"},
    {"referer_hash_*", "delete it: hash tables grow as needed"},
    {"request_pool_size", "delete it: the sizes of memory areas cannot be set"},
    {"reuseport", "delete it: every worker has its own sockets"},
    {"rewrite_log", "use sluice explain URL, which prints the effect of each rewrite"},
    {"scgi_*", "use HTTP or FastCGI between sluice and the application: sluice does not support SCGI"},
    {"secure_link_secret", "use secure_link and secure_link_sha256"},
    {"send_lowat", "delete it: it has an effect on FreeBSD only"},
    {"sendfile_max_chunk", "delete it: the loop limits the bytes per connection and iteration"},
    {"server_names_hash_*", "delete it: hash tables grow as needed"},
    {"session_log*", "use access_log with a format that contains $cookie_..."},
    {"slow_start", "write it after a server of the upstream: server: 127.0.0.1:9001 slow_start=30s"},
    {"smtp_*", "sluice is not a mail proxy"},
    {"source_charset", "store the files as UTF-8: sluice does not recode"},
    {"spdy_*", "delete it: HTTP/2 replaced SPDY"},
    {"split_clients", "use map with a regular expression of $request_id"},
    {"ssi*", "make the pages beforehand, or by an application: sluice has no server-side includes"},
    {"ssl", "write it after the port: listen: 443 ssl"},
    {"ssl_certificate_compression",
     "use ssl_conf_command: Options TxCertificateCompression, with OpenSSL 3.2 or later"},
    {"ssl_ech_file", "delete it: sluice does not support Encrypted Client Hello"},
    {"ssl_engine", "give the key as a file"},
    {"ssl_handshake_timeout", "client_header_timeout bounds the handshake, in stream preread_timeout"},
    {"ssl_key_log", "delete it: sluice does not write TLS secrets"},
    {"ssl_object_cache_inheritable", "delete it: a reload reads changed files"},
    {"ssl_ocsp*", "use ssl_crl, which names revoked certificates"},
    {"ssl_stapling*", "delete it: certificate authorities have ended OCSP"},
    {"stall_threshold", "use worker_heartbeat_timeout, after which a worker that hangs is replaced"},
    {"starttls", "sluice is not a mail proxy"},
    {"state", "use resolver: the addresses of servers come from DNS"},
    {"status_format", "use status, whose JSON has ?format=json"},
    {"sticky_cookie_insert", "use sticky"},
    {"sub_filter*", "generate the pages in advance, or in the application: sluice does not edit bodies"},
    {"subrequest_output_buffer_size", "delete it: the sizes of memory areas cannot be set"},
    {"tcp_nopush", "delete it: heads and files are always sent in full packets"},
    {"thread_pool", "delete it: blocking calls run on helper threads"},
    {"timeout", "in nginx it is a directive of the mail proxy, which sluice does not have"},
    {"timer_resolution", "delete it: the clock is read once per loop iteration"},
    {"tunnel_*", "sluice is not a forward proxy: use another program for CONNECT"},
    {"types_hash_*", "delete it: hash tables grow as needed"},
    {"uninitialized_variable_warn", "delete it: a variable that is never set is an error at load"},
    {"upstream_conf", "use sluice ctl upstreams add and remove"},
    {"usage_report", "delete it: sluice sends no usage reports"},
    {"userid*", "let the application set the cookie, or use add_header Set-Cookie with $request_id"},
    {"uwsgi_*", "use HTTP or FastCGI between sluice and the application: sluice does not support uwsgi"},
    {"valid_referers", "use when with a condition of $http_referer"},
    {"variables_hash_*", "delete it: hash tables grow as needed"},
    {"worker_aio_requests", "delete it: the event loop has no such limit"},
    {"worker_cpu_affinity", "delete it, or let the service manager do it (CPUAffinity=)"},
    {"worker_priority", "set it in the service manager (Nice=)"},
    {"worker_rlimit_core",
     "set the limit in the service manager (LimitCORE=), and sandbox without its part no_dump"},
    {"worker_rlimit_nofile", "set the limit in the service manager (LimitNOFILE=)"},
    {"working_directory", "set it in the service manager (WorkingDirectory=)"},
    {"xclient", "sluice is not a mail proxy"},
    {"xml_entities", "transform the pages beforehand, or by an application"},
    {"xslt_*", "transform the pages beforehand, or by an application"},
    {"zone_sync*", "use one machine, or let limits count on each: memory is not shared over the network"},
};

/* Names, and prefixes ('_' at the end), of directives whose modules a build may omit. */
static const char *const of_modules[] = {
    "add_",   "allow",  "auth_",       "autoindex", "brotli",   "cors",    "deny",   "expires", "fastcgi_",
    "geo",    "gunzip", "gzip",        "limit_",    "map",      "mirror",  "precompressed", "preload", "proxy_",
    "real_ip_", "return", "rewrite",   "secure_link", "security_headers", "set", "set_real_ip_from", "status",
    "stub_status", "try_files", "when", "zstd",
};

const char *vocabulary_unsupported(size_t index, const char **out_hint)
{
    if (index >= sizeof(rejected) / sizeof(rejected[0]))
        return NULL;
    *out_hint = rejected[index].hint;
    return rejected[index].name;
}

static bool pattern_matches_name(const char *pattern, struct str name)
{
    struct str own = str_from(pattern);

    if (str_ends(own, STR("*")))
        return str_starts(name, str_slice(own, 0, own.length - 1));
    return str_equal(own, name);
}

static bool is_family(struct str prefix, struct str name)
{
    return str_ends(prefix, STR("_")) ? str_starts(name, prefix) : str_equal(prefix, name);
}

/* True if the build has a directive of that family: an unknown name of the family is then a mistake in the file. */
static bool has_family(const struct conf_schema *schema, struct str prefix)
{
    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            if (is_family(prefix, str_from(directives[i].name)))
                return true;
        }
    }
    return false;
}

enum vocabulary_word vocabulary_find(const struct conf_schema *schema, struct str name, struct str *out_hint)
{
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (pattern_matches_name(rejected[i].name, name)) {
            *out_hint = str_from(rejected[i].hint);
            return VOCABULARY_UNSUPPORTED;
        }
    }
    for (size_t i = 0; i < sizeof(of_modules) / sizeof(of_modules[0]); i++) {
        struct str family = str_from(of_modules[i]);

        if (is_family(family, name) && !has_family(schema, family)) {
            *out_hint = STR("sluice -V lists the modules of this build");
            return VOCABULARY_LEFT_OUT;
        }
    }
    return VOCABULARY_UNKNOWN;
}
