/*
 * Log descriptors, opened so that writing never blocks, not even on a pipe without an active reader or a terminal that
 * is stopped by ^S.
 */
#ifndef LOG_LOG_FILE_H
#define LOG_LOG_FILE_H

#include "base/str.h"

/*
 * Opens a log for appending: a path, "stdout" or "stderr". Creates absent files with mode 0644. Pipes, FIFOs and
 * terminals get a description of their own with O_NONBLOCK if possible (on the inherited one it would affect other
 * processes).
 * Returns a close-on-exec descriptor that the caller owns, or -errno.
 */
MUST_CHECK int log_file_open(struct str path);

/* Writes once, without blocking. Returns false if not all bytes were written: the caller counts the loss. */
bool log_file_write(int fd, struct str bytes);

#endif
