/*
 * An array of root directories and their descriptors, filled before privileges are dropped.
 */
#include "io/root_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

int root_directories_find(const struct root_directories *roots, struct str path)
{
    for (size_t i = 0; i < roots->count; i++) {
        if (str_equal(roots->items[i].path, path))
            return roots->items[i].fd;
    }
    return -ENOENT;
}

int root_directories_open(struct root_directories *roots, struct str path)
{
    char name[PATH_MAX];
    struct root_directory *items;
    int fd;

    if (path.length >= sizeof(name) || root_directories_find(roots, path) >= 0)
        return 0;
    memcpy(name, path.data, path.length);
    name[path.length] = '\0';
    fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    items = reallocarray(roots->items, roots->count + 1, sizeof(*items));
    if (!items) {
        close(fd);
        return -ENOMEM;
    }
    roots->items = items;
    roots->items[roots->count++] = (struct root_directory){.path = path, .fd = fd};
    return 0;
}

void root_directories_close(struct root_directories *roots)
{
    for (size_t i = 0; i < roots->count; i++)
        close(roots->items[i].fd);
    free(roots->items);
    *roots = (struct root_directories){0};
}
