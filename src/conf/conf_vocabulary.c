/*
 * Tables only: what people's existing files contain. A directive that a module of
 * this build declares is found before anything here is asked.
 */
#include "conf/conf_vocabulary.h"

static const struct block_word blocks[] = {
    {"events", SCOPE_EVENTS, SCOPE_MAIN, "What concerns the loop of each worker.",
     "events: {worker_connections: 4096}"},
    {"http", SCOPE_HTTP, SCOPE_MAIN, "What all servers of HTTP share, and the servers themselves.",
     "http: {server: {listen: 8080, root: www}}"},
    {"stream", SCOPE_STREAM, SCOPE_MAIN, "Servers below HTTP: TCP and TLS.",
     "stream: {server: {listen: 5432, proxy_pass: 127.0.0.1:15432}}"},
    {"server", SCOPE_SERVER | SCOPE_STREAM_SERVER, SCOPE_HTTP | SCOPE_STREAM | SCOPE_UPSTREAM,
     "A server: one mapping, or a list of them.", "server: [{listen: 8080, server_name: a.test, root: www}]"},
    {"location", SCOPE_LOCATION, SCOPE_SERVER | SCOPE_LOCATION,
     "What holds for some paths: a mapping from a prefix, '= exact', '^~ prefix', '~ regex', '~* regex' or '@name' to "
     "directives.",
     "location: {/images/: {root: media}, = /health: {return: 200 ok}}"},
    {"upstream", SCOPE_UPSTREAM, SCOPE_HTTP | SCOPE_STREAM, "Servers that requests are passed to, by name.",
     "upstream: {backend: {server: [127.0.0.1:9001, 127.0.0.1:9002]}}"},
};

unsigned vocabulary_blocks(struct str name)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        if (str_equal(name, str_from(blocks[i].name)))
            return blocks[i].stands;
    }
    return 0;
}

const struct block_word *vocabulary_block(size_t index)
{
    return index < sizeof(blocks) / sizeof(blocks[0]) ? &blocks[index] : NULL;
}

/* Known and not carried; a name that ends with '*' stands for its family. */
static const struct {
    const char *name;
    const char *hint;
} refused[] = {
    {"if", "write 'when: {condition: {directives}}': sluice has no if"},
    {"break", "use 'rewrite: regex replacement break', or 'when': sluice has no break of its own"},
    {"ssl_stapling*", "delete it: certificate authorities have ended OCSP"},
    {"ssl_ocsp*", "delete it: certificate authorities have ended OCSP; ssl_crl names revoked certificates"},
    {"ssl_handshake_timeout", "client_header_timeout bounds the handshake, in stream preread_timeout"},
    {"ssl", "write it behind the port: listen: 443 ssl"},
    {"ssi*",
     "sluice has no server-side includes: make the pages beforehand, or serve them by an application"},
    {"perl*", "sluice runs no Perl: put the code behind a proxy"},
    {"js_*", "sluice runs no JavaScript: put the code behind a proxy"},
    {"lua_*", "sluice runs no Lua: put the code behind a proxy"},
    {"uwsgi_*", "sluice does not speak uwsgi: let the application speak HTTP"},
    {"scgi_*", "sluice does not speak SCGI: let the application speak HTTP"},
    {"memcached_*", "sluice does not speak memcached"},
    {"proxy_store*", "use proxy_cache: sluice keeps answers in a cache, not as files of a site"},
    {"fastcgi_store*", "let the application write the file: sluice does not keep answers as files of a site"},
    {"mail", "sluice is no mail proxy"},
    {"load_module", "modules are built in: see sluice -V"},
    {"aio*", "delete it: files are read without blocking anyway"},
    {"directio*", "delete it: files leave from the page cache"},
    {"tcp_nopush", "delete it: heads and files leave in full packets anyway"},
    {"accept_mutex*", "delete it: every worker has sockets of its own"},
    {"worker_cpu_affinity", "delete it, or let the service manager do it"},
    {"worker_rlimit_nofile", "set the limit in the service manager (LimitNOFILE=)"},
    {"worker_rlimit_core", "set the limit in the service manager (LimitCORE=)"},
    {"sendfile_max_chunk", "delete it: no connection takes the loop for itself"},
    {"slow_start", "write it behind a server of the upstream: server: 127.0.0.1:9001 slow_start=30s"},
    {"reuseport", "delete it: every worker has sockets of its own"},
    {"gunzip_buffers", "delete it: one small buffer holds what leaves next"},
    {"http3*", "delete it: sluice does not speak HTTP/3"},
    {"quic_*", "delete it: sluice does not speak HTTP/3"},
    {"types_hash_*", "delete it: tables size themselves"},
    {"server_names_hash_*", "delete it: tables size themselves"},
    {"variables_hash_*", "delete it: tables size themselves"},
    {"map_hash_*", "delete it: tables size themselves"},
};

/* Words of modules that a build may leave out, and of HTTP/2. */
static const char *const coming[] = {
    "add_header",
    "add_trailer",
    "allow",
    "auth_basic",
    "auth_basic_user_file",
    "auth_request",
    "auth_request_set",
    "autoindex*",
    "brotli*",
    "cors*",
    "deny",
    "expires",
    "fastcgi_*",
    "geo",
    "gunzip",
    "gzip*",
    "http2*",
    "limit_*",
    "map",
    "mirror*",
    "precompressed",
    "preload",
    "proxy_*",
    "real_ip_*",
    "return",
    "rewrite",
    "secure_link*",
    "security_headers",
    "set",
    "set_real_ip_from",
    "status",
    "stub_status",
    "try_files",
    "when",
    "zstd*",
};

const char *vocabulary_refused(size_t index, const char **out_hint)
{
    if (index >= sizeof(refused) / sizeof(refused[0]))
        return NULL;
    *out_hint = refused[index].hint;
    return refused[index].name;
}

static bool matches(const char *pattern, struct str name)
{
    struct str own = str_from(pattern);

    if (str_ends(own, STR("*")))
        return str_starts(name, str_slice(own, 0, own.length - 1));
    return str_equal(own, name);
}

struct str vocabulary_missing(struct str name)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (matches(refused[i].name, name))
            return str_from(refused[i].hint);
    }
    for (size_t i = 0; i < sizeof(coming) / sizeof(coming[0]); i++) {
        if (matches(coming[i], name))
            return STR("this build of sluice does not carry it; sluice -V lists the modules it has");
    }
    return (struct str){NULL, 0};
}
