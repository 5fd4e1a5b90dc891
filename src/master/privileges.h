/*
 * Process privileges: the limit of open files, and dropping root. These functions log nothing; they report the failed
 * step to the caller.
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

/*
 * Finds `user` ("nobody" if empty) and `group` (the user's own if empty). Returns 0, -ENOENT with `*out_missing`
 * naming "user" or "group", or -errno.
 */
MUST_CHECK int identity_find(struct str user, struct str group, struct identity *out_identity,
                             const char **out_missing);

/*
 * Becomes `identity` permanently: groups, group, user; keeps no capabilities and cannot gain any
 * (PR_SET_NO_NEW_PRIVS). Without root only PR_SET_NO_NEW_PRIVS is set. Returns 0, or -errno with the failed step in
 * *out_step.
 */
MUST_CHECK int privileges_drop(const struct identity *identity, const char **out_step);

/* Raises RLIMIT_NOFILE to its hard limit. Returns the current limit. */
uint64_t privileges_raise_files(void);

#endif
