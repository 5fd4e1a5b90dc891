/*
 * Creates the state folder, and locks it.
 */
#include "acme/acme_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int create(const char *path, mode_t mode, uid_t user, gid_t group)
{
    if (mkdir(path, mode) < 0)
        return errno == EEXIST ? 0 : -errno;
    if (chmod(path, mode) < 0) /* umask */
        return -errno;
    return user != (uid_t)-1 && chown(path, user, group) < 0 ? -errno : 0;
}

int acme_folder_create(const struct acme *acme, uid_t user, gid_t group, struct log *log)
{
    static const struct {
        const char *name;
        mode_t mode;
    } parts[] = {{"", 0711}, {"/challenges", 0755}, {"/certificates", 0700}, {"/clients", 0700}};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        int error = snprintf(path, sizeof(path), STR_FMT "%s", STR_ARG(acme->state), parts[i].name) >= PATH_MAX
                        ? -ENAMETOOLONG
                        : create(path, parts[i].mode, user, group);

        if (error < 0) {
            log_write(log, LOG_EMERG,
                      "the state folder of acme \"%s\" cannot be created (%d: %s); acme.state names another", path,
                      -error, strerror(-error));
            return error;
        }
    }
    return 0;
}

int acme_folder_lock(const struct acme *acme)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[PATH_MAX];
    int fd, error;

    if (snprintf(path, sizeof(path), STR_FMT "/lock", STR_ARG(acme->state)) >= PATH_MAX)
        return -ENAMETOOLONG;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    /* Not flock(2): NFS passes this kind to the server, which releases it when the machine that has it is gone. */
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return fd;
    error = errno == EACCES ? -EAGAIN : -errno;
    close(fd);
    return error;
}
