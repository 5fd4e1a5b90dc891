/*
 * What a process may do: the file limit, and giving up root. Nothing in here logs; errors say which
 * step failed.
 */
#ifndef MASTER_PRIVILEGES_H
#define MASTER_PRIVILEGES_H

#include "base/str.h"

#include <sys/types.h>

struct identity {
    char name[64];
    uid_t user;
    gid_t group;
};

/* Looks `user` up ("nobody" where it is empty), and `group` (the user's own where it is empty). 0, -ENOENT with `*out_missing` naming "user" or "group", or -errno. */
MUST_CHECK int identity_find(struct str user, struct str group, struct identity *out_identity, const char **out_missing);

/*
 * Becomes `identity` for good: groups, group, user; keeps no capability, can gain none again (PR_SET_NO_NEW_PRIVS). Only for root; for others
 * only PR_SET_NO_NEW_PRIVS is set. 0 or -errno with the step that failed in *out_step.
 */
MUST_CHECK int privileges_drop(const struct identity *identity, const char **out_step);

/* Raises RLIMIT_NOFILE to its hard limit; the limit that holds now. */
uint64_t privileges_raise_files(void);

#endif
