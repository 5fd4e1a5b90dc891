/*
 * The new process of a worker: closes unused descriptors, and runs the worker.
 */
#include "master/master_state.h"

#include "log/access_log.h"

#include <stdlib.h>
#include <unistd.h>

/* Closes the channels of the other workers of a generation, and of its exporter. */
static void close_channels(struct generation *generation)
{
    for (unsigned i = 0; i < generation->child_count; i++)
        child_channel_close(&generation->children[i]);
    fd_close(&generation->exporter.channel_fd);
}

static void close_generation(struct generation *generation)
{
    const struct configuration *configuration = generation->configuration;

    close_channels(generation);
    sockets_close(&generation->sockets, false);
    for (size_t i = 0; i < configuration->access_log_count; i++)
        fd_close(&configuration->access_logs[i]->fd);
    for (size_t i = 0; i < configuration->caches.count; i++)
        fd_close(&configuration->caches.items[i]->directory.fd);
}

/* Closes everything of the master, of other generations and of other workers. */
static void close_inherited(struct master *master, struct generation *generation, unsigned number)
{
    for (struct list *link = master->generations.next; link != &master->generations; link = link->next) {
        struct generation *other = container_of(link, struct generation, link);

        if (other != generation)
            close_generation(other);
    }
    close_channels(generation);
    sockets_close_others(&generation->sockets, number);
    fd_close(&master->signal_fd);
    fd_close(&master->renewal.channel_fd);
    pid_file_close(&master->pid_file);
    upgrade_close(&master->upgrade);
    fd_close(&master->report_fd);
}

/* Collects the sockets of one worker: one or more for each endpoint. */
static size_t worker_sockets_collect(const struct sockets *sockets, unsigned number, struct worker_socket *out)
{
    size_t count = 0;

    for (size_t i = 0; i < sockets->endpoints; i++) {
        for (unsigned slot = number; slot < sockets->slots; slot += sockets->workers) {
            int fd = sockets_get(sockets, i, slot);

            if (fd >= 0)
                out[count++] = (struct worker_socket){i, fd};
        }
    }
    return count;
}

_Noreturn void child_run(struct master *master, struct generation *generation, unsigned number, int channel_fd,
                         pid_t parent)
{
    const struct sockets *sockets = &generation->sockets;
    struct worker_socket *own = calloc(sockets->endpoints * sockets->slots + 1, sizeof(*own));
    int status = WORKER_EXIT_FAILED;

    close_inherited(master, generation, number);
    if (own) {
        struct worker_args args = {.configuration = generation->configuration,
                                   .shared = master->shared,
                                   .number = number,
                                   .workers = generation->child_count,
                                   .shared_index = (unsigned)generation->children[number].shared_index,
                                   .error_log = &master->error_log,
                                   .sockets = own,
                                   .socket_count = worker_sockets_collect(sockets, number, own),
                                   .channel_fd = channel_fd,
                                   .master = parent,
                                   .detached = master->detached,
                                   .identity = master->is_root ? &generation->identity : NULL};

        status = master->args->run_worker(&args);
    }
    free(own);
    free(generation->sockets.fds);
    free(generation->children);
    master_otlp_close(generation);
    configuration_destroy(generation->configuration);
    error_log_finish(&master->error_log);
    exit(status);
}
