/*
 * The part `seccomp`: a list of allowed system calls, by libseccomp. Any other call ends the worker by SIGSYS; the
 * handler first stores its number for the master's log.
 */
#include "sandbox/sandbox_part.h"
#include "sandbox/seccomp_calls.h"

#include "build_options.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The address for the number of a denied call; global, because a signal handler has no argument. */
static uint64_t *denied;

/*
 * SA_RESETHAND has restored the default action, so that the second signal ends the process. A process that blocks
 * SIGSYS is ended by the kernel.
 */
static void call_denied(int number, siginfo_t *from, void *context)
{
    __atomic_store_n(denied, (uint64_t)(uint32_t)from->si_syscall + 1, __ATOMIC_RELAXED);
    raise(SIGSYS);
    _exit(128 + SIGSYS);
}

static int install_handler(uint64_t *slot)
{
    struct sigaction action = {.sa_sigaction = call_denied, .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};

    denied = slot;
    return sigaction(SIGSYS, &action, NULL) < 0 ? -errno : 0;
}

static bool is_used(enum seccomp_use use, const struct sandbox *sandbox)
{
    return use == SECCOMP_ALWAYS || (use == SECCOMP_URING && sandbox->io_uring) ||
           (use == SECCOMP_SANITIZED && BUILD_SANITIZED);
}

/* A call that this architecture or this libseccomp does not have is skipped. -EEXIST: a wider rule allows it. */
static int add_rule(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned count,
                    const struct scmp_arg_cmp *conditions)
{
    int number = seccomp_syscall_resolve_name(name);
    int result;

    if (number < 0)
        return 0;
    result = seccomp_rule_add_array(filter, action, number, count, conditions);
    return result == -EEXIST ? 0 : result;
}

static int add_groups(scmp_filter_ctx filter, const struct sandbox *sandbox, unsigned *calls)
{
    int result = 0;

    for (const struct seccomp_group *group = seccomp_groups; group->calls && result == 0; group++) {
        for (size_t i = 0; is_used(group->use, sandbox) && group->calls[i] && result == 0; i++, ++*calls)
            result = add_rule(filter, SCMP_ACT_ALLOW, group->calls[i], 0, NULL);
    }
    if (result == 0)
        result = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SECCOMP_CACHESTAT, 0, NULL);
    return result;
}

static int add_rows(scmp_filter_ctx filter, const struct sandbox *sandbox, unsigned *calls)
{
    const char *before = "";
    int result = 0;

    for (const struct seccomp_row *row = seccomp_rows; row->call && result == 0; row++) {
        struct scmp_arg_cmp conditions[2];

        if (!is_used(row->use, sandbox))
            continue;
        for (unsigned i = 0; i < row->count; i++)
            conditions[i] = SCMP_CMP64(row->conditions[i].argument, SCMP_CMP_MASKED_EQ, row->conditions[i].mask,
                                       row->conditions[i].value);
        result = add_rule(filter, SCMP_ACT_ALLOW, row->call, row->count, conditions);
        *calls += strcmp(before, row->call) != 0;
        before = row->call;
    }
    return result;
}

/* Rules with values of this process, and errors that libc handles. */
static int add_own(scmp_filter_ctx filter, unsigned *calls)
{
    struct scmp_arg_cmp self = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)getpid());
    int result = add_rule(filter, SCMP_ACT_ALLOW, "tgkill", 1, &self); /* abort() */

    ++*calls;
    /* The flags of clone3 are in memory, which filters cannot read: libc uses clone instead. */
    return result < 0 ? result : add_rule(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
}

/*
 * SSB: omits the mitigation of speculative store bypass, with which kernels before 5.16 slow down every process that
 * has a filter. OPTIMIZE 2: a binary tree instead of a list. Old versions of libseccomp or of the kernel lack one or
 * the other.
 */
static int set_attributes(scmp_filter_ctx filter)
{
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
}

int seccomp_probe(char *note, size_t size)
{
    const uint32_t action = SECCOMP_RET_TRAP;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
        return 0;
    snprintf(note, size, "this kernel has no system call filters (CONFIG_SECCOMP_FILTER, Linux 4.14)");
    return -ENOTSUP;
}

int seccomp_apply(const struct sandbox *sandbox, struct sandbox_outcome *out_outcome)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
    unsigned calls = 0;
    int result = filter ? set_attributes(filter) : -ENOMEM;

    out_outcome->call = "building the filter";
    if (result == 0)
        result = add_groups(filter, sandbox, &calls);
    if (result == 0)
        result = add_rows(filter, sandbox, &calls);
    if (result == 0)
        result = add_own(filter, &calls);
    if (result == 0) {
        out_outcome->call = "sigaction()";
        result = install_handler(sandbox->denied_call);
    }
    if (result == 0) {
        out_outcome->call = "seccomp()";
        result = seccomp_load(filter);
    }
    seccomp_release(filter);
    snprintf(out_outcome->note, sizeof(out_outcome->note), "%u calls", calls);
    return result;
}

void sandbox_call_name(uint64_t denied_call, char *into, size_t size)
{
    int number = (int)(uint32_t)(denied_call - 1);
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);

    if (name)
        snprintf(into, size, "%s", name);
    else
        snprintf(into, size, "number %d", number);
    free(name);
}
