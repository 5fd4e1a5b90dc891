/*
 * The state of one load of a configuration, shared by its parts (scopes, servers, endpoints).
 */
#ifndef SITE_LOAD_H
#define SITE_LOAD_H

#include "site/core.h"

/* A server that was read, with the data needed until its endpoints are known. */
struct loaded_server {
    struct virtual_server *server;
    const struct core_server *own;
    const struct core_ssl *ssl;
    const struct conf_scope_values *values;
    const struct conf_node *node;
    bool valid;                     /* no error in its scope and in http's */
    bool tls_checked;               /* OpenSSL's errors about its settings have been reported */
    struct str zone_name;           /* of its zone, given or made: the names made for its locations begin with it */
};

/* A table of media types, shared by every scope with equal settings. */
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
    bool valid;                     /* no error in the scope that was read last */
    bool http_valid;
    bool zones_exceeded;            /* the limit of zones was reported */
    bool unreadable;                /* parts of the file are not valid YAML: they may contain a missing directive */
};

/* Returns the loaded_server of a server. */
const struct loaded_server *load_find_server(const struct load *load, const struct virtual_server *server);

/*
 * Reads and checks a scope, and derives the values of its core_site (media types, targets of access logs). Returns
 * NULL when out of memory; errors are in load->errors.
 */
struct conf_scope_values *load_scope(struct load *load, enum conf_scope scope, const struct conf_node *node,
                                     const struct conf_scope_values *outer, const char *const *inner);

/*
 * Finds the targets and formats of `access_log` rows; those of inherited rows are already set. Returns 0 or -ENOMEM;
 * errors are in load->errors.
 */
MUST_CHECK int load_access_logs(struct load *load, const struct conf_rows *logs, const struct conf_rows *formats);
/* Returns the number of servers in the map at `node`, of `http` or `stream`; NULL: 0. */
size_t load_count_servers(const struct conf_node *node);
/* Copies a server's names in lower case. Returns 0 or -ENOMEM. */
MUST_CHECK int load_server_names(struct load *load, struct virtual_server *server, const struct conf_words *names);
/* Loads the servers of `stream` after those of http, into the room reserved by load_servers. Returns 0 or -ENOMEM. */
MUST_CHECK int load_stream(struct load *load, const struct conf_node *stream, const struct conf_scope_values *main);
/*
 * Loads the servers of `http` with their locations into load->servers and the configuration, with room for `more`
 * servers of `stream` and for that of the control socket.
 * Returns 0 or -ENOMEM.
 */
MUST_CHECK int load_servers(struct load *load, const struct conf_node *http, const struct conf_scope_values *values,
                            size_t more);
/* Loads the `upstream` blocks of `http`; called before the servers, which refer to them. Returns 0 or -ENOMEM. */
MUST_CHECK int load_upstreams(struct load *load, const struct conf_node *http, const struct conf_scope_values *values);
/* Loads one server's locations below `outer`, from the map at `node` (NULL: none). Returns 0 or -ENOMEM. */
MUST_CHECK int load_locations(struct load *load, const struct conf_node *node, struct location *outer);
/* Sets a location's values from its scope. */
void location_set_values(struct location *location, const struct conf_scope_values *values);
/* Sets the prefix that the `alias` at `node` replaces in this location. */
void location_set_alias_prefix(struct load *load, const struct conf_node *node, const struct location *location);
struct when_block;
/* load_condition.c: reads the key of a block, and sets its conditions. Returns 0, -EINVAL (reported) or -ENOMEM. */
typedef int condition_reader(struct conf_reader *reader, const struct conf_node *key, struct when_block *when);
/* A key of `when`: tests joined by "and". */
condition_reader load_conditions_read;
/* A key of `limit_except`: "GET POST", all methods except these; GET includes HEAD. */
condition_reader load_methods_read;
/*
 * Loads the blocks of `when` and `limit_except` at `node` and those of `outer` (NULL: none), each with the location as
 * modified by it. Returns 0 or -ENOMEM.
 */
MUST_CHECK int load_when_blocks(struct load *load, const struct conf_node *node, const struct location *outer,
                                struct location *location);
/*
 * Set the zones of `status_zone`: those of a server's own scope, the zone of a server of stream, or those of a
 * location of the server that was read last; `node` and `pair` are their places in the file. Called after their values
 * are set. Return 0 or -ENOMEM; errors are reported.
 */
MUST_CHECK int load_server_zone(struct load *load, const struct conf_node *node, struct loaded_server *loaded);
MUST_CHECK int load_stream_zone(struct load *load, const struct loaded_server *loaded, struct stream_server *stream);
MUST_CHECK int load_location_zone(struct load *load, const struct conf_pair *pair, struct location *location);
/* Collects the certificates of `ssl_certificate: acme` of all servers. Returns 0 or -ENOMEM; errors are reported. */
MUST_CHECK int load_acme(struct load *load);
/*
 * Makes the TLS contexts of the endpoints answer challenges of tls-alpn-01, if a certificate uses them. Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int load_acme_challenges(struct load *load);
/* Returns the certificate of a server with `ssl_certificate: acme`; NULL: it was rejected. */
const struct acme_certificate *load_acme_find(const struct load *load, const struct virtual_server *server);
/* Sets session and wire of a server's own scope and of its locations; `ssl` is the server's. */
void load_settings(const struct virtual_server *server, const struct core_ssl *ssl);
/* Adds a server, whose scope was read last, to load->servers, which has room, and to the configuration. */
struct loaded_server *load_add_server(struct load *load, const struct conf_node *node,
                                      const struct conf_scope_values *values, struct virtual_server *server);
/* Loads a server of http, with its locations, into load->servers, which has room. Returns 0 or -ENOMEM. */
MUST_CHECK int load_server(struct load *load, const struct conf_node *node, const struct conf_scope_values *http);
/*
 * Adds the server of the control socket, if there is one, into the room reserved by load_servers. It inherits nothing
 * of `http`. Returns 0 or -ENOMEM.
 */
MUST_CHECK int load_control(struct load *load, const struct conf_scope_values *main);

/* Groups servers by address: names, defaults, certificates. Returns 0 or -ENOMEM; errors are reported. */
MUST_CHECK int load_endpoints(struct load *load);
/* Sets server->tls and the interval of checks for changes from the directives of the server. Returns 0 or -ENOMEM. */
MUST_CHECK int load_tls_settings(struct load *load, const struct loaded_server *loaded);
/*
 * Creates the TLS context of each ssl endpoint; after earlier errors, when there are no endpoints, only reports
 * OpenSSL's errors about single servers. Returns 0 or -ENOMEM; errors are reported.
 */
MUST_CHECK int load_tls(struct load *load);

#endif
