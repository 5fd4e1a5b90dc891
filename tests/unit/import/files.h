/*
 * Files that are texts in memory, for includes: a pattern names what begins as it does, up to its star.
 */
#ifndef TEST_IMPORT_FILES_H
#define TEST_IMPORT_FILES_H

#include "import/nginx_tree.h"

struct memory_file {
    const char *path, *text;        /* the last one has neither */
};

/* Sees the row of files at `rows`, which outlives it. */
struct nginx_files memory_files(const struct memory_file *rows);

#endif
