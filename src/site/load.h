/*
 * One load of a configuration: what its parts (scopes, servers, endpoints) share while it lasts.
 */
#ifndef SITE_LOAD_H
#define SITE_LOAD_H

#include "site/core.h"

/* A server as it was read, with what it needs until its endpoints are known. */
struct loaded_server {
    struct virtual_server *server;
    const struct core_server *own;
    const struct core_ssl *ssl;
    const struct conf_scope_values *values;
    const struct conf_node *node;
    bool sound;                     /* its scope and http's were read without a mistake */
    bool tls_checked;                    /* what OpenSSL says of its settings was told */
};

/* A table of media types, shared by every scope that agrees on them. */
struct media_table {
    struct table table;
    struct media_table *next;
};

struct load {
    struct configuration *configuration;
    const struct conf_schema *schema;
    struct conf_reader reader;
    struct conf_errors *errors;
    struct log *log;
    const struct core_http *http;
    struct loaded_server *servers;
    size_t server_count;
    bool sound;                     /* the scope that was read last had no mistake */
    bool sound_http;
    bool unreadable;                /* parts of the file are no YAML: what is missing may stand there */
};

/* What was read of a server. */
const struct loaded_server *load_find_server(const struct load *load, const struct virtual_server *server);

/*
 * Reads a scope, checks it, and makes what its core_site needs (media types, targets of access logs). NULL when out of memory;
 * mistakes are in load->errors.
 */
struct conf_scope_values *load_scope(struct load *load, enum conf_scope scope, const struct conf_node *node,
                                     const struct conf_scope_values *outer, const char *const *inner);

/* Finds the targets and formats of `access_log` rows; those that are inherited have theirs. 0 or -ENOMEM; mistakes are in load->errors. */
MUST_CHECK int load_access_logs(struct load *load, const struct conf_rows *logs, const struct conf_rows *formats);
/* Servers in the map at `node`, of `http` or `stream`; NULL: none. */
size_t load_count(const struct conf_node *node);
/* Lower-case copies of a server's names. 0 or -ENOMEM. */
MUST_CHECK int load_names(struct load *load, struct virtual_server *server, const struct conf_words *names);
/* The servers of `stream` beside those of http, for which there is room. 0 or -ENOMEM. */
MUST_CHECK int load_stream(struct load *load, const struct conf_node *stream, const struct conf_scope_values *main);
/* The servers of `http` with their locations, into load->servers and the configuration, where `more` will follow. 0 or -ENOMEM. */
MUST_CHECK int load_servers(struct load *load, const struct conf_node *http, const struct conf_scope_values *values, size_t more);
/* The `upstream` blocks of `http`, into the configuration: before the servers, which name them. 0 or -ENOMEM. */
MUST_CHECK int load_upstreams(struct load *load, const struct conf_node *http, const struct conf_scope_values *values);
/* One server's locations below `outer`, from the map at `node` (NULL: none). 0 or -ENOMEM. */
MUST_CHECK int load_locations(struct load *load, const struct conf_node *node, struct location *outer);
/* What a location is made of, from its scope. */
void load_take_values(struct location *location, const struct conf_scope_values *values);
/* What the `alias` written at `node` takes the place of in this location. */
void load_place_alias(struct load *load, const struct conf_node *node, const struct location *location);
/* The conditions at `node` and those of `outer` (NULL: none), each with the location laid over. 0 or -ENOMEM. */
MUST_CHECK int load_whens(struct load *load, const struct conf_node *node, const struct location *outer,
                          struct location *location);
/* Fills session and wire of a location and of those inside it; `ssl` is its server's. */
void load_settings(struct location *location, const struct core_ssl *ssl);

/* Brings servers together by their addresses; names, defaults, certificates. 0 or -ENOMEM; mistakes are reported. */
MUST_CHECK int load_endpoints(struct load *load);
/*
 * The TLS context of each ssl endpoint; where mistakes were made already, and so there are no endpoints, what OpenSSL
 * thinks of the servers that can be tls_checked. 0 or -ENOMEM; mistakes are reported.
 */
MUST_CHECK int load_tls(struct load *load);

#endif
