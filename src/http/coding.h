/*
 * Content codings and their negotiation by Accept-Encoding (RFC 9110 8.4.1, 12.5.3).
 */
#ifndef HTTP_CODING_H
#define HTTP_CODING_H

#include "http/headers.h"

enum coding { CODING_BR, CODING_ZSTD, CODING_GZIP, CODINGS };

/* The name in Content-Encoding. */
struct str coding_name(enum coding coding);
/* Finds a coding by name, ignoring case ("x-gzip" is gzip); CODINGS: unknown. */
enum coding coding_by_name(struct str name);

/*
 * Selects from the `count` offered codings those that a request accepts with at least the weight of identity, by
 * descending weight, then in the order offered. Returns the number written to `out`; 0 means identity, also if the
 * request accepts nothing (no 406). Without the field the result is identity. A malformed member counts as rejected,
 * and of two weights of one coding the lower counts.
 */
unsigned coding_choose(const struct headers *request_headers, const enum coding *offered, unsigned count,
                       enum coding out[CODINGS]);

#endif
