/*
 * Directories that a privileged process creates for another user.
 */
#ifndef IO_OWNED_DIRECTORY_H
#define IO_OWNED_DIRECTORY_H

#include "base/must_check.h"

#include <sys/types.h>

/*
 * Creates `path`, relative to the directory `at` (AT_FDCWD: the current one), with this mode, regardless of the umask;
 * `user` and `group` become its owner, unless `user` is -1. An existing `path` is left unchanged. Returns 0 or -errno.
 *
 * The owner of the parent may replace the new directory at any time, for example by a link. The replacement keeps its
 * mode and owner, and the result is -ENOTDIR, -ENOENT or -EPERM.
 */
MUST_CHECK int owned_directory_create(int at, const char *path, mode_t mode, uid_t user, gid_t group);

#endif
