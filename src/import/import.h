/*
 * nginx's configuration as sluice's: what is known of nginx's directives is a table of rules (import_rules.c); what is
 * not is carried by the tables of sluice's own directives, which have nginx's names. Whatever cannot be carried, or
 * means something else here, is a note with its place. Nothing is opened in here but through `files`.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include "conf/conf_schema.h"
#include "import/nginx_tree.h"

enum import_verdict {
    IMPORT_LEFT_OUT,                /* it is not carried */
    IMPORT_CHANGED,                 /* it is, and means something else */
    IMPORT_ABSENT,                  /* it is, and names something that this machine does not have */
    IMPORT_NEEDLESS,                /* it is not carried, and nothing is missed */
    IMPORT_VERDICTS,
};

struct import_note {
    enum import_verdict verdict;
    struct nginx_place place;
    struct str what;                /* the directive's line */
    struct str why;                 /* the reason, or the way out */
    struct import_note *next;
};

struct import_source {
    struct str path;                /* nginx's main file */
    struct str prefix;              /* where nginx's relative paths start; empty: guessed by the place of the file */
    const struct nginx_files *files;
    const struct conf_schema *schema; /* sluice's own directives */
    /* The media type that sluice has built in for an extension; data NULL: none. */
    struct str (*media_type)(struct str extension);
};

struct import;

/*
 * Reads and translates. 0; -ENOMEM; or -EINVAL with *out_fault where nginx's file cannot be read. All of it lives in
 * `arena`, as long as that; there is nothing to close.
 */
MUST_CHECK int import_read(struct arena *arena, const struct import_source *source, struct import **out_import,
                           struct nginx_fault *out_fault);

/* True while a server is left that sluice can run; without one nothing that is printed loads. */
bool import_serves(const struct import *import);

/* The configuration, appended as YAML. With `list`, the notes follow as comments. 0 or -ENOMEM. */
MUST_CHECK int import_print(struct import *import, bool list, struct buffer *out);

/*
 * The loader does not take what import_print wrote in this line, and says why: it is left out from now on, with a note;
 * a directive that only names a file stays, with a note. 1: something has changed, and it shall be printed anew; 0: no;
 * -ENOENT: what stands there was not made of a directive; -ENOMEM.
 */
MUST_CHECK int import_refuse(struct import *import, unsigned line, struct str why);

/* All notes, those of one file in the order of its lines. */
const struct import_note *import_notes(const struct import *import);
/* How many there are of a kind. */
size_t import_count(const struct import *import, enum import_verdict verdict);
/* The notes as lines for people, each behind `margin`. Nothing where there are none. 0 or -ENOMEM. */
MUST_CHECK int import_list(const struct import *import, const char *margin, struct buffer *out);

#endif
