/*
 * Connections to syslog receivers. The workers inherit the sockets, so that a connect() of the master applies to them,
 * too; each receiver is connected again every second, since a Unix socket stays connected to a receiver that has ended.
 */
#include "master/master_state.h"

#include "base/limits.h"
#include "log/access_log.h"

#include <string.h>

/* Logs the first failure, and the success after it. */
static void log_connection(struct master *master, const struct syslog *syslog, int result, bool *unreachable)
{
    char address[128];
    struct str name = listen_address_format(&syslog->address, address, sizeof(address));

    if (result == 0 && *unreachable)
        log_write(&master->error_log.log, LOG_NOTICE, "syslog: \"" STR_FMT "\" is connected", STR_ARG(name));
    if (result < 0 && !*unreachable)
        log_write(&master->error_log.log, LOG_WARN,
                  "syslog: connect() to \"" STR_FMT "\" failed (%d: %s): lines are lost until it succeeds",
                  STR_ARG(name), -result, strerror(-result));
    *unreachable = result < 0;
}

void master_syslog_connect_target(struct master *master, struct access_log_target *target)
{
    log_connection(master, target->syslog, syslog_connect(target->fd, target->syslog), &target->unreachable);
}

void master_syslog_connect(struct master *master)
{
    struct error_log *error_log = &master->error_log;
    int result = error_log->is_syslog ? syslog_connect(error_log->fd, &error_log->syslog) : 0;

    if (result < 0 && error_log->echo)
        error_log_print(LOG_WARN, "error_log: connect() to the syslog receiver failed (%d: %s)", -result,
                        strerror(-result));
    if (error_log->is_syslog)
        log_connection(master, &error_log->syslog, result, &error_log->unreachable);
}

static bool uses_syslog(const struct master *master)
{
    bool used = master->error_log.is_syslog;

    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        const struct configuration *configuration = container_of(link, struct generation, link)->configuration;

        for (size_t i = 0; i < configuration->access_log_count; i++)
            used |= configuration->access_logs[i]->syslog != NULL;
    }
    return used;
}

int master_syslog_next_ms(const struct master *master)
{
    return uses_syslog(master) ? master_wait_ms(master, master->syslog_ms + LIMIT_SYSLOG_CONNECT_MS) : -1;
}

void master_syslog_check(struct master *master)
{
    if (master_syslog_next_ms(master) != 0)
        return;
    master->syslog_ms = master->clock.monotonic_ms;
    master_syslog_connect(master);
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        const struct configuration *configuration = container_of(link, struct generation, link)->configuration;

        for (size_t i = 0; i < configuration->access_log_count; i++) {
            if (configuration->access_logs[i]->syslog && configuration->access_logs[i]->fd >= 0)
                master_syslog_connect_target(master, configuration->access_logs[i]);
        }
    }
}
