/*
 * The autoindex module's own: what is asked for, and the two forms in which it is answered.
 */
#ifndef MODULES_AUTOINDEX_AUTOINDEX_H
#define MODULES_AUTOINDEX_AUTOINDEX_H

#include "base/buffer.h"
#include "io/folder.h"
#include "server/module.h"

enum listing_sort { SORT_NAME, SORT_SIZE, SORT_DATE };

struct listing {
    struct op op;
    struct exchange *x;
    const struct autoindex_conf *conf;
    const struct root_directories *granted;
    struct str root, path;          /* both ended by NUL */
    enum symlinks symlinks;
    struct folder folder;
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

/* Folders first, then by what is asked for; names in the order in which people count ("a2" before "a10"). */
void listing_sort(struct listing *listing);
/* Content-Security-Policy of the page: its own style and nothing else, so that a site's strict one does not take its looks. */
extern const char listing_policy[];
/* As a page, or as JSON. 0, -ENOMEM or -ENOBUFS. */
MUST_CHECK int listing_write_page(const struct listing *listing, struct buffer *out);
MUST_CHECK int listing_write_json(const struct listing *listing, struct buffer *out);
/* <0, 0, >0: case does not matter at first, and runs of digits are numbers. */
int natural_compare(struct str a, struct str b);

#endif
