/*
 * Sample directives for the tests of conf: at least one of each type, in the scopes of a server; and a function that
 * reads them in the order of the server.
 */
#ifndef TESTS_CONF_SAMPLE_H
#define TESTS_CONF_SAMPLE_H

#include "conf/conf_schema.h"

struct sample_main {
    uint64_t workers;
    bool daemon;
    int use;
    uint64_t connections;
    struct {
        struct str path;
        int level;
    } error_log;
};

struct sample_site {
    struct str root;
    struct conf_words index;
    const struct template *charset;
    uint64_t keepalive_ms;
    uint64_t body_size;
    uint64_t max_headers;
    bool sendfile;
    bool internal;
    uint64_t idle_ms;               /* deprecated */
    int symlinks;
    struct str default_type;
    struct conf_templates try;
    struct conf_rows headers;       /* struct sample_header, appended */
    struct conf_rows allowed;       /* struct str, appended */
    struct conf_words more;         /* appended */
    struct {
        uint64_t rate;
        bool strict;
        uint64_t burst;             /* deprecated */
    } own;                          /* never inherited */
    unsigned checks;
};

struct sample_header {
    struct str name;
    const struct template *value;
};

struct sample_server {
    struct conf_rows listen;        /* struct str */
    struct conf_words names;
    unsigned protocols;
    struct str certificate;
};

struct sample_return {
    struct conf_words words;
};

enum { SAMPLE_MAIN, SAMPLE_SITE, SAMPLE_SERVER, SAMPLE_RETURN, SAMPLE_GROUPS };

extern const struct conf_schema sample_schema;
extern const struct variable_table sample_variables;

/* The values of the main and http scopes, of the first server and of its first location. */
struct sample_values {
    const struct conf_scope_values *main;
    const struct conf_scope_values *http;
    const struct conf_scope_values *server;
    const struct conf_scope_values *location;
};

/* Reads a tree as the server does: main, events, http, servers, nested locations. */
void sample_walk(struct conf_reader *reader, const struct conf_node *root, struct sample_values *out_values);

#endif
