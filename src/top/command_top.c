/*
 * The command: shows the live view, or reads the status page twice, an interval apart, and prints the rates.
 */
#include "top/top.h"

#include "base/clock.h"
#include "log/error_log.h"
#include "top/top_json.h"
#include "top/top_screen.h"
#include "top/top_view.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_INTERVAL_S 1
#define TEXT_COLUMNS       80 /* of --once without --json */

static int report_fault(const char *fault)
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

    /* At most an hour (--interval). If poll fails, top_monitor_continue does nothing before `until_us`. */
    (void)poll(&waiting, 1, until_us > now_us ? (int)((until_us - now_us + 999) / 1000) : 0);
}

/* Appends the lines of the live view. Returns 0 or -ENOMEM. */
static int print_text(const struct top_monitor *monitor, struct buffer *out)
{
    struct top_screen *screen = calloc(1, sizeof(*screen));
    struct top_content content = {.monitor = monitor, .list = TOP_LISTS};
    int error = screen ? 0 : -ENOMEM;
    struct clock now;

    clock_read(&now);
    content.wall_s = clock_wall_s(&now);
    if (screen)
        top_screen_compose(screen, &content, TEXT_COLUMNS, LIMIT_TOP_ROWS);
    for (unsigned i = 0; error == 0 && i < screen->used; i++)
        error = buffer_printf(out, "%s\n", screen->lines[i].text);
    free(screen);
    return error;
}

static int print_rates(const struct top_monitor *monitor, bool json)
{
    struct buffer text = {0};
    int status = EXIT_SUCCESS;
    int error = json ? top_json_print(&monitor->rates, top_monitor_sample(monitor), &text) : print_text(monitor, &text);

    if (error < 0)
        status = report_fault("out of memory");
    else if (fwrite(text.data, 1, text.length, stdout) != text.length || fflush(stdout) != 0)
        status = report_fault("cannot write the output");
    buffer_finish(&text);
    return status;
}

/* Reads the page twice. The first failure ends the command. */
static int print_once(const struct top_server *server, unsigned interval_s, bool json)
{
    struct top_monitor monitor;
    int status;

    top_monitor_init(&monitor, server, interval_s);
    do {
        wait_for(&monitor);
    } while (!(top_monitor_continue(&monitor, clock_monotonic_us()) && monitor.fault[0]) && monitor.readings < 2);
    status = monitor.fault[0] ? report_fault(monitor.fault) : print_rates(&monitor, json);
    top_monitor_finish(&monitor);
    return status;
}

int command_top(const struct options *options)
{
    char fault[LIMIT_TOP_FAULT];
    struct top_server server;
    struct top_url url;
    unsigned interval_s = options->interval_s ? options->interval_s : DEFAULT_INTERVAL_S;
    const char *invalid = top_url_parse(options->url ? options->url : TOP_URL_DEFAULT, &url);
    int status;

    if (options->json && !options->once) {
        error_log_print(LOG_EMERG, "option \"--json\" of top requires \"--once\"");
        return EXIT_FAILURE;
    }
    if (invalid) {
        error_log_print(LOG_EMERG, "%s: sluice top http://HOST[:PORT][/PATH]", invalid);
        return EXIT_FAILURE;
    }
    if (top_server_init(&server, &url, fault) < 0)
        return report_fault(fault);
    if (options->once)
        status = print_once(&server, interval_s, options->json);
    else
        status = top_view_run(&server, interval_s) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    top_server_finish(&server);
    return status;
}
