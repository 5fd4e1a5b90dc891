/*
 * POST /v1/upstreams/add and /v1/upstreams/remove: servers of groups with `zone`, until the next reload.
 */
#include "control/control.h"

#include "base/limits.h"
#include "server/worker_sandbox.h"
#include "upstream/upstream_lookup.h"
#include "upstream/upstream_mode.h"
#include "upstream/upstream_servers.h"

#include <errno.h>
#include <inttypes.h>

enum { UPSTREAM, SERVER, WEIGHT, MAX_CONNS, MAX_FAILS, FAIL_TIMEOUT, SLOW_START, BACKUP, DOWN };

const struct control_field control_upstreams_add_fields[] = {
    [UPSTREAM] = {.name = "upstream", .type = CONTROL_TEXT, .required = true},
    [SERVER] = {.name = "server", .type = CONTROL_TEXT, .required = true},
    [WEIGHT] = {.name = "weight", .type = CONTROL_NUMBER, .low = 1, .high = LIMIT_UPSTREAM_WEIGHT},
    [MAX_CONNS] = {.name = "max_conns", .type = CONTROL_NUMBER, .high = LIMIT_UPSTREAM_CHANGE_VALUE},
    [MAX_FAILS] = {.name = "max_fails", .type = CONTROL_NUMBER, .high = LIMIT_UPSTREAM_CHANGE_VALUE},
    [FAIL_TIMEOUT] = {.name = "fail_timeout", .type = CONTROL_TEXT},
    [SLOW_START] = {.name = "slow_start", .type = CONTROL_TEXT},
    [BACKUP] = {.name = "backup", .type = CONTROL_SWITCH},
    [DOWN] = {.name = "down", .type = CONTROL_SWITCH},
    {0},
};

const struct control_field control_upstreams_remove_fields[] = {
    [UPSTREAM] = {.name = "upstream", .type = CONTROL_TEXT, .required = true},
    [SERVER] = {.name = "server", .type = CONTROL_TEXT, .required = true},
    {0},
};

/* A server as the caller names it, and its group. */
struct change {
    struct upstream_group *group;
    struct upstream_server server;
    struct str name;                /* with the port; in `text` */
    char text[128];
};

/* A server that is added. */
struct addition {
    struct change change;
    struct control_call *call;
    struct upstream_lookup lookup;  /* of its name */
};

static struct str truncate_text(struct str text)
{
    return str_slice(text, 0, 128);
}

static int refuse_group(struct control_call *call, struct str name)
{
    const struct upstreams *upstreams = &call->worker->configuration->upstreams;
    struct str names = STR("");

    for (const struct upstream *at = upstreams->first; at && names.data && names.length < 512; at = at->next) {
        if (at->named)
            names = arena_printf(&call->x->arena, STR_FMT "%s" STR_FMT, STR_ARG(names), str_empty(names) ? "" : ", ",
                                 STR_ARG(at->name));
    }
    if (str_empty(str_or_empty(names)))
        return control_fail(call, 404, "there is no upstream \"" STR_FMT "\"; the configuration has none",
                            STR_ARG(truncate_text(name)));
    return control_fail(call, 404, "there is no upstream \"" STR_FMT "\"; the upstreams are " STR_FMT,
                        STR_ARG(truncate_text(name)), STR_ARG(names));
}

/* Finds the group. 200 or the result of control_fail. */
static int find_group(struct control_call *call, struct change *change)
{
    const struct upstreams *upstreams = &call->worker->configuration->upstreams;
    struct str name = call->values[UPSTREAM].text;
    const struct upstream *found = NULL;

    for (const struct upstream *at = upstreams->first; at; at = at->next) {
        if (!at->named || !str_equal(at->name, name))
            continue;
        if (found)
            return control_fail(call, 409, "http and stream both have an upstream \"" STR_FMT
                                "\"; give one of them another name", STR_ARG(truncate_text(name)));
        found = at;
    }
    if (!found)
        return refuse_group(call, name);
    if (!found->zone)
        return control_fail(call, 409, "the upstream \"" STR_FMT "\" has no zone; write \"zone: " STR_FMT
                            " 64k\" there and reload", STR_ARG(truncate_text(name)), STR_ARG(truncate_text(name)));
    change->group = upstream_pool_group(call->worker->upstreams, found);
    return 200;
}

static bool has_control_character(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c < 32 || c == 127)
            return true;
    }
    return false;
}

/* Parses the address or the name of the server. 200 or the result of control_fail. */
static int read_address(struct control_call *call, struct change *change)
{
    struct str text = call->values[SERVER].text;

    if (has_control_character(text) || upstream_server_parse(text, 80, &change->server) < 0)
        return control_fail(call, 400, "\"" STR_FMT "\" is not an address of a server: 10.0.0.1:80, [::1]:80, "
                            "app.internal:80 or unix:/path", STR_ARG(truncate_text(text)));
    change->name = upstream_server_name(&change->server, change->text, sizeof(change->text));
    if (str_empty(change->name))
        return control_fail(call, 400, "the name \"" STR_FMT "\" is too long to be added at run time",
                            STR_ARG(truncate_text(text)));
    return 200;
}

static int begin_change(struct control_call *call, struct change *change)
{
    int status = read_address(call, change);

    if (status == 200 && call->worker->draining)
        status = control_fail(call, 409, "this worker has an older configuration; connect again");
    return status == 200 ? find_group(call, change) : status;
}

/* *out_ms does not change if the field is absent. 200 or the result of control_fail. */
static int read_time(struct control_call *call, unsigned field, uint64_t *out_ms)
{
    uint64_t ms;

    if (!call->values[field].given)
        return 200;
    if (conf_duration_parse(call->values[field].text, &ms) < 0 || ms > LIMIT_UPSTREAM_CHANGE_VALUE)
        return control_fail(call, 400, "the field \"%s\" is a time: 500ms, 30s or 5m",
                            control_upstreams_add_fields[field].name);
    *out_ms = ms;
    return 200;
}

static int read_parameters(struct control_call *call, struct upstream_server *server)
{
    const struct control_value *values = call->values;
    int status = read_time(call, FAIL_TIMEOUT, &server->fail_timeout_ms);

    if (values[WEIGHT].given)
        server->weight = values[WEIGHT].number;
    if (values[MAX_CONNS].given)
        server->max_conns = values[MAX_CONNS].number;
    if (values[MAX_FAILS].given)
        server->max_fails = values[MAX_FAILS].number;
    server->backup = values[BACKUP].number;
    server->down = values[DOWN].number;
    return status == 200 ? read_time(call, SLOW_START, &server->slow_start_ms) : status;
}

static int check_port(struct control_call *call, const struct change *change)
{
    bool is_name = !str_empty(change->server.host);
    unsigned port = is_name ? change->server.port : listen_address_port(&change->server.address);

    if (worker_may_connect(call->worker, port))
        return 200;
    return control_fail(call, 409, "the sandbox of the workers permits no connection to port %u; add it to the "
                        "zone of \"" STR_FMT "\" (\"ports=%u\") and reload", port,
                        STR_ARG(truncate_text(call->values[UPSTREAM].text)), port);
}

static int refuse_change(struct control_call *call, const struct change *change, int error)
{
    struct str group = truncate_text(call->values[UPSTREAM].text);

    switch (-error) {
    case EEXIST:
        return control_fail(call, 409, "the upstream \"" STR_FMT "\" has a server " STR_FMT " already", STR_ARG(group),
                            STR_ARG(change->name));
    case ENOENT:
        return control_fail(call, 404, "the upstream \"" STR_FMT "\" has no server " STR_FMT, STR_ARG(group),
                            STR_ARG(change->name));
    case EADDRNOTAVAIL:
        if (!str_empty(change->server.host))
            return control_fail(call, 409, STR_FMT " is a name of the configuration of the upstream \"" STR_FMT
                                "\"; use \"upstreams down\" for its addresses", STR_ARG(change->name), STR_ARG(group));
        return control_fail(call, 409, STR_FMT " is an address of a name of the upstream \"" STR_FMT
                            "\", which DNS determines; use \"upstreams down\"", STR_ARG(change->name), STR_ARG(group));
    case EBUSY:
        return control_fail(call, 409, STR_FMT " is the last server of the upstream \"" STR_FMT
                            "\" that is not a backup; add another one before", STR_ARG(change->name), STR_ARG(group));
    case ENOSPC:
        return control_fail(call, 409, "no space: until the next reload at most %d servers are added and removed, and "
                            "workers share the state of at most %d", LIMIT_UPSTREAM_CHANGES, LIMIT_UPSTREAM_PEERS);
    case ESTALE:
        return control_fail(call, 409, "this worker has an older configuration; connect again");
    case ENOMEM:
        return control_fail(call, 500, "out of memory");
    }
    return control_fail(call, 409, "the upstream \"" STR_FMT "\" cannot be changed at run time (%d)", STR_ARG(group),
                        -error);
}

/* Finds the entries of the server, without removed ones: they may be in use after the server was added again. */
static void find_entries(struct control_call *call, const struct change *change, bool entries[LIMIT_UPSTREAM_PEERS])
{
    struct upstream_zone *zone = upstream_pool_zone(call->worker->upstreams);
    struct str name = change->name;
    struct upstream_shared *peer;
    int index = 0;

    if (!str_empty(change->server.host)) {
        upstream_group_find_server(change->group, name, entries);
        return;
    }
    while ((peer = control_next_peer(zone, &index, call->values[UPSTREAM].text)) != NULL) {
        struct upstream_names names = upstream_read_names(peer);

        entries[index - 1] = str_equal(str_from(names.server), name) && !upstream_zone_is_removed(zone, peer);
    }
}

/* Reports those that are removed now, or those that are not. */
static int report_entries(struct control_call *call, const bool entries[LIMIT_UPSTREAM_PEERS], bool removed)
{
    struct upstream_zone *zone = upstream_pool_zone(call->worker->upstreams);

    report_begin(&call->report, "upstreams", control_peer_columns);
    for (int i = 0; i < LIMIT_UPSTREAM_PEERS; i++) {
        if (entries[i] && upstream_zone_is_removed(zone, upstream_zone_at(zone, i)) == removed)
            control_write_peer(call, upstream_zone_at(zone, i));
    }
    report_end(&call->report);
    return 200;
}

static int add_server(struct control_call *call, const struct change *change)
{
    bool entries[LIMIT_UPSTREAM_PEERS] = {false};
    int error = upstream_group_add_server(change->group, &change->server);

    if (error < 0)
        return refuse_change(call, change, error);
    log_write(call->worker->log, LOG_NOTICE,
              "control: upstream server " STR_FMT " was added to \"" STR_FMT "\" with the weight %" PRIu64 "%s%s",
              STR_ARG(change->name), STR_ARG(call->values[UPSTREAM].text), change->server.weight,
              change->server.backup ? ", as a backup" : "", change->server.down ? ", down" : "");
    find_entries(call, change, entries);
    return report_entries(call, entries, false);
}

static void name_resolved(struct upstream_lookup *lookup, const char *reason)
{
    struct addition *addition = container_of(lookup, struct addition, lookup);
    struct control_call *call = addition->call;
    int status;

    if (reason)
        status = control_fail(call, 409, "the host \"" STR_FMT "\" cannot be resolved: %s",
                              STR_ARG(addition->change.server.host), reason);
    else if (call->worker->draining)
        status = control_fail(call, 409, "this worker has an older configuration; connect again");
    else
        status = add_server(call, &addition->change);
    control_finish(call, status);
}

static void addition_cancelled(struct control_call *call)
{
    struct addition *addition = call->task;

    upstream_lookup_cancel(&addition->lookup);
}

/* Resolves the name first, so that an error is reported, and all workers begin with its addresses. */
static int resolve_server(struct control_call *call, struct addition *addition)
{
    addition->call = call;
    addition->lookup.done = name_resolved;
    if (upstream_lookup_start(&addition->lookup, addition->change.group, &addition->change.server) < 0)
        return control_fail(call, 500, "out of memory");
    call->task = addition;
    call->cancelled = addition_cancelled;
    return CONTROL_PENDING;
}

int control_upstreams_add(struct control_call *call)
{
    struct addition *addition = arena_zalloc(&call->x->arena, 1, sizeof(*addition));
    int status;

    if (!addition)
        return control_fail(call, 500, "out of memory");
    status = begin_change(call, &addition->change);
    if (status == 200)
        status = read_parameters(call, &addition->change.server);
    if (status == 200)
        status = check_port(call, &addition->change);
    if (status != 200)
        return status;
    return str_empty(addition->change.server.host) ? add_server(call, &addition->change)
                                                   : resolve_server(call, addition);
}

int control_upstreams_remove(struct control_call *call)
{
    bool entries[LIMIT_UPSTREAM_PEERS] = {false};
    struct change change = {.group = NULL};
    int status = begin_change(call, &change);
    int error;

    if (status != 200)
        return status;
    find_entries(call, &change, entries);
    error = upstream_group_remove_server(change.group, change.name);
    if (error < 0)
        return refuse_change(call, &change, error);
    log_write(call->worker->log, LOG_NOTICE, "control: upstream server " STR_FMT " was removed from \"" STR_FMT "\"",
              STR_ARG(change.name), STR_ARG(call->values[UPSTREAM].text));
    return report_entries(call, entries, true);
}
