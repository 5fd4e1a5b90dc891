/*
 * Opens the logs again after their files were renamed (USR1).
 */
#include "log/access_log.h"
#include "master/master_state.h"

#include <string.h>
#include <unistd.h>

static void reopen_access_logs(struct master *master, struct generation *generation)
{
    for (size_t i = 0; i < generation->configuration->access_log_count; i++) {
        struct access_log_target *target = generation->configuration->access_logs[i];
        int fd = generation_open_log(master, target->path, target->syslog);

        if (fd < 0) {
            log_write(&master->error_log.log, LOG_ALERT,
                      "\"" STR_FMT "\" cannot be opened again (%d: %s): the old one stays in use",
                      STR_ARG(target->path),
                      -fd, strerror(-fd));
            continue;
        }
        children_send(master, generation, CHANNEL_ACCESS_LOG, (uint32_t)i, fd);
        if (target->fd >= 0)
            close(target->fd);
        target->fd = fd;
        if (target->syslog)
            master_syslog_connect_target(master, target);
    }
}

/* Returns the new descriptor, or -errno: the old one stays in use. */
static int open_error_log(struct master *master, struct str path, const struct syslog *syslog)
{
    int fd = generation_open_log(master, path, syslog);
    int result = fd >= 0 && syslog ? syslog_connect(fd, syslog) : 0;

    if (result < 0) {
        close(fd);
        return result; /* master_syslog_check connects the socket that stays in use */
    }
    if (fd < 0)
        log_write(&master->error_log.log, LOG_ALERT,
                  "error_log \"" STR_FMT "\" cannot be opened again (%d: %s): the old one stays in use", STR_ARG(path),
                  -fd, strerror(-fd));
    return fd;
}

/* The generation that has selected this log may have ended. Returns false if it cannot be opened. */
static bool reopen_log_of_master(struct master *master)
{
    struct error_log *error_log = &master->error_log;
    int fd = open_error_log(master, str_from(master->error_log_path),
                            error_log->is_syslog ? &error_log->syslog : NULL);

    if (fd >= 0)
        error_log_replace(error_log, fd);
    return fd >= 0;
}

/* `reopened`: that of the master could be opened. */
static void reopen_error_log(struct master *master, struct generation *generation, bool reopened)
{
    struct str path = generation_error_log(master, generation);
    int fd;

    if (!reopened && str_equal(path, str_from(master->error_log_path)))
        return;
    fd = open_error_log(master, path, generation_error_syslog(master, generation));
    if (fd < 0)
        return;
    children_send(master, generation, CHANNEL_ERROR_LOG, 0, fd);
    close(fd);
}

void master_reopen_logs(struct master *master)
{
    bool reopened;

    log_write(&master->error_log.log, LOG_NOTICE, "signal USR1: reopening the logs");
    reopened = reopen_log_of_master(master);
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        reopen_error_log(master, generation, reopened);
        reopen_access_logs(master, generation);
        master_otlp_reopen(master, generation);
    }
    master_acme_reopen(master);
}
