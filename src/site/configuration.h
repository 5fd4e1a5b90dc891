/*
 * The configuration as the server uses it: typed, resolved, immutable, in one
 * arena that lives and dies with its generation of workers. Built by
 * configuration.c from the tree (conf/conf_tree.h) by the tables of the core and of
 * the modules.
 */
#ifndef SITE_CONFIGURATION_H
#define SITE_CONFIGURATION_H

#include "base/log.h"
#include "cache/cache_conf.h"
#include "conf/conf_schema.h"
#include "http/mime.h"
#include "http/protocol.h"
#include "io/file_cache.h"
#include "io/listener.h"
#include "limit/limit_conf.h"
#include "site/user_variables.h"
#include "tls/tls_context.h"
#include "upstream/upstream.h"
#include "wire/wire.h"

struct access_log_target;           /* log/access_log.h */
struct media_table;

/* The groups of the core, first in every scope's values; the modules' follow in the order of module_table. */
enum core_group { CORE_MAIN, CORE_HTTP, CORE_SITE, CORE_SERVER, CORE_SSL, CORE_UPSTREAM, CORE_STREAM, CORE_STREAM_TLS, CORE_GROUPS };

/* Directives of the main and events scopes. */
struct core_main {
    uint64_t worker_processes;      /* 0: auto */
    uint64_t worker_connections;
    uint64_t connections_per_address; /* of one worker; 0: as many as it likes */
    uint64_t worker_shutdown_timeout_ms;
    bool daemon;
    struct str pid;
    struct str user;                /* name, or empty: stay */
    struct str group;
    struct {
        struct str path;            /* a file, "stderr", or "syslog"-like words are refused */
        int level;                  /* enum log_level */
    } error_log;
    int use;                        /* 0 auto, 1 io_uring, 2 epoll: see configuration_backend */
    struct str prefix;
};

/* `satisfy` and `error_page_format`. */
enum satisfy { SATISFY_ALL, SATISFY_ANY };
enum error_format { ERROR_AUTO, ERROR_HTML, ERROR_JSON, ERROR_TEXT };

/* Directives that http, server and location share. */
struct core_site {
    const struct template *root;    /* NULL: none; absolute, or begins with a variable */
    struct {
        const struct template *path; /* NULL: none; else it stands in the place of root */
        struct str prefix;          /* what it takes the place of at the beginning of the URI */
        bool whole;                 /* of a location that is a regular expression: it is the whole path */
    } alias;
    uint64_t keepalive_timeout_ms;
    uint64_t keepalive_requests;
    uint64_t keepalive_time_ms;
    uint64_t send_timeout_ms;
    uint64_t client_header_timeout_ms;
    uint64_t client_body_timeout_ms;
    uint64_t client_min_rate;       /* bytes a second; 0: as slow as it likes */
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
    struct conf_rows types;         /* struct media_type, as the file says; NULL items: the built-in ones alone */
    struct str default_type;        /* empty: not set */
    struct str charset;             /* "off" or a name */
    struct mime mime;               /* made of the three, charset included; shared between scopes that agree */
    struct {
        int policy;                 /* enum symlinks */
        const struct template *from; /* links in this beginning of a file's path are not looked at; NULL: all are */
    } disable_symlinks;
    struct conf_rows error_pages;   /* struct error_page, site/core.h */
    struct conf_rows access_logs;   /* struct access_log_row, log/access_log.h */
};

enum location_kind { LOCATION_PREFIX, LOCATION_EXACT, LOCATION_PREFIX_FINAL /* ^~ */, LOCATION_NAMED /* @name */, LOCATION_REGEX };

struct location {
    enum location_kind kind;
    struct str pattern;
    const struct capture *regex;    /* LOCATION_REGEX, else NULL */
    const struct core_site *site;
    struct session_settings session; /* what the site says, as the layers below want it told */
    struct wire_settings wire;
    void *const *module_conf;       /* by index in module_table; points into values */
    uint64_t answering, filtering;    /* the modules that have something to do here: bit i is module_table[i] */
    uint64_t rules;                 /* of `answering`, those with a server_rule; 0 where none of them decides */
    uint64_t finishing;             /* those that are told of the end: an exchange may have met them elsewhere */
    struct location **inner;        /* locations inside: exact ones first, then the longest prefix */
    size_t inner_count;
    struct location **patterns;     /* those that are regular expressions, in the order of the file */
    size_t pattern_count;
    struct when *whens;             /* conditions, and this location as it is where they hold: site/when.h */
    size_t when_count;
    bool nested;                    /* false: a server's own scope */
    const struct conf_scope_values *values;
};

struct stream_server;               /* site/core_stream.h */

struct virtual_server {
    struct conf_words names;        /* as written, lower case */
    struct str name;                /* the first one, for $server_name; empty where there is none */
    const struct capture **patterns; /* names that are regular expressions */
    size_t pattern_count;
    struct location *root;          /* the server's own scope: answers where no location matches; NULL in `stream` */
    struct stream_server *stream;   /* NULL in `http` */
    struct tls_settings tls;        /* zeroed where none of its endpoints is ssl */
    uint64_t files_stamp;           /* of the files that tls was loaded from: tls_files_stamp */
    uint64_t files_refused;         /* of those that were looked at last */
    uint64_t files_valid_ms;        /* how long they are taken for unchanged; 0: for ever */
};

/* One listening address with the servers that share it. */
struct endpoint {
    struct listen_address address;
    struct str text;                /* the address in its one spelling */
    struct conf_mark mark;          /* where it is first listened on */
    bool ssl;
    bool proxy_protocol;            /* every connection begins with its header */
    bool has_default;               /* a server said default_server */
    uint64_t backlog;
    struct virtual_server **servers; /* the first, or the one marked default_server, is servers[0] */
    size_t server_count;
    struct table exact;             /* names -> struct virtual_server; empty where there is but one server */
    struct table leading;           /* ".example.com" of "*.example.com" and ".example.com" */
    struct table trailing;          /* "www.example." of "www.example.*" */
    struct virtual_server **patterns; /* those that have regular expressions among their names, in the order of the file */
    size_t pattern_count;
    struct tls_context *tls;        /* NULL for plain */
    bool tls_borrowed;              /* another endpoint with the same servers owns it */
};

struct configuration {
    struct arena arena;
    struct core_main *main;
    struct endpoint *endpoints;
    size_t endpoint_count;
    struct virtual_server **servers;
    size_t server_count;
    struct user_variables user_variables, stream_user_variables; /* what the file itself names in http, and in stream */
    struct caches caches;           /* of proxy_cache_path */
    struct conf_words folders;      /* of temporary files */
    struct limits limits;           /* of limit_req_zone and limit_conn_zone */
    struct session_stores sessions; /* of ssl_session_cache */
    struct upstreams upstreams;     /* blocks, and the addresses of proxy_pass */
    struct str hostname;            /* of this machine, for $hostname */
    struct access_log_target **access_logs; /* every distinct target, opened by the master */
    size_t access_log_count;
    struct conf_node *tree;         /* for -T */
    struct media_table *media_tables; /* of all scopes; configuration.c's own */
    struct file_cache_limits file_cache;
};

struct configuration_source {
    struct str path;                /* file, or empty when `text` is given */
    struct str text;                /* in memory (sluice serve) */
    struct str prefix;              /* -p */
    struct str overlay;             /* -g, or empty */
    bool test_only;
    /* Told once what is wrong, besides the printing, while there is a configuration at all (NULL: not even a tree); may be NULL. */
    void (*report)(void *owner, const struct configuration *configuration, const struct conf_errors *errors);
    void *owner;
};

/*
 * Loads and checks. On failure NULL, with all diagnostics printed into `out_diagnostics`; warnings may be there on success too.
 * Opens no socket and no log; reads certificates (errors point at the directive's place).
 */
struct configuration *configuration_load(const struct configuration_source *source, struct log *log, struct buffer *out_diagnostics);
/* Accepts NULL. */
void configuration_destroy(struct configuration *configuration);

/* The name for loop_open: "auto", "io_uring", "epoll". */
const char *configuration_backend(const struct configuration *configuration);
/* Where `use` stands; file NULL: nowhere. */
struct conf_mark configuration_backend_mark(const struct configuration *configuration);

/*
 * `ssl_ktls: on` refuses to start without: 0, or -ENOTSUP with one line in the log that names server, reason and way out. To be
 * called once the probe has answered.
 */
MUST_CHECK int configuration_check_ktls(const struct configuration *configuration, const struct ktls_support *support, struct log *log);

/* All groups of this build: core, ssl, logs, and each module: for `schema`, `help` and the reference. */
const struct conf_schema *configuration_schema(void);

#endif
