/*
 * The static module's own: its directives as read, one request's search for its file, and the two steps after it.
 */
#ifndef MODULES_STATIC_STATIC_H
#define MODULES_STATIC_STATIC_H

#include "http/coding.h"
#include "http/exchange.h"
#include "server/module.h"

enum static_etag { ETAG_OFF, ETAG_ON, ETAG_MTIME, ETAG_HASH };

#define STATIC_DIGEST 16            /* bytes: half of SHA-256 */
enum static_modified { MODIFIED_OFF, MODIFIED_EXACT, MODIFIED_BEFORE };
enum static_gzip { GZIP_STATIC_OFF, GZIP_STATIC_ON, GZIP_STATIC_ALWAYS };

struct static_codings {
    enum coding items[CODINGS];
    unsigned count;
};

struct static_conf {
    struct conf_templates index;
    int etag;                       /* enum static_etag */
    int if_modified_since;          /* enum static_modified */
    uint64_t max_ranges;            /* 0: ranges are ignored */
    struct static_codings precompressed;
    int gzip_static;                /* enum static_gzip */
    struct static_codings siblings; /* of both: which are looked for beside a file, the best liked first */
};

extern const struct module module_static;

/* static_conf.c */
extern const struct directive static_directives[];
int static_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);
/* What stands behind the name of a file that is encoded so. */
struct str static_suffix(enum coding coding);

/*
 * Answers with a regular file, which is encoded so (CODINGS: as it is): preconditions, ranges, headers, body. Takes the reference over.
 */
enum outcome static_answer_file(struct exchange *x, const struct static_conf *conf, struct file_entry *entry, enum coding coding);

/* What the file contains, digested; it may wait for the disk where the entry has not its content. 0 or -errno. */
MUST_CHECK int static_digest(const struct file_entry *entry, unsigned char out[STATIC_DIGEST]);

#endif
