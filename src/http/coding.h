/*
 * Content codings, and the choice among them by Accept-Encoding (RFC 9110 8.4.1, 12.5.3).
 */
#ifndef HTTP_CODING_H
#define HTTP_CODING_H

#include "http/headers.h"

enum coding { CODING_BR, CODING_ZSTD, CODING_GZIP, CODINGS };

/* Its name in Content-Encoding. */
struct str coding_name(enum coding coding);
/* By that name, without case ("x-gzip" is gzip); CODINGS: none of ours. */
enum coding coding_by_name(struct str name);

/*
 * Which of the `count` codings offered a request takes, and likes no less than bytes as they are: the best liked first, of equals the one that is
 * offered first. Returns how many were written to `out`; 0 means identity, which is also for who refuses everything: nobody is answered 406.
 * Without the field, which allows all of them, it is identity, too: only who asks gets a coding. A member that is malformed counts as refused, and of two that
 * differ the lesser counts.
 */
unsigned coding_choose(const struct headers *asked, const enum coding *offered, unsigned count, enum coding out[CODINGS]);

#endif
