/*
 * Creates the state folder, and locks it.
 */
#include "acme/acme_folder.h"

#include "io/owned_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* The user of the client owns the folder: it is opened without following a link, and its parts are created in it. */
static int create_parts(const char *state, uid_t user, gid_t group)
{
    static const struct {
        const char *name;
        mode_t mode;
    } parts[] = {{"challenges", 0755}, {"certificates", 0700}, {"clients", 0700}};
    int error = owned_directory_create(AT_FDCWD, state, 0711, user, group);
    int fd = error < 0 ? error : open(state, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error < 0 ? error : -errno;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && error == 0; i++)
        error = owned_directory_create(fd, parts[i].name, parts[i].mode, user, group);
    close(fd);
    return error;
}

int acme_folder_create(const struct acme *acme, uid_t user, gid_t group, struct log *log)
{
    int error = create_parts(acme->state.data, user, group);

    if (error < 0)
        log_write(log, LOG_EMERG,
                  "the state folder of acme \"" STR_FMT "\" cannot be created (%d: %s); "
                  "set acme.state to a folder that is no symbolic link",
                  STR_ARG(acme->state), -error, strerror(-error));
    return error;
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
    /*
     * Not flock(2): an NFS client passes locks of this kind to the server, which releases them when the client's
     * machine fails.
     */
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return fd;
    error = errno == EACCES ? -EAGAIN : -errno;
    close(fd);
    return error;
}
