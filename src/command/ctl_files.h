/*
 * Compares the files that the running configuration was loaded from with those on disk: `sluice ctl configuration
 * diff`.
 */
#ifndef COMMAND_CTL_FILES_H
#define COMMAND_CTL_FILES_H

#include "base/arena.h"
#include "base/buffer.h"

/*
 * States of a file. New: an include reads it now. Unused: no include reads it any more. Unreadable: it is not a regular
 * file, or the caller has no permission.
 */
enum ctl_file_state { CTL_UNCHANGED, CTL_CHANGED, CTL_MISSING, CTL_NEW, CTL_UNUSED, CTL_UNREADABLE };

struct ctl_file {
    struct str path;                /* absolute, followed by a NUL; in the arena */
    struct str digest;              /* when it was loaded, followed by a NUL; empty: it was not */
    enum ctl_file_state state;
    struct ctl_file *next;
};

/* The files in the order of their loading, then the new ones. */
struct ctl_files {
    struct arena *arena;            /* not owned */
    struct ctl_file *first, *last;  /* NULL: none */
    bool incomplete;                /* the files on disk have errors: new files may be absent from the list */
};

/*
 * Compares with the files on disk. `rows`: the response of GET /v1/configuration/files?format=table. Unreadable files
 * are reported by an error message. Returns 0, -EPROTO or -ENOMEM.
 */
MUST_CHECK int ctl_files_compare(struct ctl_files *files, struct str rows);
/* Appends lines for ctl_table_print, or JSON. 0 or -ENOMEM. */
MUST_CHECK int ctl_files_print(const struct ctl_files *files, bool json, struct buffer *out);
/* Exit status as that of diff(1): 0 equal, 1 different, 2 unknown because a file is unreadable. */
int ctl_files_status(const struct ctl_files *files);

#endif
