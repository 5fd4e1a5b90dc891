/*
 * Folders that workers write: those of temporary files, and of caches.
 */
#ifndef SITE_FOLDERS_H
#define SITE_FOLDERS_H

#include "site/configuration.h"

#include <sys/types.h>

/*
 * Makes the folders of temporary files that are missing, each in a folder that is there, and gives them to `user` and `group` (-1: unchanged).
 * 0, or -errno: said in the log.
 */
MUST_CHECK int folders_make(const struct conf_words *folders, uid_t user, gid_t group, struct log *log);
/* For a worker: one line of level error for each folder that it cannot write, with the way out. `user`: its name, for that line. */
void folders_check(const struct configuration *configuration, const char *user, struct log *log);

#endif
