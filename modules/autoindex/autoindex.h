/*
 * The parameters of a listing and its two output formats. Private to the autoindex module.
 */
#ifndef MODULES_AUTOINDEX_AUTOINDEX_H
#define MODULES_AUTOINDEX_AUTOINDEX_H

#include "base/buffer.h"
#include "io/directory.h"
#include "server/module.h"

enum listing_sort { SORT_NAME, SORT_SIZE, SORT_DATE };

struct listing {
    struct op op;
    struct exchange *x;
    const struct autoindex_conf *conf;
    const struct root_directories *roots;
    struct str root, path;          /* both NUL-terminated */
    enum symlinks symlinks;
    struct directory directory;
    int error;
    enum listing_sort sort;
    bool descending;
    bool json;
};

struct autoindex_conf {
    bool on;
    int format;
    bool exact_size, localtime;
};

/* Directories first, then by `sort` and `descending`; names in natural order ("a2" before "a10"). */
void listing_sort(struct listing *listing);
/* Returns true if the page has the filter of server/page/page.h. */
bool listing_has_filter(const struct listing *listing);
/* Writes the listing as HTML, or as JSON. 0, -ENOMEM or -ENOBUFS. */
MUST_CHECK int listing_write_page(const struct listing *listing, struct buffer *out);
MUST_CHECK int listing_write_json(const struct listing *listing, struct buffer *out);
/* Compares names, first ignoring case; runs of digits compare as numbers. <0, 0, >0. */
int natural_compare(struct str a, struct str b);

#endif
