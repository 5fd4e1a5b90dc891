/*
 * A generation: a configuration with its logs, its sockets and its workers' slots, opened before its first worker
 * is forked, and closed after its last one has exited.
 */
#include "master/master_state.h"

#include "base/limits.h"
#include "log/access_log.h"
#include "log/log_file.h"
#include "site/directories.h"
#include "tls/ktls.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned master_worker_count(const struct core_main *main)
{
    cpu_set_t cores;
    int count = 1;

    if (main->worker_processes > 0)
        return (unsigned)main->worker_processes;
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
        count = CPU_COUNT(&cores);
    return count > LIMIT_WORKERS ? LIMIT_WORKERS : (unsigned)count;
}

static bool on_terminal(struct str path)
{
    return str_equal(path, STR("stderr")) || str_equal(path, STR("stdout"));
}

/* A daemon opens /dev/null instead of the terminal; an inherited descriptor would keep a pipe open. */
int generation_open_log(const struct master *master, struct str path, const struct syslog *syslog)
{
    if (syslog)
        return syslog_open(syslog);
    if (master->detached && on_terminal(path))
        path = STR("/dev/null");
    return log_file_open(path);
}

struct str generation_error_log(const struct master *master, const struct generation *generation)
{
    const char *given = master->args->error_log;

    if (given && !conf_map_get(generation->configuration->tree, STR("error_log")))
        return str_from(given);
    return generation->configuration->main->error_log.path;
}

/* NULL: not a receiver, or -e names another log. */
const struct syslog *generation_error_syslog(const struct master *master, const struct generation *generation)
{
    const struct error_log_settings *settings = &generation->configuration->main->error_log;

    return generation_error_log(master, generation).data == settings->path.data ? settings->syslog : NULL;
}

int generation_use_error_log(struct master *master, const struct generation *generation)
{
    struct error_log *error_log = &master->error_log;
    const struct syslog *syslog = generation_error_syslog(master, generation);
    struct str path = generation_error_log(master, generation);
    int fd = generation_open_log(master, path, syslog);

    if (fd < 0) {
        log_write(&error_log->log, LOG_EMERG, "open() \"" STR_FMT "\" failed (%d: %s)", STR_ARG(path), -fd,
                  strerror(-fd));
        return fd;
    }
    if (master->detached && on_terminal(path))
        error_log_print(LOG_WARN, "error_log: a daemon has no " STR_FMT ": its lines are lost; name a file",
                        STR_ARG(path));
    error_log_set_destination(error_log, fd, syslog,
                              (enum error_log_format)generation->configuration->main->error_log.format);
    snprintf(master->error_log_path, sizeof(master->error_log_path), STR_FMT, STR_ARG(path));
    error_log->is_stderr = !master->detached && str_equal(path, STR("stderr"));
    error_log->log.level = generation->log_level;
    master_syslog_connect(master);
    return 0;
}

static int open_access_logs(struct master *master, struct generation *generation)
{
    struct configuration *configuration = generation->configuration;

    for (size_t i = 0; i < configuration->access_log_count; i++) {
        struct access_log_target *target = configuration->access_logs[i];

        target->fd = generation_open_log(master, target->path, target->syslog);
        if (target->fd < 0) {
            log_write(&master->error_log.log, LOG_EMERG, "open() \"" STR_FMT "\" failed (%d: %s)",
                      STR_ARG(target->path), -target->fd, strerror(-target->fd));
            return target->fd;
        }
        if (target->syslog)
            master_syslog_connect_target(master, target);
    }
    return 0;
}

static int create_directories(struct master *master, struct generation *generation)
{
    uid_t user = master->is_root ? generation->identity.user : (uid_t)-1;
    gid_t group = master->is_root ? generation->identity.group : (gid_t)-1;

    return directories_create(&generation->configuration->directories, user, group, &master->error_log.log);
}

static int open_caches(struct master *master, struct generation *generation)
{
    const struct caches *before = master->current ? &master->current->configuration->caches : NULL;
    uid_t user = master->is_root ? generation->identity.user : (uid_t)-1;
    gid_t group = master->is_root ? generation->identity.group : (gid_t)-1;

    return caches_open(&generation->configuration->caches, before, user, group, &master->error_log.log);
}

static int open_limits(struct master *master, struct generation *generation)
{
    const struct limits *before = master->current ? &master->current->configuration->limits : NULL;

    return limits_open(&generation->configuration->limits, before, &master->error_log.log);
}

static int open_session_caches(struct master *master, struct generation *generation)
{
    const struct session_caches *before = master->current ? &master->current->configuration->session_caches : NULL;

    return session_caches_open(&generation->configuration->session_caches, before, &master->error_log.log);
}

static int open_status_zones(struct master *master, struct generation *generation)
{
    const struct status_zones *before = master->current ? &master->current->configuration->zones : NULL;

    return status_zones_open(&generation->configuration->zones, before, master->shared->slot_count);
}

static int check_files(struct master *master, struct generation *generation)
{
    const struct configuration *configuration = generation->configuration;
    uint64_t limit = privileges_raise_files();
    uint64_t connections = configuration->main->worker_connections;

    /* Two descriptors per connection (socket and file), one per endpoint, 32 for logs and the loop. */
    if (2 * connections + configuration->endpoint_count + 32 > limit)
        log_write(&master->error_log.log, LOG_WARN,
                  "%llu worker_connections may need more than the %llu files that this process may open "
                  "(RLIMIT_NOFILE); at the limit no connections are accepted",
                  (unsigned long long)connections, (unsigned long long)limit);
    return 0;
}

static int find_identity(struct master *master, struct generation *generation)
{
    const struct core_main *main = generation->configuration->main;
    const char *missing;
    int result;

    if (!master->is_root) {
        /* No warning if the server was started as the configured user, for example by a service manager. */
        if (!str_empty(main->user) && !(identity_find(main->user, main->group, &generation->identity, &missing) == 0 &&
                                        generation->identity.user == geteuid()))
            log_write(&master->error_log.log, LOG_WARN, "\"user\" is ignored, because the master is not root");
        return 0;
    }
    result = identity_find(main->user, main->group, &generation->identity, &missing);
    if (result < 0)
        log_write(&master->error_log.log, LOG_EMERG, "user: there is no %s \"" STR_FMT "\"", missing,
                  STR_ARG(missing[0] == 'g'       ? main->group
                          : str_empty(main->user) ? STR("nobody")
                                                  : main->user));
    return result;
}

static int make_children(struct master *master, struct generation *generation)
{
    unsigned count = master_worker_count(generation->configuration->main);

    generation->children = calloc(count, sizeof(*generation->children));
    if (!generation->children)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        int slot = shared_slot_acquire(master->shared);

        if (slot < 0) {
            log_write(&master->error_log.log, LOG_EMERG,
                      "there is no room for %u workers: too many workers of earlier configurations are still "
                      "running; worker_shutdown_timeout limits how long",
                      count);
            return slot;
        }
        generation->children[i] =
            (struct child){.shared_index = slot, .channel_fd = -1, .acceptor = -1, .restart_ms = 1};
        list_init(&generation->children[i].queued);
        generation->child_count++;
    }
    return 0;
}

/* The last step of the start, because the kernel queues connections from now on: a later failure would reset them. */
static int open_sockets(struct master *master, struct generation *generation)
{
    const struct sockets *before = master->current ? &master->current->sockets : listen_fds_sockets(master->passed);
    int result = sockets_open(&generation->sockets, generation->configuration, generation->child_count, before,
                              &master->error_log.log);

    if (result == 0) {
        listen_fds_finish(master->passed, generation->configuration, upgrade_shares_sockets(master),
                          &master->error_log.log);
        master->passed = NULL;
    }
    return result;
}

struct generation *generation_open(struct master *master, struct configuration *configuration)
{
    static int (*const steps[])(struct master *master, struct generation *generation) = {
        find_identity, check_files, make_children, master_otlp_open, open_access_logs, create_directories, open_caches,
        open_limits, open_session_caches, open_status_zones, master_acme_open, master_ktls_probe, master_aead_choose,
        master_ktls_choose, master_tickets_open, open_sockets,
    };
    struct generation *generation = calloc(1, sizeof(*generation));
    int result;

    if (!generation) {
        log_write(&master->error_log.log, LOG_EMERG, "out of memory");
        configuration_destroy(configuration);
        return NULL;
    }
    generation->configuration = configuration;
    generation->exporter.channel_fd = -1;
    generation->log_level = configuration->main->error_log.level;
    configuration->number = master->switches + 1;
    for (size_t i = 0; i < configuration->access_log_count; i++)
        configuration->access_logs[i]->fd = -1;
    list_push(&master->generations, &generation->link);
    result = generation_use_error_log(master, generation);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && result == 0; i++)
        result = steps[i](master, generation);
    if (result == 0)
        return generation;
    if (result == -ENOMEM)
        log_write(&master->error_log.log, LOG_EMERG, "out of memory");
    generation_close(master, generation);
    return NULL;
}

static void close_access_logs(struct configuration *configuration)
{
    for (size_t i = 0; i < configuration->access_log_count; i++) {
        struct access_log_target *target = configuration->access_logs[i];

        if (target->fd >= 0)
            close(target->fd);
        target->fd = -1;
    }
}

void generation_close(struct master *master, struct generation *generation)
{
    const struct generation *current = master->current;

    generation->sockets.keep_paths |= upgrade_shares_sockets(master);
    if (current && current != generation)
        sockets_close_except(&generation->sockets, &current->sockets);
    else
        sockets_close(&generation->sockets, !master->failed);
    for (unsigned i = 0; i < generation->child_count; i++) {
        if (generation->children[i].shared_index >= 0)
            shared_slot_release(master->shared, (unsigned)generation->children[i].shared_index);
    }
    close_access_logs(generation->configuration);
    caches_close(&generation->configuration->caches);
    limits_close(&generation->configuration->limits);
    session_caches_close(&generation->configuration->session_caches);
    status_zones_close(&generation->configuration->zones);
    master_otlp_close(generation);
    free(generation->children);
    list_remove(&generation->link);
    configuration_destroy(generation->configuration);
    if (master->current == generation)
        master->current = NULL;
    if (master->next_generation == generation)
        master->next_generation = NULL;
    free(generation);
}
