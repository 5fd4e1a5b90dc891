/*
 * Directories written by workers: for temporary files and caches.
 */
#ifndef SITE_DIRECTORIES_H
#define SITE_DIRECTORIES_H

#include "site/configuration.h"

#include <sys/types.h>

/*
 * Creates missing directories of temporary files (the parent must exist), owned by `user` and `group` (-1:
 * unchanged). Returns 0, or -errno after logging it.
 */
MUST_CHECK int directories_create(const struct conf_words *directories, uid_t user, gid_t group, struct log *log);
/*
 * For a worker: logs one line of level error, with the remedy, for each directory that it cannot write. `user`: its
 * name, for that line.
 */
void directories_check(const struct configuration *configuration, const char *user, struct log *log);

#endif
