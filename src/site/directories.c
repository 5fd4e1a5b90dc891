/*
 * The master creates the directories, because it may be root; each worker checks that its own user can write to them.
 */
#include "site/directories.h"

#include "cache/cache_conf.h"
#include "io/owned_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int directories_create(const struct conf_words *directories, uid_t user, gid_t group, struct log *log)
{
    for (size_t i = 0; i < directories->count; i++) {
        const char *path = directories->items[i].data; /* terminated: a path of the configuration */
        int error = owned_directory_create(AT_FDCWD, path, 0700, user, group);

        if (error < 0) {
            log_write(log, LOG_EMERG, "the directory of temporary files \"%s\" cannot be created (%d: %s)", path,
                      -error, strerror(-error));
            return error;
        }
    }
    return 0;
}

static void check_directory(int directory, struct str path, const char *user, struct log *log)
{
    if (faccessat(directory, directory == AT_FDCWD ? path.data : ".", R_OK | W_OK | X_OK, AT_EACCESS) == 0)
        return;
    log_write(log, LOG_ERROR,
              "directory \"" STR_FMT "\": %s cannot write to it (%d: %s): nothing is stored in it; make that user its "
              "owner",
              STR_ARG(path), user, errno, strerror(errno));
}

void directories_check(const struct configuration *configuration, const char *user, struct log *log)
{
    const struct caches *caches = &configuration->caches;

    for (size_t i = 0; i < configuration->directories.count; i++)
        check_directory(AT_FDCWD, configuration->directories.items[i], user, log);
    for (size_t i = 0; i < caches->count; i++)
        check_directory(caches->items[i]->directory.fd, caches->items[i]->path, user, log);
}
