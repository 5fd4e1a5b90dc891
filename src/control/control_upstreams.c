/*
 * The servers of the upstream groups, whose state all workers share.
 */
#include "control/control.h"

#include "base/limits.h"
#include "upstream/upstream_mode.h"

const char *const control_peer_columns[] = {"upstream", "server",   "state",     "weight",   "active",
                                            "requests", "failures", "header_ms", "total_ms", NULL};

void control_write_peer(struct control_call *call, const struct upstream_shared *peer)
{
    struct report *report = &call->report;
    struct upstream_names names = upstream_read_names(peer);
    bool removed = upstream_zone_is_removed(upstream_pool_zone(call->worker->upstreams), peer);

    report_row(report);
    report_text(report, str_from(names.group));
    report_text(report, str_from(names.server));
    report_text(report, str_from(removed ? "removed" : upstream_state_name(peer)));
    report_number(report, shared_get(&peer->weight));
    report_number(report, shared_get(&peer->active));
    report_number(report, shared_get(&peer->requests));
    report_number(report, shared_get(&peer->failures));
    report_number(report, shared_get(&peer->header_us) / 1000);
    report_number(report, shared_get(&peer->total_us) / 1000);
}

/* The entry may have a truncated name. */
static bool is_group(const struct upstream_shared *peer, struct str group)
{
    struct upstream_names names = upstream_read_names(peer);

    return str_equal(str_from(names.group), str_slice(group, 0, sizeof(names.group) - 1));
}

struct upstream_shared *control_next_peer(struct upstream_zone *zone, int *index, struct str group)
{
    while (zone && *index < LIMIT_UPSTREAM_PEERS) {
        struct upstream_shared *peer = upstream_zone_at(zone, (*index)++);

        if (shared_get(&peer->holders) > 0 && (!group.data || is_group(peer, group)))
            return peer;
    }
    return NULL;
}

int control_upstreams(struct control_call *call)
{
    struct upstream_zone *zone = upstream_pool_zone(call->worker->upstreams);
    const struct upstream_shared *peer;
    int index = 0;

    report_begin(&call->report, "upstreams", control_peer_columns);
    while ((peer = control_next_peer(zone, &index, (struct str){NULL, 0})) != NULL)
        control_write_peer(call, peer);
    report_end(&call->report);
    return 200;
}
