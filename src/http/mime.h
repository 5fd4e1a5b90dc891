/*
 * Media types by file name extension.
 */
#ifndef HTTP_MIME_H
#define HTTP_MIME_H

#include "base/table.h"

struct mime {
    struct table by_extension;      /* without case; values are `const struct str *` */
    struct str fallback;            /* default_type */
};

/* The type for a path: by its last extension, without case, else the fallback. */
struct str mime_lookup(const struct mime *mime, struct str path);
/* True for types that carry a charset parameter: text of any kind, JSON-like and XML-like ones excepted as their RFCs say. */
bool mime_takes_charset(struct str type);

#endif
