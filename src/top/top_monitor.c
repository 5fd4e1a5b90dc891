/*
 * Reads a status page periodically.
 */
#include "top/top_monitor.h"

#include <stdio.h>

void top_monitor_init(struct top_monitor *monitor, const struct top_server *server, unsigned interval_s)
{
    memset(monitor, 0, sizeof(*monitor));
    monitor->server = server;
    monitor->interval_us = interval_s * 1000000ull;
    monitor->fetch.fd = -1;
}

void top_monitor_finish(struct top_monitor *monitor)
{
    top_fetch_finish(&monitor->fetch);
    top_sample_finish(&monitor->samples[0]);
    top_sample_finish(&monitor->samples[1]);
}

uint64_t top_monitor_until(const struct top_monitor *monitor)
{
    return monitor->fetch.fd >= 0 ? monitor->fetch.deadline_us : monitor->next_us;
}

const struct top_sample *top_monitor_sample(const struct top_monitor *monitor)
{
    return monitor->readings > 0 ? &monitor->samples[monitor->latest] : NULL;
}

/* Parses the page in place of the older sample. Returns 0 or -errno. */
static int parse_page(struct top_monitor *monitor, uint64_t now_us)
{
    unsigned place = monitor->readings > 0 ? !monitor->latest : 0;
    struct top_sample *sample = &monitor->samples[place];
    int error;

    top_sample_finish(sample);
    error = top_sample_parse(buffer_str(&monitor->fetch.page), sample);
    sample->read_us = now_us;
    if (error == 0 && monitor->readings > 0)
        error = top_rates_compute(&monitor->samples[monitor->latest], sample, &monitor->rates);
    if (error < 0)
        return error;
    monitor->latest = place;
    monitor->readings = monitor->readings > 0 ? 2 : 1;
    return 0;
}

bool top_monitor_continue(struct top_monitor *monitor, uint64_t now_us)
{
    int result;

    if (monitor->fetch.fd < 0 && now_us < monitor->next_us)
        return false;
    result = monitor->fetch.fd < 0 ? top_fetch_start(&monitor->fetch, monitor->server, now_us)
                                   : top_fetch_continue(&monitor->fetch, now_us);
    if (result == 0)
        return false;
    if (result > 0) {
        result = parse_page(monitor, now_us);
        snprintf(monitor->fault, sizeof(monitor->fault), "%s", result < 0 ? top_sample_fault(result) : "");
    } else {
        memcpy(monitor->fault, monitor->fetch.fault, sizeof(monitor->fault));
    }
    top_fetch_finish(&monitor->fetch);
    monitor->next_us = now_us + monitor->interval_us;
    return true;
}
