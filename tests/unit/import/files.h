/* A file system in memory, for the importer. A pattern matches all paths that begin with the text before its star. */
#ifndef TEST_IMPORT_FILES_H
#define TEST_IMPORT_FILES_H

#include "import/nginx_tree.h"

struct memory_file {
    const char *path, *text;        /* NULL in the last row */
};

/* `rows` must outlive the result. */
struct nginx_files memory_files(const struct memory_file *rows);

#endif
