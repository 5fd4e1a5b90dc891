/*
 * Log descriptors: opened so that writing never waits, whatever stands behind
 * them (a file, a pipe that nobody reads, a terminal held by ^S).
 */
#ifndef LOG_LOG_FILE_H
#define LOG_LOG_FILE_H

#include "base/str.h"

/*
 * Opens a log for appending: a path, "stdout" or "stderr". Files are made with mode 0644 where absent. Pipes, FIFOs and
 * terminals get a description of their own that does not block (O_NONBLOCK on the one we share would change it for others). A
 * close-on-exec descriptor that the caller owns, or -errno.
 */
MUST_CHECK int log_file_open(struct str path);

/* One write, without waiting. False where the bytes did not all leave: the caller counts what it lost. */
bool log_file_write(int fd, struct str bytes);

#endif
