/*
 * Attributes of the process itself: capabilities(7) and PR_SET_DUMPABLE.
 */
#include "sandbox/sandbox_part.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int bounding_set_drop(void)
{
    /* The kernel may have more capabilities than the headers: reading the first unknown one fails. */
    for (unsigned long number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++) {
        if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
            return errno == EPERM ? 0 : -errno;
    }
    return 0;
}

/* A service manager may have given capabilities to a master without root (AmbientCapabilities=). */
int capabilities_apply(const struct sandbox *sandbox, struct sandbox_outcome *out_outcome)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    out_outcome->call = "prctl(PR_SET_NO_NEW_PRIVS)";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    out_outcome->call = "prctl(PR_CAP_AMBIENT_CLEAR_ALL)";
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    out_outcome->call = "capset()";
    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* The kernel clears this attribute at a change of the user, too, except with fs.suid_dumpable=2. */
int no_dump_apply(const struct sandbox *sandbox, struct sandbox_outcome *out_outcome)
{
    out_outcome->call = "prctl(PR_SET_DUMPABLE)";
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
