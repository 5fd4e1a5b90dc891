/*
 * Zones of limits as the configuration names them (limit_req_zone, limit_conn_zone), and the shared memory that the master
 * makes for each before it forks.
 */
#ifndef LIMIT_LIMIT_CONF_H
#define LIMIT_LIMIT_CONF_H

#include "base/log.h"
#include "conf/directive.h"
#include "limit/limit_zone.h"

/* The keys of the last are made of connections of `stream`, and are no keys for requests. */
enum limit_kind { LIMIT_REQUESTS, LIMIT_CONNECTIONS, LIMIT_STREAM_CONNECTIONS };

struct limit_conf {
    enum limit_kind kind;
    struct str name;
    const struct template *key;
    uint64_t size;                  /* bytes of its memory */
    uint64_t rate;                  /* LIMIT_REQUESTS: drops a millisecond */
    struct limit_zone *zone;        /* NULL until limits_open */
};

struct limits {
    struct limit_conf **items;
    size_t count;
};

/*
 * For rows: each option of a line ("name=value", or a word alone: then data of `value` is NULL) or of a map. `word` is a scalar whose text is
 * the value, for the readers of values. Returns 0, or -errno, and has said why.
 */
typedef int limit_option(struct conf_reader *reader, const struct conf_node *word, struct str name, struct str value, void *into);
MUST_CHECK int limit_options_read(struct conf_reader *reader, const struct conf_node *node, limit_option *option, void *into);

/* Rows of limit_req_zone and limit_conn_zone: a struct limit_conf *, which is also noted in reader->limits. */
directive_row limit_requests_read, limit_connections_read;
/* NULL: there is none of that kind and name. */
struct limit_conf *limits_find(const struct limits *limits, enum limit_kind kind, struct str name);

/*
 * Makes every zone. 0, or -ENOMEM: said in the log. What `before` (NULL: there is none) has under the same name, key and size goes on, whatever its rate.
 */
MUST_CHECK int limits_open(struct limits *limits, const struct limits *before, struct log *log);
/* Accepts what limits_open has not opened, or only in part. */
void limits_close(struct limits *limits);
/* The worker has died: what it had counted as open is gone. */
void limits_abandon(const struct limits *limits, unsigned worker);

#endif
