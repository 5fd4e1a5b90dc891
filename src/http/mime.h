/*
 * Media types by file name extension.
 */
#ifndef HTTP_MIME_H
#define HTTP_MIME_H

#include "base/table.h"

struct mime {
    struct table by_extension;      /* case-insensitive; values are `const struct str *` */
    struct str default_type;        /* default_type */
};

/* The type of a path by its last extension, ignoring case; NULL: none. */
const struct str *mime_find(const struct mime *mime, struct str path);
/* The type of a path by its last extension, ignoring case, or the default type. */
struct str mime_lookup(const struct mime *mime, struct str path);
/*
 * True for types to which a charset parameter may be added: text types without parameters, except JSON and XML formats,
 * whose RFCs define the encoding.
 */
bool mime_takes_charset(struct str type);

#endif
