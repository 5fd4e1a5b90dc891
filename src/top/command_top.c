/*
 * The command: reads the status page twice, an interval apart, and prints the rates.
 */
#include "top/top.h"

#include "base/clock.h"
#include "log/error_log.h"
#include "top/top_json.h"
#include "top/top_monitor.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_INTERVAL_S 1

static int report(const char *fault)
{
    error_log_print(LOG_ERROR, "%s", fault);
    return EXIT_FAILURE;
}

/* Waits until the monitor has to continue. */
static void wait_for(const struct top_monitor *monitor)
{
    struct pollfd waiting = {monitor->fetch.fd, monitor->fetch.events, 0};
    uint64_t now_us = clock_monotonic_us();
    uint64_t until_us = top_monitor_until(monitor);

    /* At most an hour. After an error the monitor finds that it is too early. */
    (void)poll(&waiting, 1, until_us > now_us ? (int)((until_us - now_us + 999) / 1000) : 0);
}

static int print_json(const struct top_monitor *monitor)
{
    struct buffer text = {0};
    int status = EXIT_SUCCESS;

    if (top_json_print(&monitor->rates, top_monitor_sample(monitor), &text) < 0)
        status = report("out of memory");
    else if (fwrite(text.data, 1, text.length, stdout) != text.length || fflush(stdout) != 0)
        status = report("cannot write the output");
    buffer_finish(&text);
    return status;
}

/* Reads the page twice. The first failure ends the command. */
static int print_once(const struct top_server *server, unsigned interval_s)
{
    struct top_monitor monitor;
    int status;

    top_monitor_init(&monitor, server, interval_s);
    do {
        wait_for(&monitor);
    } while (!(top_monitor_continue(&monitor, clock_monotonic_us()) && monitor.fault[0]) && monitor.readings < 2);
    status = monitor.fault[0] ? report(monitor.fault) : print_json(&monitor);
    top_monitor_finish(&monitor);
    return status;
}

int command_top(const struct options *options)
{
    char fault[LIMIT_TOP_FAULT];
    struct top_server server;
    struct top_url url;
    const char *invalid = top_url_parse(options->url ? options->url : TOP_URL_DEFAULT, &url);
    int status;

    if (!options->once || !options->json) {
        error_log_print(LOG_EMERG, "top prints one sample as JSON: sluice top [URL] --once --json");
        return EXIT_FAILURE;
    }
    if (invalid) {
        error_log_print(LOG_EMERG, "%s: sluice top http://HOST[:PORT][/PATH]", invalid);
        return EXIT_FAILURE;
    }
    if (top_server_init(&server, &url, fault) < 0)
        return report(fault);
    status = print_once(&server, options->interval_s ? options->interval_s : DEFAULT_INTERVAL_S);
    top_server_finish(&server);
    return status;
}
