/*
 * The zones of limit_req and limit_conn, and the keys that they limited last. Zones are in memory that all workers
 * share.
 */
#include "control/control.h"

#include "limit/limit_conf.h"

#include <arpa/inet.h>

static void write_zone(struct report *report, const struct limit_conf *conf)
{
    struct limit_zone_totals totals;

    limit_zone_totals(conf->zone, &totals);
    report_row(report);
    report_text(report, conf->name);
    report_text(report, str_from(limit_kind_names[conf->kind]));
    report_text(report, template_text(conf->key));
    report_number(report, totals.keys);
    report_number(report, totals.keys_max);
    report_number(report, totals.counts[LIMIT_DELAYED]);
    report_number(report, totals.counts[LIMIT_REJECTED]);
}

int control_limits(struct control_call *call)
{
    static const char *const columns[] = {"zone", "limit", "key", "keys", "keys_max", "delayed", "rejected", NULL};
    const struct limits *limits = &call->worker->configuration->limits;

    report_begin(&call->report, "limits", columns);
    for (size_t i = 0; i < limits->count; i++)
        write_zone(&call->report, limits->items[i]);
    report_end(&call->report);
    return 200;
}

/* $binary_remote_addr as an address; any other key as it is. `into` has INET6_ADDRSTRLEN bytes. */
static struct str printable_key(const struct limit_conf *conf, const struct limited_key *key, char *into)
{
    int family = key->length == sizeof(struct in_addr) ? AF_INET : AF_INET6;

    if (str_equal(template_text(conf->key), STR("$binary_remote_addr")) &&
        (family == AF_INET || key->length == sizeof(struct in6_addr)) &&
        inet_ntop(family, key->text, into, INET6_ADDRSTRLEN))
        return str_from(into);
    return str_of(key->text, key->length);
}

static void write_keys(struct report *report, const struct limit_conf *conf)
{
    struct limited_key keys[LIMIT_LIMITED_KEYS];
    size_t count = limit_zone_limited(conf->zone, keys);

    for (size_t i = 0; i < count; i++) {
        char address[INET6_ADDRSTRLEN];

        report_row(report);
        report_text(report, conf->name);
        report_text(report, printable_key(conf, &keys[i], address));
        report_number(report, keys[i].counts[LIMIT_DELAYED]);
        report_number(report, keys[i].counts[LIMIT_REJECTED]);
        report_time(report, keys[i].last_s);
    }
}

int control_limits_keys(struct control_call *call)
{
    static const char *const columns[] = {"zone", "key", "delayed", "rejected", "last", NULL};
    const struct limits *limits = &call->worker->configuration->limits;

    report_begin(&call->report, "keys", columns);
    for (size_t i = 0; i < limits->count; i++)
        write_keys(&call->report, limits->items[i]);
    report_end(&call->report);
    return 200;
}
