/*
 * Texts of files: read, and compared by diff(1).
 */
#ifndef COMMAND_FILE_TEXT_H
#define COMMAND_FILE_TEXT_H

#include "base/buffer.h"

struct stat;

/* Reads a whole file ("-": standard input), up to a little more than LIMIT_CONF_FILE bytes. Returns 0 or -errno. */
MUST_CHECK int file_text_read(const char *path, struct buffer *out, struct stat *out_status);
/*
 * Prints the lines that differ by `diff -u` on standard output, which is flushed before. Returns 0: equal; 1:
 * different; -ENOENT: diff is not installed; or another -errno.
 */
MUST_CHECK int file_text_diff(const char *old_label, struct str old, const char *new_label, struct str new);

#endif
