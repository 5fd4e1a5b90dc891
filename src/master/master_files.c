/*
 * The master checks the TLS files periodically. Changed and valid files are sent to the workers, for new
 * connections: a renewed certificate needs no reload. An incomplete file, or one that does not match its key,
 * changes nothing.
 */
#include "master/master_state.h"

#include "master/certificate_reload.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Returns the shortest interval of all servers with files; 0: no checks. */
static uint64_t valid_ms(const struct configuration *configuration)
{
    uint64_t shortest = 0;

    for (size_t i = 0; i < configuration->server_count; i++) {
        const struct virtual_server *server = configuration->servers[i];
        bool watched = server->files_stamp != 0 && server->files_valid_ms > 0;

        if (watched && (shortest == 0 || server->files_valid_ms < shortest))
            shortest = server->files_valid_ms;
    }
    return shortest;
}

static bool send_to_workers(struct master *master, struct generation *generation, size_t number,
                            const struct tls_files *files)
{
    const struct virtual_server *server = generation->configuration->servers[number];
    int fd = certificate_reload_pack(files);

    if (fd < 0) {
        log_write(&master->error_log.log, LOG_ALERT,
                  "changed TLS files could not be sent to the workers (%d: %s)", -fd, strerror(-fd));
        return false;
    }
    children_send(master, generation, CHANNEL_CERTIFICATES, (uint32_t)number, fd);
    close(fd);
    log_write(&master->error_log.log, LOG_NOTICE,
              "TLS files of server \"" STR_FMT "\" have changed: new connections use them",
              STR_ARG(server->name));
    return true;
}

/*
 * The stamp is taken before the files are read, so the next check detects a change in between. Rejected files are
 * tried again, because the cause may be outside the files; the rejection is logged once.
 */
static void check_server_files(struct master *master, struct generation *generation, size_t number)
{
    const struct configuration *configuration = generation->configuration;
    struct virtual_server *server = configuration->servers[number];
    uint64_t stamp = tls_files_stamp(&server->tls);
    struct tls_files files = {NULL, 0};
    struct log log = master->error_log.log;

    if (stamp == server->files_stamp)
        return;
    if (stamp == server->files_rejected)
        log.level = LOG_ALERT;
    server->files_rejected = stamp;
    /* Applied in the master, too: workers forked later inherit the files. */
    if (certificate_reload_read(server, &files, &log) == 0 &&
        certificate_reload_apply(configuration, number, &files, &log) == 0 &&
        send_to_workers(master, generation, number, &files))
        server->files_stamp = stamp;
    tls_files_finish(&files);
}

int master_files_next_ms(const struct master *master)
{
    const struct generation *generation = master->current;
    uint64_t valid =
        generation && generation->phase == PHASE_RUNNING ? valid_ms(generation->configuration) : 0;

    return valid == 0 ? -1 : master_wait_ms(master, generation->files_checked_ms + valid);
}

void master_files_check(struct master *master)
{
    struct generation *generation = master->current;

    if (master_files_next_ms(master) != 0)
        return;
    generation->files_checked_ms = master->clock.monotonic_ms;
    for (size_t i = 0; i < generation->configuration->server_count; i++) {
        const struct virtual_server *server = generation->configuration->servers[i];

        if (server->files_stamp != 0 && server->files_valid_ms > 0)
            check_server_files(master, generation, i);
    }
}
