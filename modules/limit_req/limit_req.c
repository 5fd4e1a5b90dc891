/*
 * `limit_req`: limits the request rate per key (leaky bucket). A request beyond the rate is delayed, or rejected
 * with 429 and Retry-After. A request is counted once, at the first limit, regardless of internal redirects.
 */
#include "base/limits.h"
#include "base/saturate.h"
#include "base/table.h"
#include "limit/limit_use.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct limit_req_row {
    struct limit_use use;
    uint64_t burst; /* capacity of the bucket in drops (LIMIT_DROPS per request) */
    uint64_t delay; /* drops of `burst` that cause no delay */
};

struct limit_req_conf {
    struct conf_rows zones;  /* struct limit_conf * */
    struct conf_rows limits; /* struct limit_req_row */
    struct limit_rejection rejection;
};

enum limit_req_status { PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN, REJECTED_DRY_RUN };

struct limited_request {
    struct exchange *x;
    enum limit_req_status status;
    struct op timer; /* runs while the request is delayed; x is held */
};

#define AT(field) offsetof(struct limit_req_conf, field)
#define HINT      STR("write: limit_req: zone=one burst=20 nodelay")

extern const struct module module_limit_req;

static int read_drops(struct conf_reader *reader, const struct conf_node *word, uint64_t *out)
{
    uint64_t requests = 0;
    int error = conf_read_number(reader, word, 0, LIMIT_REQUEST_RATE, &requests);

    *out = requests * LIMIT_DROPS;
    return error;
}

static int read_nodelay(struct conf_reader *reader, const struct conf_node *word, struct str value,
                        struct limit_req_row *row)
{
    bool on = true;
    int error = value.data ? conf_read_switch(reader, word, &on) : 0;

    if (on)
        row->delay = UINT64_MAX;
    return error;
}

static int read_option(struct conf_reader *reader, const struct conf_node *word, struct str name,
                       struct str value, void *into)
{
    struct limit_req_row *row = into;

    if (str_equal(name, STR("nodelay")))
        return read_nodelay(reader, word, value, row);
    if (value.data && str_equal(name, STR("zone"))) {
        row->use.name = value;
        return 0;
    }
    if (value.data && str_equal(name, STR("burst")))
        return read_drops(reader, word, &row->burst);
    if (value.data && str_equal(name, STR("delay")))
        return read_drops(reader, word, &row->delay);
    conf_error(reader->errors, word->mark, HINT, "limit_req has no parameter \"" STR_FMT "\"", STR_ARG(name));
    return -EINVAL;
}

static int read_limit(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct limit_req_row *row = out;
    int error = limit_options_read(reader, node, read_option, row);

    row->use.mark = node->mark;
    if (error == 0 && str_empty(row->use.name)) {
        conf_error(reader->errors, node->mark, HINT, "limit_req has no zone");
        return -EINVAL;
    }
    return error;
}

static int check_limits(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    const struct limit_req_conf *own = conf;

    return limit_uses_find(reader, LIMIT_REQUESTS, &own->limits, sizeof(struct limit_req_row));
}

static const struct directive directives[] = {
    {.name = "limit_req_zone",
     .scopes = SCOPE_HTTP,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(zones),
     .row_size = sizeof(struct limit_conf *),
     .row = limit_requests_read,
     .syntax = "key zone=name:size rate=rate",
     .example = "limit_req_zone: \"$binary_remote_addr zone=one:10m rate=10r/s\"",
     .schema = "{\"type\": [\"string\", \"object\"]}",
     .help = "A zone for limit_req: the key by which requests are counted (an empty key is not limited), a name "
             "and the size of the memory that all workers share (1m holds about 19,000 keys; beyond that the least "
             "recently used key is removed), and the rate per second (r/s) or minute (r/m)."},
    {.name = "limit_req",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(limits),
     .row_size = sizeof(struct limit_req_row),
     .row = read_limit,
     .syntax = "zone=name [burst=number] [nodelay | delay=number]",
     .example = "limit_req: zone=one burst=20 nodelay",
     .schema = "{\"type\": [\"string\", \"object\"]}",
     .help = "Requests beyond the rate of the zone are delayed until they conform to it, and requests beyond burst "
             "delayed ones are rejected. delay=N: N requests of the burst are not delayed; nodelay: none is. The "
             "strictest of several limits applies."},
    LIMIT_REJECTION_ROWS("limit_req", SCOPE_SITE, AT(rejection),
                         "The status of rejected requests (default 429; 503 in nginx), with Retry-After.",
                         "The level of the log lines about rejected requests; delays are logged one level lower.",
                         "Count, log and set $limit_req_status, but neither delay nor reject."),
    {0},
};

/* Delays are logged one level lower than rejections. */
static void record_limit(struct exchange *x, const struct limit_req_conf *own, const struct limit_req_row *row,
                         enum limit_action action, uint64_t level)
{
    struct str key = exchange_eval(x, row->use.zone->key);

    exchange_log_error(x, limit_level(own->rejection.log_level - (action == LIMIT_DELAYED)),
                       "%s%s, excess: %llu.%03llu by zone \"" STR_FMT "\"",
                       action == LIMIT_DELAYED ? "delaying request" : "limiting requests",
                       own->rejection.dry_run ? ", dry run" : "", (unsigned long long)(level / LIMIT_DROPS),
                       (unsigned long long)(level % LIMIT_DROPS * 1000 / LIMIT_DROPS), STR_ARG(row->use.name));
    if (key.data)
        limit_use_record(&row->use, key, action, clock_wall_s(exchange_clock(x)));
}

/* Retry-After (RFC 9110 10.2.3): the time until the bucket has room for one request. */
static enum outcome reject_request(struct exchange *x, const struct limit_req_conf *own,
                                   const struct limit_req_row *row, uint64_t level)
{
    uint64_t wait_ms = u64_sub_sat(level, row->burst) / row->use.zone->rate + 1;
    struct str seconds;

    exchange_error_response(x, (int)own->rejection.status);
    seconds = arena_print_number(&x->arena, (wait_ms + 999) / 1000);
    if (!seconds.data || headers_set(&x->response.headers, &x->arena, STR("Retry-After"), seconds) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

/* Result of the limits: the delay, or the limit that rejects the request. */
struct result {
    uint64_t wait_ms, wait_level;
    const struct limit_req_row *slowest; /* limit with the longest delay; NULL: none */
    const struct limit_req_row *rejecting; /* limit that rejects the request; NULL: none */
    uint64_t rejecting_level;
};

/* Counts the request in each zone; keys[i] is 0 for a limit that did not count it. 0 or -ENOMEM. */
static int count_request(struct exchange *x, const struct limit_req_conf *own, uint64_t *keys, struct result *result)
{
    const struct limit_req_row *rows = own->limits.items;
    uint64_t now_ms = exchange_clock(x)->monotonic_ms;

    for (size_t i = 0; i < own->limits.count; i++) {
        const struct limit_conf *zone = rows[i].use.zone;
        struct str key = exchange_eval(x, zone->key);
        uint64_t level, wait_ms;

        if (!key.data)
            return -ENOMEM;
        if (str_empty(key))
            continue;
        keys[i] = table_hash_long(key) | 1;
        if (!limit_zone_fill(zone->zone, keys[i], zone->rate, rows[i].burst, now_ms, &level)) {
            keys[i] = 0;
            result->rejecting = &rows[i];
            result->rejecting_level = level;
            return 0;
        }
        wait_ms = level > rows[i].delay ? (level - rows[i].delay + zone->rate - 1) / zone->rate : 0;
        if (wait_ms > result->wait_ms) {
            result->wait_ms = wait_ms;
            result->wait_level = level;
            result->slowest = &rows[i];
        }
    }
    return 0;
}

static void uncount_request(const struct limit_req_conf *own, const uint64_t *keys)
{
    const struct limit_req_row *rows = own->limits.items;

    for (size_t i = 0; i < own->limits.count; i++) {
        if (keys[i])
            limit_zone_undo(rows[i].use.zone->zone, keys[i]);
    }
}

static void delay_done(struct op *op, int result)
{
    struct limited_request *limited = container_of(op, struct limited_request, timer);
    struct exchange *x = limited->x;

    if (!x->cancelled && result != -ECANCELED) { /* other errors (-ENOMEM): the timer could not be set */
        exchange_end_with_client(x, false);
        exchange_resume(x, result == 0 ? OUTCOME_DECLINED : exchange_error_response(x, 503));
    }
    exchange_release(x);
}

static enum outcome limit_outcome(struct exchange *x, const struct limit_req_conf *own, struct limited_request *limited,
                                  const struct result *result)
{
    if (result->rejecting) {
        limited->status = own->rejection.dry_run ? REJECTED_DRY_RUN : REJECTED;
        record_limit(x, own, result->rejecting, LIMIT_REJECTED, result->rejecting_level);
        return own->rejection.dry_run ? OUTCOME_DECLINED
                                    : reject_request(x, own, result->rejecting, result->rejecting_level);
    }
    if (!result->slowest)
        return OUTCOME_DECLINED;
    limited->status = own->rejection.dry_run ? DELAYED_DRY_RUN : DELAYED;
    record_limit(x, own, result->slowest, LIMIT_DELAYED, result->wait_level);
    if (own->rejection.dry_run)
        return OUTCOME_DECLINED;
    exchange_hold(x);
    exchange_end_with_client(x, true); /* a disconnect of the client ends the delay */
    limited->timer.done = delay_done;
    worker_timer(exchange_worker(x), &limited->timer, result->wait_ms);
    return OUTCOME_PENDING;
}

static enum outcome limit_req_handler(struct exchange *x, const void *conf, void *state)
{
    const struct limit_req_conf *own = conf;
    struct limited_request *limited;
    struct result result = {0};
    uint64_t *keys;

    if (exchange_is_subrequest(x) || exchange_state_found(x, &module_limit_req))
        return OUTCOME_DECLINED;
    limited = exchange_state(x, &module_limit_req, sizeof(*limited));
    keys = arena_zalloc(&x->arena, own->limits.count, sizeof(*keys));
    if (!limited || !keys || count_request(x, own, keys, &result) < 0)
        return exchange_error_response(x, 500);
    limited->x = x;
    if (result.rejecting)
        uncount_request(own, keys);
    return limit_outcome(x, own, limited, &result);
}

static void limit_req_cancel(struct exchange *x, void *state)
{
    struct limited_request *limited = exchange_state_found(x, &module_limit_req);

    worker_cancel(exchange_worker(x), &limited->timer);
}

static bool limit_req_idle(const void *conf)
{
    const struct limit_req_conf *own = conf;

    return own->limits.count == 0;
}

static struct str get_limit_req_status(const void *subject, struct str parameter, struct arena *arena)
{
    static const char *const names[] = {
        [PASSED] = "PASSED",
        [DELAYED] = "DELAYED",
        [REJECTED] = "REJECTED",
        [DELAYED_DRY_RUN] = "DELAYED_DRY_RUN",
        [REJECTED_DRY_RUN] = "REJECTED_DRY_RUN",
    };
    const struct limited_request *limited = exchange_state_found(subject, &module_limit_req);

    return limited ? str_from(names[limited->status]) : (struct str){NULL, 0};
}

static const struct variable variables[] = {{"limit_req_status", false, get_limit_req_status, .type = "text",
     .help = "Result of limit_req: PASSED, DELAYED, REJECTED, or these with _DRY_RUN."}};
static const struct variable_table variable_table = {variables, 1, NULL};

const struct module module_limit_req = {
    .name = "limit_req",
    .directives = directives,
    .conf_size = sizeof(struct limit_req_conf),
    .conf_check = check_limits,
    .idle = limit_req_idle,
    .handler = limit_req_handler,
    .cancel = limit_req_cancel,
    .explain_mode = EXPLAIN_SKIP, /* the counts are in shared memory, which `sluice explain` does not have */
    .variables = &variable_table,
};
