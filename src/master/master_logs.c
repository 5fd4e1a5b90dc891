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

/* Every generation has its own error log; the master writes to the newest one. */
static void reopen_error_log(struct master *master, struct generation *generation)
{
    const struct syslog *syslog = generation_error_syslog(master, generation);
    int fd = generation_open_log(master, generation_error_log(master, generation), syslog);

    if (fd >= 0 && syslog && syslog_connect(fd, syslog) < 0) {
        close(fd);
        return; /* master_syslog_check connects the socket that stays in use */
    }
    if (fd < 0) {
        log_write(&master->error_log.log, LOG_ALERT, "error_log cannot be opened again (%d: %s): the old one stays "
                                                     "in use",
                  -fd, strerror(-fd));
        return;
    }
    children_send(master, generation, CHANNEL_ERROR_LOG, 0, fd);
    if (generation->link.next == &master->generations)
        error_log_replace(&master->error_log, fd);
    else
        close(fd);
}

void master_reopen_logs(struct master *master)
{
    log_write(&master->error_log.log, LOG_NOTICE, "signal USR1: reopening the logs");
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *generation = container_of(link, struct generation, link);

        reopen_error_log(master, generation);
        reopen_access_logs(master, generation);
        master_otlp_reopen(master, generation);
    }
    master_acme_reopen(master);
}
