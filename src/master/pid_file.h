/*
 * The pid file: who runs, for `-s` and for init systems. The running master holds a lock
 * on it, so that a file left behind by a crash is told from a living one without guessing
 * by number.
 */
#ifndef MASTER_PID_FILE_H
#define MASTER_PID_FILE_H

#include "base/must_check.h"

#include <sys/types.h>

struct pid_file {
    char path[4096];                /* empty: none */
    int fd;                         /* holds the lock; -1: none */
};

/*
 * Who holds the file: a pid > 0 whose process lives and holds the lock; 0 where nobody does (a stale file counts as none); -ENOENT where
 * there is no file; -EINVAL where it holds no number; or -errno.
 */
MUST_CHECK long pid_file_owner(const char *path);
/* Writes our pid, whole or not at all (a file beside it is renamed over it), and takes the lock. 0, -EEXIST where a living master holds it, or -errno. */
MUST_CHECK int pid_file_write(struct pid_file *file, const char *path);
/* Removes the file if it is still ours. Accepts one that was never written. */
void pid_file_remove(struct pid_file *file);
/* In a worker: lets go of the descriptor without removing or unlocking anything. */
void pid_file_forget(struct pid_file *file);

#endif
