/*
 * Gives up rights in the order that the kernel requires: some steps need root, and a change of the user undoes others.
 */
#include "server/worker_sandbox.h"

#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int drop_root_privileges(const struct worker_start *start, struct log *log)
{
    const char *step;
    int result;

    if (!start->identity)
        return 0;
    result = privileges_drop(start->identity, &step);
    if (result < 0)
        log_write(log, LOG_EMERG, "%s for user \"%s\" failed (%d: %s)", step, start->identity->name, -result,
                  strerror(-result));
    return result;
}

/*
 * The kernel terminates the worker when its master dies. Called late: a change of user clears this flag (prctl(2)).
 */
static int die_with_master(pid_t master)
{
    if (master == 0)
        return 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    return getppid() == master ? 0 : -ESRCH;
}

/* Only the first worker logs the parts. */
static int apply_sandbox(struct worker *worker, const struct worker_start *start)
{
    const struct sandbox sandbox = {.parts = worker->configuration->main->sandbox,
                                    .io_uring = str_equal(str_from(worker->loop.backend->name), STR("io_uring")),
                                    .denied_call = &worker->shared->workers[worker->shared_index].denied_call};
    struct log once = *worker->log;

    if (start->number > 0 && once.level > LOG_ERROR)
        once.level = LOG_ERROR;
    return sandbox_apply(&sandbox, &once);
}

int worker_restrict(struct worker *worker, const struct worker_start *start)
{
    unsigned parts = start->trace ? 0 : worker->configuration->main->sandbox;
    int result = sandbox_begin(parts);

    if (result < 0)
        log_write(worker->log, LOG_EMERG, "sandbox: prctl(PR_CAPBSET_DROP) failed (%d: %s)", -result,
                  strerror(-result));
    if (result == 0)
        result = drop_root_privileges(start, worker->log);
    if (result == 0)
        result = die_with_master(start->master);
    if (result == 0 && !start->trace)
        result = apply_sandbox(worker, start);
    return result;
}
