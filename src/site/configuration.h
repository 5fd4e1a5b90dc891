/*
 * The configuration as the server uses it: typed, resolved, immutable, in one arena with the lifetime of its
 * generation of workers. Built by configuration.c from the tree (conf/conf_tree.h) with the directive tables of the
 * core and of the modules.
 */
#ifndef SITE_CONFIGURATION_H
#define SITE_CONFIGURATION_H

#include "acme/acme.h"
#include "base/log.h"
#include "base/status_zone.h"
#include "cache/cache_conf.h"
#include "conf/conf_schema.h"
#include "http/mime.h"
#include "http/protocol.h"
#include "io/file_cache.h"
#include "io/listener.h"
#include "limit/limit_conf.h"
#include "log/error_log.h"
#include "otlp/otlp.h"
#include "site/user_variables.h"
#include "tls/tls_context.h"
#include "upstream/upstream.h"
#include "wire/wire.h"

struct access_log_target;           /* log/access_log.h */
struct media_table;

/* The groups of the core, first in every scope's values; the modules' follow in the order of module_table. */
enum core_group { CORE_MAIN, CORE_HTTP, CORE_SITE, CORE_SERVER, CORE_SSL, CORE_UPSTREAM, CORE_STREAM, CORE_STREAM_TLS,
                 CORE_HTTP2, CORE_GROUPS };

/* Directives of the main and events scopes. */
struct core_main {
    uint64_t worker_processes;              /* 0: auto */
    uint64_t worker_connections;
    uint64_t connections_per_address;       /* of one worker; 0: unlimited */
    uint64_t worker_shutdown_timeout_ms;
    uint64_t worker_heartbeat_timeout_ms;   /* 0: off */
    bool daemon;
    struct str pid;
    struct str user;                        /* user name, or empty: no change */
    struct str group;
    struct error_log_settings error_log;
    struct conf_rows debug_connections;     /* struct cidr */
    int use;                                /* 0 auto, 1 io_uring, 2 epoll: see configuration_backend */
    int aead;                               /* enum tls_aead */
    unsigned sandbox;                       /* bit i: enum sandbox_part i */
    struct core_control {
        struct listen_address address;
        struct str text;                    /* the address in canonical form; empty: none */
        struct conf_mark mark;
    } control;
    struct str prefix;
};

/* `satisfy` and `error_page_format`. */
enum satisfy { SATISFY_ALL, SATISFY_ANY };
enum error_format { ERROR_AUTO, ERROR_HTML, ERROR_JSON, ERROR_TEXT };

/* `status_zone` in one scope. */
struct status_zone_setting {
    struct str text;                /* as written */
    struct str name;                /* the name of this scope's zone; empty: none is given */
    bool made;                      /* on: zones of this scope and of inner ones without a name get one */
};

/* Directives common to http, server and location. */
struct core_site {
    const struct template *root;    /* NULL: none; absolute, or begins with a variable */
    struct {
        /* NULL: none; else it replaces root. */
        const struct template *path;
        struct str prefix;          /* the prefix of the URI that the alias replaces */
        bool whole;                 /* in a regular expression location: the alias is the whole path */
    } alias;
    uint64_t keepalive_timeout_ms;
    uint64_t keepalive_requests;
    uint64_t keepalive_time_ms;
    uint64_t send_timeout_ms;
    uint64_t client_header_timeout_ms;
    uint64_t client_body_timeout_ms;
    uint64_t client_min_rate;       /* bytes per second; 0: no minimum */
    uint64_t client_header_buffer_size;
    uint64_t large_header_count, large_header_size;
    uint64_t client_max_body_size;
    uint64_t client_body_buffer_size;
    uint64_t max_headers;
    int lingering_close;            /* enum: off, on, always */
    int error_page_format;          /* enum error_format */
    int satisfy;                    /* enum satisfy */
    uint64_t lingering_time_ms;
    uint64_t lingering_timeout_ms;
    uint64_t output_buffer_count, output_buffer_size;
    bool merge_slashes, underscores_in_headers, server_tokens, sendfile, tcp_nodelay, internal, recursive_error_pages;
    bool reset_timedout_connection;
    bool absolute_redirect, port_in_redirect, server_name_in_redirect;
    struct conf_rows types;         /* struct media_type, as in the file; NULL items: only the built-in types */
    struct str default_type;        /* empty: not set */
    struct str charset;             /* "off" or a name; data NULL: not set, then utf-8, only for the types of `mime` */
    struct mime mime;               /* built from the three above, with charset; shared by scopes with equal settings */
    struct core_symlinks {
        int policy;                 /* enum symlinks */
        /* Symbolic links in this prefix of a file's path are not checked; NULL: all are. */
        const struct template *from;
    } disable_symlinks;
    struct status_zone_setting status_zone;
    struct conf_rows error_pages;   /* struct error_page, site/core.h */
    struct conf_rows access_logs;   /* struct access_log_row, log/access_log.h */
};

enum location_kind { LOCATION_PREFIX, LOCATION_EXACT, LOCATION_PREFIX_FINAL /* ^~ */, LOCATION_NAMED /* @name */,
                    LOCATION_REGEX };

/* Where the requests of a location are counted (`status_zone`); at least one is not NULL. */
struct location_zones {
    const struct status_zone *server, *location;
};

struct location {
    enum location_kind kind;
    struct str pattern;
    const struct capture *regex;        /* LOCATION_REGEX, else NULL */
    const struct core_site *site;
    struct session_settings session;    /* settings of the session */
    struct wire_settings wire;
    void *const *module_conf;           /* by index in module_table; points into values */
    uint64_t handlers, filtering;       /* the modules to call here: bit i is module_table[i] */
    /* Of `handlers`, those with a server_rule; 0 if no SERVER_RULE_RESPONDS is among them. */
    uint64_t rules;
    /* Modules with `finish`: an exchange may have called them in another location. */
    uint64_t finishing;
    struct location **inner;            /* nested locations: exact ones first, then the longest prefix */
    size_t inner_count;
    struct location **patterns;         /* nested regular expressions, in the order of the file */
    size_t pattern_count;
    struct when_block *when_blocks;     /* each with this location as modified by it: site/when.h */
    size_t when_block_count;
    bool nested;                        /* false: a server's own scope */
    const struct location_zones *zones; /* NULL: requests are not counted in zones */
    const struct conf_scope_values *values;
};

struct stream_server;               /* site/core_stream.h */

struct virtual_server {
    struct conf_words names;            /* in lower case, except regular expressions */
    struct str name;                    /* the first one, for $server_name; may be empty */
    const struct capture **patterns;    /* names that are regular expressions */
    size_t pattern_count;
    struct location *root;              /* the server's own scope: used if no location matches; NULL in `stream` */
    struct stream_server *stream;       /* NULL in `http` */
    struct tls_settings tls;            /* used if one of its endpoints has `ssl` */
    uint64_t files_stamp;               /* of the files that tls was loaded from: tls_files_stamp */
    uint64_t files_rejected;            /* tls_files_stamp of the last files that were rejected */
    uint64_t files_valid_ms;            /* interval of checks for changes; 0: no checks */
    /* The server of the control socket: only modules with `control` handle its requests. */
    bool control;
};

/* One listening address with the servers on it. */
struct endpoint {
    struct listen_address address;
    struct str text;                    /* the address in canonical form */
    struct conf_mark mark;              /* its first `listen` */
    bool ssl;
    bool proxy_protocol;                /* every connection starts with a PROXY protocol header */
    bool has_default;                   /* a server has default_server */
    bool control;                       /* the socket of `control`: mode 0600 */
    uint64_t backlog;
    struct virtual_server **servers;    /* the default server (marked default_server, else the first) is servers[0] */
    size_t server_count;
    struct table exact;                 /* names -> struct virtual_server */
    struct table leading;               /* ".example.com" of "*.example.com" and ".example.com" */
    struct table trailing;              /* "www.example." of "www.example.*" */
    struct virtual_server **patterns;   /* those with regular expressions among their names, in the order of the file */
    size_t pattern_count;
    struct tls_context *tls;            /* NULL for plain */
    bool tls_borrowed;                  /* owned by another endpoint with the same servers */
};

struct configuration {
    struct arena arena;
    struct core_main *main;
    struct endpoint *endpoints;
    size_t endpoint_count;
    struct virtual_server **servers;
    size_t server_count;
    struct user_variables user_variables,
    stream_user_variables;                  /* variables defined by the file in http and in stream */
    struct caches caches;                   /* of proxy_cache_path */
    struct conf_words directories;          /* directories of temporary files */
    struct limits limits;                   /* of limit_req_zone and limit_conn_zone */
    struct session_caches session_caches;   /* of ssl_session_cache */
    struct status_zones zones;              /* of status_zone */
    struct acme acme;                       /* certificates of `ssl_certificate: acme` */
    struct otlp otlp;                       /* export of spans: otel_exporter */
    struct upstreams upstreams;             /* blocks, and addresses in proxy_pass */
    struct str hostname;                    /* of this machine, for $hostname */
    struct access_log_target **access_logs; /* every distinct target, opened by the master */
    size_t access_log_count;
    unsigned access_log_selections;         /* rows of `access_log` with `if` or `sample` */
    struct conf_node *tree;                 /* for -T */
    struct media_table *media_tables;       /* of all scopes; private to configuration.c */
    struct file_cache_limits file_cache;
    int64_t loaded_s;                       /* since the epoch */
    /* Set by the master: 1 for the first configuration, and one more for each reload. */
    uint64_t number;
};

struct configuration_source {
    struct str path;                /* file, or empty when `text` is given */
    struct str text;                /* in memory (sluice serve) */
    struct str prefix;              /* -p */
    struct str overlay;             /* -g, or empty */
    bool test_only;
    /*
     * Called once with the errors, which are also printed; `configuration` is NULL if the file has no valid tree. May
     * be NULL.
     */
    void (*report)(void *owner, const struct configuration *configuration, const struct conf_errors *errors);
    void *owner;
};

/*
 * Loads and checks a configuration. Returns NULL on failure, with all diagnostics in `out_diagnostics`; warnings are
 * possible on success, too. Opens no socket and no log; reads certificates (errors are reported at their directive).
 */
struct configuration *configuration_load(const struct configuration_source *source, struct log *log,
                                         struct buffer *out_diagnostics);
/* Accepts NULL. */
void configuration_destroy(struct configuration *configuration);

/* Returns the name for loop_open: "auto", "io_uring", "epoll". */
const char *configuration_backend(const struct configuration *configuration);
/* Returns file, line and column of `use`; file NULL: not set. */
struct conf_mark configuration_backend_mark(const struct configuration *configuration);

/*
 * Checks `ssl_ktls: on`. Returns 0, or -ENOTSUP with one log line that names server, reason and remedy. Called after
 * the probe.
 */
MUST_CHECK int configuration_check_ktls(const struct configuration *configuration, const struct ktls_support *support,
                                        struct log *log);

/* Returns all groups of this build (core, ssl, logs, and each module) for `schema`, `help` and the reference. */
const struct conf_schema *configuration_schema(void);

#endif
