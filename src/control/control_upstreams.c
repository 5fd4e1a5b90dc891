/*
 * The servers of the upstream groups, whose state all workers share.
 */
#include "control/control.h"

#include "base/limits.h"
#include "upstream/upstream_mode.h"

const char *const control_peer_columns[] = {"upstream", "server",   "state",     "weight",   "active",
                                            "requests", "failures", "header_ms", "total_ms", NULL};

void control_write_peer(struct report *report, const struct upstream_shared *peer)
{
    struct upstream_names names = upstream_read_names(peer);

    report_row(report);
    report_text(report, str_from(names.group));
    report_text(report, str_from(names.server));
    report_text(report, str_from(upstream_state_name(peer)));
    report_number(report, shared_get(&peer->weight));
    report_number(report, shared_get(&peer->active));
    report_number(report, shared_get(&peer->requests));
    report_number(report, shared_get(&peer->failures));
    report_number(report, shared_get(&peer->header_us) / 1000);
    report_number(report, shared_get(&peer->total_us) / 1000);
}

int control_upstreams(struct control_call *call)
{
    struct upstream_zone *zone = upstream_pool_zone(call->worker->upstreams);

    report_begin(&call->report, "upstreams", control_peer_columns);
    for (int i = 0; zone && i < LIMIT_UPSTREAM_PEERS; i++) {
        const struct upstream_shared *peer = upstream_zone_at(zone, i);

        if (shared_get(&peer->holders) > 0)
            control_write_peer(&call->report, peer);
    }
    report_end(&call->report);
    return 200;
}
