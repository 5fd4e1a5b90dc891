/*
 * Translates nginx's configuration. A table of rules (import_rules.c) covers nginx's directives; others are carried
 * over if sluice has a directive of the same name. A directive that cannot be carried over, or has another meaning in
 * sluice, becomes a note with its position. The import opens files only by the functions of struct nginx_files.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include "conf/conf_schema.h"
#include "import/nginx_tree.h"

enum import_note_kind {
    IMPORT_OMITTED,                 /* not carried over */
    IMPORT_CHANGED,                 /* carried over with another meaning */
    IMPORT_FILE_MISSING,            /* carried over, and names a file that this machine does not have */
    IMPORT_UNNEEDED,                /* not carried over, and not needed */
    IMPORT_NOTE_KINDS,
};

struct import_note {
    enum import_note_kind kind;
    struct nginx_place place;
    struct str directive;           /* as a line */
    struct str reason;              /* or remedy */
    struct import_note *next;
};

struct import_source {
    struct str path;                    /* nginx's main file */
    struct str prefix;                  /* start of nginx's relative paths; empty: derived from the path of the file */
    const struct nginx_files *files;
    const struct conf_schema *schema;   /* sluice's directives */
    /* The built-in media type of an extension; data NULL: none. */
    struct str (*media_type)(struct str extension);
};

struct import;

/*
 * Reads and translates. 0; -ENOMEM; or -EINVAL with *out_fault: nginx's file cannot be read or parsed. All memory of
 * the import is in `arena`.
 */
MUST_CHECK int import_read(struct arena *arena, const struct import_source *source, struct import **out_import,
                           struct nginx_fault *out_fault);

/* True if the result has a server; without one the printed configuration does not load. */
bool import_has_server(const struct import *import);

/* Appends the configuration as YAML; with `list`, followed by the notes as comments. 0 or -ENOMEM. */
MUST_CHECK int import_print(struct import *import, bool list, struct buffer *out);

/*
 * Handles a line of import_print's output that the loader rejected: omits its directive from further output, with a
 * note; a directive that only names a missing file stays, with a note. 1: changed, print again; 0: unchanged; -ENOENT:
 * the line has no directive, or belongs to http or stream as a whole; -ENOMEM.
 */
MUST_CHECK int import_reject(struct import *import, unsigned line, struct str why);

/* All notes; those of one file are sorted by line. */
const struct import_note *import_notes(const struct import *import);
/* The number of notes of a kind. */
size_t import_count(const struct import *import, enum import_note_kind kind);
/* Appends the notes as text lines, each after `margin`; nothing without notes. 0 or -ENOMEM. */
MUST_CHECK int import_list(const struct import *import, const char *margin, struct buffer *out);

#endif
