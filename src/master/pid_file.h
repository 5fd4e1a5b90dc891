/*
 * The pid file, for `-s` and for init systems. The running master holds a lock on it, so that a file
 * left by a crashed master is detected without comparing process ids.
 */
#ifndef MASTER_PID_FILE_H
#define MASTER_PID_FILE_H

#include "base/must_check.h"

#include <sys/types.h>

/* Suffix of the pid file of a master that is being replaced. */
#define PID_FILE_OLD ".oldbin"

struct pid_file {
    char path[4096];                /* empty: none */
    int fd;                         /* holds the lock; -1: none */
};

/*
 * Returns the pid > 0 of the process that holds the lock; 0 if the file is stale; -ENOENT if there is no file;
 * -EINVAL if it contains no number; or -errno.
 */
MUST_CHECK long pid_file_owner(const char *path);
/*
 * Writes this process's pid atomically (to a temporary file that is renamed) and takes the lock. Returns 0, -EEXIST
 * if a running master holds it, or -errno.
 */
MUST_CHECK int pid_file_write(struct pid_file *file, const char *path);
/*
 * Renames the file to `path`.oldbin (as nginx does in an upgrade), and back. The lock stays. Returns 0 or -errno;
 * without a file 0.
 */
MUST_CHECK int pid_file_set_aside(struct pid_file *file);
MUST_CHECK int pid_file_restore(struct pid_file *file);
/* Removes the file if this process still owns it. Accepts one that was never written. */
void pid_file_remove(struct pid_file *file);
/* In a worker: closes the descriptor without removing or unlocking the file. */
void pid_file_close(struct pid_file *file);

#endif
