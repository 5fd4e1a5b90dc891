/*
 * The pid file of the master.
 */
#include "master/master_state.h"

#include <errno.h>
#include <string.h>

int master_write_pid(struct master *master, const struct configuration *configuration)
{
    struct str path = configuration->main->pid;
    bool chosen = conf_map_get(configuration->tree, STR("pid")) != NULL;
    char name[sizeof(master->pid_file.path)];
    int result = -ENAMETOOLONG;

    if (path.length < sizeof(name)) {
        memcpy(name, path.data, path.length);
        name[path.length] = '\0';
        result = pid_file_write(&master->pid_file, name);
    }
    if (result == 0)
        return 0;
    if (result == -EEXIST)
        log_write(&master->error_log.log, chosen ? LOG_EMERG : LOG_NOTICE,
                  "pid file \"%s\": process %ld already uses it%s", name, pid_file_owner(name),
                  chosen ? "" : "; continuing without a pid file (set one with pid:)");
    else
        log_write(&master->error_log.log, chosen ? LOG_EMERG : LOG_NOTICE, "pid file \"" STR_FMT "\": %s%s",
                  STR_ARG(path), strerror(-result),
                  chosen ? "" : "; continuing without a pid file (set one with pid:)");
    return chosen ? result : 0;
}
