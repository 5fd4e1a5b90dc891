/*
 * Conditional requests (RFC 9110 13): which of the preconditions decides, in the order of 13.2.2.
 */
#ifndef HTTP_CONDITIONAL_H
#define HTTP_CONDITIONAL_H

#include "http/exchange.h"

struct validators {
    struct str etag;                /* with its quotes, perhaps W/; empty where there is none */
    int64_t modified;               /* seconds, or -1 */
    int64_t dated;                  /* where it has no Last-Modified, If-Modified-Since is compared with this time (RFC 9111 4.3.2); 0: with none */
};

/* 0: go on; 304 or 412. `exact` is nginx's if_modified_since: exact. */
int conditional_check(const struct request *request, const struct validators *validators, int64_t now, bool exact);
/* RFC 9110 8.8.3.2: W/ does not matter. False where one of them is empty. */
bool etag_matches_weakly(struct str a, struct str b);
/* True where If-None-Match has this very entity tag, W/ and all: that is what the client keeps. */
bool conditional_keeps(const struct request *request, struct str etag);
/* If-Range (RFC 9110 13.1.5): true where Range may be used. */
bool conditional_range_allowed(const struct request *request, const struct validators *validators, int64_t now);

#endif
