/*
 * Drops rights in the order that the kernel requires: some steps need root, and a change of the user undoes others.
 */
#include "server/worker_sandbox.h"

#include "sandbox/sandbox.h"
#include "site/worker_paths.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int drop_root_privileges(const struct worker_args *args, struct log *log)
{
    const char *step;
    int result;

    if (!args->identity)
        return 0;
    result = privileges_drop(args->identity, &step);
    if (result < 0)
        log_write(log, LOG_EMERG, "%s for user \"%s\" failed (%d: %s)", step, args->identity->name, -result,
                  strerror(-result));
    return result;
}

/*
 * The kernel terminates the worker when its master dies. Called late: a change of user clears this flag (prctl(2)).
 */
static int exit_with_master(pid_t master)
{
    if (master == 0)
        return 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    return getppid() == master ? 0 : -ESRCH;
}

/* Only the first worker logs the parts. */
static int apply_sandbox(struct worker *worker, const struct worker_args *args, const struct sandbox_paths *paths)
{
    const struct sandbox sandbox = {.parts = worker->configuration->main->sandbox,
                                    .paths = paths,
                                    .ports = &worker->ports,
                                    .io_uring = str_equal(str_from(worker->loop.backend->name), STR("io_uring")),
                                    .denied_call = &worker->shared->workers[worker->shared_index].denied_call};
    struct log once = *worker->log;

    if (args->number > 0 && once.level > LOG_ERROR)
        once.level = LOG_ERROR;
    return sandbox_apply(&sandbox, &once);
}

/* As root: roots may be below directories that the worker's user cannot enter. */
static int collect_rules(struct worker *worker, struct sandbox_paths *paths, struct sandbox_ports *ports)
{
    int result = worker_paths_collect(worker->configuration, paths);

    if (result == 0)
        result = worker_ports_collect(worker->configuration, ports);
    if (result < 0)
        log_write(worker->log, LOG_EMERG,
                  "sandbox: opening the configured directories failed (%d: %s); raise worker_rlimit_nofile, or write "
                  "sandbox without its part landlock",
                  -result, strerror(-result));
    return result;
}

static int begin_sandbox(struct worker *worker)
{
    int result = sandbox_begin(worker->configuration->main->sandbox);

    if (result < 0)
        log_write(worker->log, LOG_EMERG, "sandbox: prctl(PR_CAPBSET_DROP) failed (%d: %s)", -result,
                  strerror(-result));
    return result;
}

int worker_restrict(struct worker *worker, const struct worker_args *args)
{
    struct sandbox_paths paths = {0};
    bool sandboxed = !args->trace;
    bool confined = sandboxed && worker->configuration->main->sandbox & (1u << SANDBOX_LANDLOCK);
    int result = confined ? collect_rules(worker, &paths, &worker->ports) : 0;

    if (!confined || !sandbox_limits_ports())
        worker->ports.any = true;
    if (result == 0 && sandboxed)
        result = begin_sandbox(worker);
    if (result == 0)
        result = drop_root_privileges(args, worker->log);
    if (result == 0)
        result = exit_with_master(args->master);
    if (result == 0 && sandboxed)
        result = apply_sandbox(worker, args, &paths);
    sandbox_paths_close(&paths);
    return result;
}

bool worker_may_connect(const struct worker *worker, unsigned port)
{
    return sandbox_ports_permit(&worker->ports, port);
}
