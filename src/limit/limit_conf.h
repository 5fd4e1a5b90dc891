/*
 * The zones of limit_req_zone and limit_conn_zone, and the shared memory that the master creates for each before it
 * forks.
 */
#ifndef LIMIT_LIMIT_CONF_H
#define LIMIT_LIMIT_CONF_H

#include "base/log.h"
#include "conf/directive.h"
#include "limit/limit_zone.h"

/* Keys of LIMIT_STREAM_CONNECTIONS come from connections of `stream`, not from requests. */
enum limit_kind { LIMIT_REQUESTS, LIMIT_CONNECTIONS, LIMIT_STREAM_CONNECTIONS, LIMIT_KINDS };

/* The directive of each kind, as it is shown to users. */
extern const char *const limit_kind_names[LIMIT_KINDS];

struct limit_conf {
    enum limit_kind kind;
    struct str name;
    const struct template *key;
    uint64_t size;                  /* bytes of shared memory */
    uint64_t rate;                  /* LIMIT_REQUESTS: drops per millisecond */
    struct limit_zone *zone;        /* NULL until limits_open */
};

struct limits {
    struct limit_conf **items;
    size_t count;
};

/*
 * For rows: called for each option of a line ("name=value", or a single word: data of `value` is NULL) or of a map.
 * `word` is a scalar with the value as text, for the readers of values. Returns 0, or -errno after reporting.
 */
typedef int limit_option(struct conf_reader *reader, const struct conf_node *word, struct str name, struct str value,
                         void *into);
/* Calls `option` for each option of the node. Returns 0 or the first error. */
MUST_CHECK int limit_options_read(struct conf_reader *reader, const struct conf_node *node, limit_option *option,
                                  void *into);

/* Rows of limit_req_zone and limit_conn_zone: a struct limit_conf *, also recorded in reader->limits. */
directive_row limit_requests_read, limit_connections_read;
/* The zone of that kind and name, or NULL. */
struct limit_conf *limits_find(const struct limits *limits, enum limit_kind kind, struct str name);

/*
 * Creates every zone. A zone of `before` (may be NULL) with the same name, key and size is carried over,
 * regardless of its rate. 0, or -ENOMEM (logged).
 */
MUST_CHECK int limits_open(struct limits *limits, const struct limits *before, struct log *log);
/* Accepts limits that were not opened, or only in part. */
void limits_close(struct limits *limits);
/* Called by a worker when it starts: from now on it logs damage of the zones to `log`. */
void limits_set_log(const struct limits *limits, struct log *log);
/* Called by the master when a worker has died: limit_zone_abandon for each zone that counts open requests. */
void limits_abandon(const struct limits *limits, unsigned worker);

#endif
