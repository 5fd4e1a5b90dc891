/*
 * The lists of paths and ports of a sandbox, filled while the process is not restricted yet.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_path(const struct sandbox_paths *paths, const struct stat *status, enum sandbox_access access)
{
    for (size_t i = 0; i < paths->count; i++) {
        const struct sandbox_path *path = &paths->items[i];

        if (path->inode == status->st_ino && path->device == status->st_dev && path->access == access)
            return true;
    }
    return false;
}

static int paths_append(struct sandbox_paths *paths, int fd, enum sandbox_access access)
{
    struct sandbox_path *items;
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (has_path(paths, &status, access))
        return 0;
    items = reallocarray(paths->items, paths->count + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    paths->items = items;
    items[paths->count++] = (struct sandbox_path){fd, access, status.st_dev, status.st_ino};
    return 1;
}

static int add_fd(struct sandbox_paths *paths, int fd, enum sandbox_access access)
{
    int result = paths_append(paths, fd, access);

    if (result <= 0)
        close(fd);
    return result < 0 ? result : 0;
}

/* Returns false if only "/" would be left. */
static bool remove_last_component(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

static int add_existing(struct sandbox_paths *paths, char *path, enum sandbox_access access)
{
    int fd;

    do
        fd = open(path, O_PATH | O_CLOEXEC);
    while (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && remove_last_component(path));
    if (fd >= 0)
        return add_fd(paths, fd, access);
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
}

/* Only links count: realpath also changes a path with "..". */
static bool has_link(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

    if (fd >= 0)
        close(fd);
    return fd < 0 && errno == ELOOP;
}

int sandbox_paths_add(struct sandbox_paths *paths, struct str path, enum sandbox_access access)
{
    char name[PATH_MAX], target[PATH_MAX];
    int error;

    while (path.length > 1 && path.data[path.length - 1] == '/')
        path.length--;
    if (path.length == 0 || path.length >= sizeof(name))
        return 0;
    memcpy(name, path.data, path.length);
    name[path.length] = '\0';
    if (has_link(name) && realpath(name, target) && remove_last_component(target)) {
        error = add_existing(paths, target, access);
        if (error < 0)
            return error;
    }
    return add_existing(paths, name, access);
}

void sandbox_paths_close(struct sandbox_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        close(paths->items[i].fd);
    free(paths->items);
    *paths = (struct sandbox_paths){0};
}

int sandbox_ports_add(struct sandbox_ports *ports, uint16_t port)
{
    uint16_t *items;

    for (size_t i = 0; i < ports->count; i++) {
        if (ports->items[i] == port)
            return 0;
    }
    items = reallocarray(ports->items, ports->count + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    ports->items = items;
    items[ports->count++] = port;
    return 0;
}

bool sandbox_ports_permit(const struct sandbox_ports *ports, unsigned port)
{
    for (size_t i = 0; i < ports->count && !ports->any; i++) {
        if (ports->items[i] == port)
            return true;
    }
    return ports->any || port == 0;
}

void sandbox_ports_finish(struct sandbox_ports *ports)
{
    free(ports->items);
    *ports = (struct sandbox_ports){0};
}
