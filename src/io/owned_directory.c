/*
 * Changes mode and owner of the new directory by its descriptor, never by its path.
 */
#include "io/owned_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int change_owner(int fd, mode_t mode, uid_t user, gid_t group)
{
    struct stat state;

    if (fstat(fd, &state) < 0)
        return -errno;
    if (state.st_uid != geteuid()) /* another directory has taken its place */
        return -EPERM;
    if (fchmod(fd, mode) < 0 || (user != (uid_t)-1 && fchown(fd, user, group) < 0))
        return -errno;
    return 0;
}

int owned_directory_create(int at, const char *path, mode_t mode, uid_t user, gid_t group)
{
    int fd, error;

    if (mkdirat(at, path, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    error = change_owner(fd, mode, user, group);
    close(fd);
    return error;
}
