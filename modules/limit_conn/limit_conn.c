/*
 * `limit_conn`: limits the concurrent requests per key, over all workers, or the connections of `stream`. A request
 * counts from its header to the end of its response or its abort; a connection counts from the selection of its virtual
 * server to its end. The master releases the counts of a worker that died.
 */
#include "base/table.h"
#include "limit/limit_use.h"
#include "server/module.h"
#include "stream/stream_module.h"

#include <errno.h>
#include <stddef.h>

struct limit_conn_row {
    struct limit_use use;
    uint64_t max;
};

struct limit_conn_conf {
    struct conf_rows zones;  /* struct limit_conf * */
    struct conf_rows limits; /* struct limit_conn_row */
    struct limit_rejection rejection;
};

enum limit_conn_status { PASSED, REJECTED, REJECTED_DRY_RUN };

struct zone_use {
    struct limit_zone *zone;
    uint64_t key;
};

struct counted_connection {
    enum limit_conn_status status;
    size_t count;
    struct zone_use uses[];
};

#define AT(field) offsetof(struct limit_conn_conf, field)
#define HINT      STR("write: limit_conn: addr 10")

extern const struct module module_limit_conn;

static int read_zone_limit(struct limit_conn_row *row, struct conf_reader *reader, const struct conf_node *node,
                           struct str name, struct str number)
{
    row->use.name = name;
    row->use.mark = node->mark;
    if (str_to_u64(number, &row->max) == 0 && row->max > 0 && row->max <= UINT32_MAX)
        return 0;
    conf_error(reader->errors, node->mark, HINT, "\"" STR_FMT "\" is not a number of connections",
               STR_ARG(number));
    return -EINVAL;
}

/* "addr 10", or {addr: 10} */
static int read_limit(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct conf_words words;
    struct str number;
    int error;

    if (node->kind == CONF_MAP && node->count == 1) {
        error = conf_read_text(reader, node->pairs[0].value, &number);
        return error < 0 ? error : read_zone_limit(out, reader, node, node->pairs[0].key->text, number);
    }
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count == 2)
        return read_zone_limit(out, reader, node, words.items[0], words.items[1]);
    conf_error(reader->errors, node->mark, HINT, "limit_conn takes a zone and a number");
    return -EINVAL;
}

static int check_limits(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    const struct limit_conn_conf *own = conf;
    bool streams = reader->scope == SCOPE_STREAM || reader->scope == SCOPE_STREAM_SERVER;

    return limit_uses_find(reader, streams ? LIMIT_STREAM_CONNECTIONS : LIMIT_CONNECTIONS, &own->limits,
                           sizeof(struct limit_conn_row));
}

static const struct directive directives[] = {
    {.name = "limit_conn_zone",
     .scopes = SCOPE_HTTP | SCOPE_STREAM,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(zones),
     .row_size = sizeof(struct limit_conf *),
     .row = limit_connections_read,
     .syntax = "key zone=name:size",
     .example = "limit_conn_zone: \"$binary_remote_addr zone=addr:10m\"",
     .schema = "{\"type\": [\"string\", \"object\"]}",
     .help = "A zone for limit_conn: the key by which concurrent requests, or in stream connections, are counted "
             "(an empty key is not limited), a name, and the size of the memory that all workers share."},
    {.name = "limit_conn",
     .scopes = SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(limits),
     .row_size = sizeof(struct limit_conn_row),
     .row = read_limit,
     .syntax = "zone number",
     .example = "limit_conn: addr 10",
     .schema = "{\"type\": [\"string\", \"object\"]}",
     .help = "The maximum number of concurrent requests, or in stream connections, of one key. If the zone is "
             "full, requests with new keys are rejected; in stream, the connection is closed. Idle connections do "
             "not count: see worker_connections_per_address."},
    LIMIT_REJECTION_ROWS("limit_conn", SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER, AT(rejection),
                         "The status of rejected requests (default 429; 503 in nginx).",
                         "The level of the log lines about rejected requests.",
                         "Count, log and set $limit_conn_status, but reject nothing."),
    {0},
};

static size_t size_of_counted(const struct limit_conn_conf *own)
{
    return sizeof(struct counted_connection) + own->limits.count * sizeof(struct zone_use);
}

static void leave_zones(struct counted_connection *counted, const struct worker *worker)
{
    while (counted->count > 0) {
        counted->count--;
        limit_zone_leave(counted->uses[counted->count].zone, counted->uses[counted->count].key,
                         worker_slot(worker));
    }
}

/* Returns false if the key is at its limit. An empty key is not limited. */
static bool enter_zone(struct counted_connection *counted, const struct limit_conn_row *row, struct str text,
                       const struct worker *worker)
{
    uint64_t key = table_hash_long(text);

    if (str_empty(text))
        return true;
    if (!limit_zone_enter(row->use.zone->zone, key, worker_slot(worker), row->max)) {
        limit_use_record(&row->use, text, LIMIT_REJECTED, clock_wall_s(worker_clock(worker)));
        return false;
    }
    counted->uses[counted->count++] = (struct zone_use){row->use.zone->zone, key};
    return true;
}

#define LIMIT_MESSAGE "limiting connections%s by zone \"" STR_FMT "\""

static enum outcome reject_request(struct exchange *x, const struct limit_conn_conf *own,
                                   struct counted_connection *counted, const struct limit_conn_row *row)
{
    exchange_log_error(x, limit_level(own->rejection.log_level), LIMIT_MESSAGE,
                       own->rejection.dry_run ? ", dry run" : "", STR_ARG(row->use.name));
    leave_zones(counted, exchange_worker(x));
    counted->status = own->rejection.dry_run ? REJECTED_DRY_RUN : REJECTED;
    return own->rejection.dry_run ? OUTCOME_DECLINED : exchange_error_response(x, (int)own->rejection.status);
}

static enum outcome limit_conn_handler(struct exchange *x, const void *conf, void *state)
{
    const struct limit_conn_conf *own = conf;
    const struct limit_conn_row *rows = own->limits.items;
    struct counted_connection *counted;

    if (exchange_is_subrequest(x) || exchange_state_found(x, &module_limit_conn))
        return OUTCOME_DECLINED;
    counted = exchange_state(x, &module_limit_conn, size_of_counted(own));
    if (!counted)
        return exchange_error_response(x, 500);
    for (size_t i = 0; i < own->limits.count; i++) {
        struct str text = exchange_eval(x, rows[i].use.zone->key);

        if (!text.data)
            return exchange_error_response(x, 500);
        if (!enter_zone(counted, &rows[i], text, exchange_worker(x)))
            return reject_request(x, own, counted, &rows[i]);
    }
    return OUTCOME_DECLINED;
}

static void limit_conn_finish(struct exchange *x, const void *conf)
{
    struct counted_connection *counted = exchange_state_found(x, &module_limit_conn);

    if (counted)
        leave_zones(counted, exchange_worker(x));
}

/* limit_conn_handler for a connection of `stream`. */
static int limit_conn_connected(struct stream *stream, const void *conf, void *state)
{
    const struct limit_conn_conf *own = conf;
    const struct limit_conn_row *rows = own->limits.items;
    struct counted_connection *counted;

    if (own->limits.count == 0)
        return 0;
    counted = stream_state(stream, &module_limit_conn, size_of_counted(own));
    if (!counted)
        return 500;
    for (size_t i = 0; i < own->limits.count; i++) {
        struct str text = stream_eval(stream, rows[i].use.zone->key);

        if (!text.data)
            return 500;
        if (enter_zone(counted, &rows[i], text, stream_worker(stream)))
            continue;
        stream_report(stream, limit_level(own->rejection.log_level), LIMIT_MESSAGE,
                      own->rejection.dry_run ? ", dry run" : "", STR_ARG(rows[i].use.name));
        leave_zones(counted, stream_worker(stream));
        return own->rejection.dry_run ? 0 : 503;
    }
    return 0;
}

static void limit_conn_ended(struct stream *stream, const void *conf)
{
    struct counted_connection *counted = stream_state_found(stream, &module_limit_conn);

    if (counted)
        leave_zones(counted, stream_worker(stream));
}

static const struct stream_part stream_part = {.connected = limit_conn_connected, .ended = limit_conn_ended};

static bool limit_conn_idle(const void *conf)
{
    const struct limit_conn_conf *own = conf;

    return own->limits.count == 0;
}

static struct str get_limit_conn_status(const void *subject, struct str parameter, struct arena *arena)
{
    static const char *const names[] = {
        [PASSED] = "PASSED", [REJECTED] = "REJECTED", [REJECTED_DRY_RUN] = "REJECTED_DRY_RUN"};
    const struct counted_connection *counted = exchange_state_found(subject, &module_limit_conn);

    return counted ? str_from(names[counted->status]) : (struct str){NULL, 0};
}

static const struct variable variables[] = {{"limit_conn_status", false, get_limit_conn_status, .type = "text",
     .help = "Result of limit_conn: PASSED, REJECTED or REJECTED_DRY_RUN."}};
static const struct variable_table variable_table = {variables, 1, NULL};

const struct module module_limit_conn = {
    .name = "limit_conn",
    .directives = directives,
    .conf_size = sizeof(struct limit_conn_conf),
    .conf_check = check_limits,
    .idle = limit_conn_idle,
    .handler = limit_conn_handler,
    .finish = limit_conn_finish,
    .explain_mode = EXPLAIN_SKIP, /* the counts are in shared memory, which `sluice explain` does not have */
    .variables = &variable_table,
    .stream = &stream_part,
};
