/*
 * Drops root: first supplementary groups and group, which only root can change, then the user; then verifies that
 * root cannot be regained.
 */
#include "master/privileges.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static int find_group(struct str group, gid_t *out_group)
{
    char name[64];
    char space[4096];
    struct group entry;
    struct group *found = NULL;
    int error;

    if (group.length >= sizeof(name))
        return -ENOENT;
    snprintf(name, sizeof(name), STR_FMT, STR_ARG(group));
    error = getgrnam_r(name, &entry, space, sizeof(space), &found);
    if (!found)
        return error && error != ENOENT ? -error : -ENOENT;
    *out_group = entry.gr_gid;
    return 0;
}

int identity_find(struct str user, struct str group, struct identity *out_identity, const char **out_missing)
{
    struct identity identity = {0};
    char space[4096];
    struct passwd entry;
    struct passwd *found = NULL;
    int error;

    *out_missing = "user";
    if (str_empty(user))
        user = STR("nobody");
    if (user.length >= sizeof(identity.name))
        return -ENOENT;
    snprintf(identity.name, sizeof(identity.name), STR_FMT, STR_ARG(user));
    error = getpwnam_r(identity.name, &entry, space, sizeof(space), &found);
    if (!found)
        return error && error != ENOENT ? -error : -ENOENT;
    identity.user = entry.pw_uid;
    identity.group = entry.pw_gid;
    *out_missing = "group";
    if (!str_empty(group)) {
        error = find_group(group, &identity.group);
        if (error < 0)
            return error;
    }
    *out_identity = identity;
    return 0;
}

/* Replaces root's supplementary groups by those of the user. */
static int set_groups(const struct identity *identity)
{
    return initgroups(identity->name, identity->group);
}

int privileges_drop(const struct identity *identity, const char **out_step)
{
    *out_step = "prctl(PR_SET_NO_NEW_PRIVS)";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (geteuid() != 0)
        return 0;
    *out_step = "initgroups()";
    if (set_groups(identity) < 0)
        return -errno;
    *out_step = "setgid()";
    if (setresgid(identity->group, identity->group, identity->group) < 0)
        return -errno;
    *out_step = "setuid()";
    if (setresuid(identity->user, identity->user, identity->user) < 0)
        return -errno;
    /*
     * The kernel clears all capability sets with the last user id 0 (capabilities(7)), unless the target is root
     * itself.
     */
    *out_step = "dropping root privileges";
    if (identity->user != 0 && setuid(0) == 0)
        return -EPERM;
    /*
     * setuid makes the process not dumpable, and it stays so: its memory contains private keys, which other processes
     * of this user must not read.
     */
    return 0;
}

uint64_t privileges_raise_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}
