/*
 * The master creates the directories, because it may have the privileges; a worker checks them with its own.
 */
#include "site/folders.h"

#include "cache/cache_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_folder(const char *path, uid_t user, gid_t group)
{
    if (mkdir(path, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    return user != (uid_t)-1 && chown(path, user, group) < 0 ? -errno : 0;
}

int folders_make(const struct conf_words *folders, uid_t user, gid_t group, struct log *log)
{
    for (size_t i = 0; i < folders->count; i++) {
        const char *path = folders->items[i].data; /* terminated: a path of the configuration */
        int error = make_folder(path, user, group);

        if (error < 0) {
            log_write(log, LOG_EMERG, "the directory of temporary files \"%s\" cannot be created (%d: %s)", path,
                      -error, strerror(-error));
            return error;
        }
    }
    return 0;
}

static void check_folder(int folder, struct str path, const char *user, struct log *log)
{
    if (faccessat(folder, folder == AT_FDCWD ? path.data : ".", R_OK | W_OK | X_OK, AT_EACCESS) == 0)
        return;
    log_write(log, LOG_ERROR,
              "directory \"" STR_FMT "\": %s cannot write to it (%d: %s): nothing is stored in it; make that user its "
              "owner",
              STR_ARG(path), user, errno, strerror(errno));
}

void folders_check(const struct configuration *configuration, const char *user, struct log *log)
{
    const struct caches *caches = &configuration->caches;

    for (size_t i = 0; i < configuration->folders.count; i++)
        check_folder(AT_FDCWD, configuration->folders.items[i], user, log);
    for (size_t i = 0; i < caches->count; i++)
        check_folder(caches->items[i]->folder.fd, caches->items[i]->path, user, log);
}
