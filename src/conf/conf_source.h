/*
 * The source of a configuration, read and validated before it is parsed. Private to the loader.
 */
#ifndef CONF_CONF_SOURCE_H
#define CONF_CONF_SOURCE_H

#include "conf/conf_tree.h"

/* One load: the main file and everything included. */
struct conf_loader {
    struct arena *arena;
    struct conf_errors *errors;
    unsigned files;
    struct conf_file *last;         /* the last one that was read; NULL: none */
    size_t nodes;                   /* expanded, over all files */
    bool stop;                      /* a cap was exceeded, or memory is out: nothing more is read */
};

/*
 * Reads a file ("-": standard input), or uses `text` if its data is not NULL. Validates size, encoding and control
 * bytes. NULL after an error, reported at `included_at` or in the file itself.
 */
struct conf_file *source_open(struct conf_loader *loader, struct str path, struct str text,
                              struct conf_mark included_at);

#endif
