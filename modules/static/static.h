/*
 * The directives as read, and the steps after the lookup. Private to the static module.
 */
#ifndef MODULES_STATIC_STATIC_H
#define MODULES_STATIC_STATIC_H

#include "http/coding.h"
#include "http/exchange.h"
#include "server/module.h"

enum static_etag { ETAG_OFF, ETAG_ON, ETAG_MTIME, ETAG_HASH };

#define STATIC_DIGEST 16            /* bytes: SHA-256, truncated to half */
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
    struct static_codings siblings; /* gzip_static and `precompressed` together, in order of preference */
};

extern const struct module module_static;

/* static_conf.c */
extern const struct directive static_directives[];
int static_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);
/* Suffix of precompressed files, such as ".gz". */
struct str static_suffix(enum coding coding);

/*
 * Answers with a regular file of the given coding (CODINGS: none): preconditions, ranges, headers, body. Releases
 * the caller's reference to the entry.
 */
enum outcome static_respond_file(struct exchange *x, const struct static_conf *conf, struct file_entry *entry,
                                 enum coding coding);

/*
 * static_error.c: answers `path` below `root`, which could not be opened, and logs it: the error determines status and
 * level.
 */
enum outcome static_respond_error(struct exchange *x, struct str root, struct str path, int error);
/* Hashes the content of a file; blocks on the disk if the entry has no content in memory. 0 or -errno. */
MUST_CHECK int static_digest(const struct file_entry *entry, unsigned char out[STATIC_DIGEST]);

#endif
