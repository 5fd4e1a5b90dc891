/*
 * PATCH /v1/upstreams: the state or the weight of one server of one group, in the memory that all workers share.
 */
#include "control/control.h"

#include "base/limits.h"
#include "upstream/upstream_mode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { UPSTREAM, SERVER, STATE, WEIGHT };

const struct control_field control_upstreams_fields[] = {
    [UPSTREAM] = {.name = "upstream", .type = CONTROL_TEXT, .required = true},
    [SERVER] = {.name = "server", .type = CONTROL_TEXT, .required = true},
    [STATE] = {.name = "state", .type = CONTROL_CHOICE, .choices = upstream_mode_names},
    [WEIGHT] = {.name = "weight", .type = CONTROL_NUMBER, .low = 1, .high = LIMIT_UPSTREAM_WEIGHT},
    {0},
};

/* The next entry of a server that was not removed. */
static struct upstream_shared *next_of_group(struct upstream_zone *zone, int *index, struct str group)
{
    struct upstream_shared *peer;

    do
        peer = control_next_peer(zone, index, group);
    while (peer && upstream_zone_is_removed(zone, peer));
    return peer;
}

/* Appends a name to a list that ends with "..." when it is full. */
static void append_name(char *list, size_t size, const char *name)
{
    size_t length = strlen(list);

    if (length + strlen(name) + 8 < size)
        snprintf(list + length, size - length, "%s%s", length > 0 ? ", " : "", name);
    else if (length + 5 < size && strcmp(list + length - 3, "...") != 0)
        memcpy(list + length, " ...", 5);
}

/* Lists the groups, or with `group` its servers. The servers of a group are adjacent in most cases. */
static void list_names(struct upstream_zone *zone, struct str group, char *list, size_t size)
{
    struct upstream_names last = {.group = ""};
    const struct upstream_shared *peer;
    int index = 0;

    list[0] = '\0';
    while ((peer = next_of_group(zone, &index, group)) != NULL) {
        struct upstream_names names = upstream_read_names(peer);

        if (group.data || strcmp(last.group, names.group) != 0)
            append_name(list, size, group.data ? names.server : names.group);
        last = names;
    }
}

static int refuse_server(struct control_call *call, struct upstream_zone *zone)
{
    struct str group = call->values[UPSTREAM].text;
    char names[512];

    list_names(zone, group, names, sizeof(names));
    if (names[0])
        return control_fail(call, 404, "the upstream \"" STR_FMT "\" has no server \"" STR_FMT "\"; its servers are %s",
                            STR_ARG(str_slice(group, 0, 128)),
                            STR_ARG(str_slice(call->values[SERVER].text, 0, 128)), names);
    list_names(zone, (struct str){NULL, 0}, names, sizeof(names));
    return control_fail(call, 404, "there is no upstream \"" STR_FMT "\"; %s%s", STR_ARG(str_slice(group, 0, 128)),
                        names[0] ? "the upstreams are " : "the configuration has none", names);
}

static void change_state(struct control_call *call, struct upstream_shared *peer)
{
    enum upstream_mode mode = (enum upstream_mode)call->values[STATE].number;
    enum upstream_mode before = upstream_set_mode(peer, mode, call->worker->loop.clock.monotonic_ms);
    struct upstream_names names = upstream_read_names(peer);

    if (before != mode)
        log_write(call->worker->log, LOG_NOTICE, "control: upstream server %s of \"%s\" is %s, before: %s",
                  names.server, names.group, upstream_mode_names[mode], upstream_mode_names[before]);
}

static void change_weight(struct control_call *call, struct upstream_shared *peer)
{
    uint64_t weight = call->values[WEIGHT].number;
    uint64_t before = upstream_set_weight(peer, weight);
    struct upstream_names names = upstream_read_names(peer);

    if (before != weight)
        log_write(call->worker->log, LOG_NOTICE,
                  "control: upstream server %s of \"%s\" has the weight %" PRIu64 ", before: %" PRIu64, names.server,
                  names.group, weight, before);
}

/* Changes each entry with this address: several lines of a group may have the same. */
static int change_servers(struct control_call *call, struct upstream_zone *zone)
{
    struct upstream_shared *peer;
    int index = 0;

    report_begin(&call->report, "upstreams", control_peer_columns);
    while ((peer = next_of_group(zone, &index, call->values[UPSTREAM].text)) != NULL) {
        struct upstream_names names = upstream_read_names(peer);

        if (!str_equal(str_from(names.server), call->values[SERVER].text))
            continue;
        if (call->values[STATE].given)
            change_state(call, peer);
        if (call->values[WEIGHT].given)
            change_weight(call, peer);
        control_write_peer(call, peer);
    }
    report_end(&call->report);
    return call->report.rows > 0 ? 200 : refuse_server(call, zone);
}

int control_upstreams_change(struct control_call *call)
{
    struct upstream_zone *zone = upstream_pool_zone(call->worker->upstreams);
    int status;

    if (!call->values[STATE].given && !call->values[WEIGHT].given)
        return control_fail(call, 400, "one of the fields \"state\" and \"weight\" is required");
    if (!zone)
        return refuse_server(call, zone);
    upstream_zone_lock(zone);
    status = change_servers(call, zone);
    upstream_zone_unlock(zone);
    return status;
}
