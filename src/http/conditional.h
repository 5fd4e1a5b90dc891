/*
 * Conditional requests (RFC 9110 13): evaluation of preconditions in the order of 13.2.2.
 */
#ifndef HTTP_CONDITIONAL_H
#define HTTP_CONDITIONAL_H

#include "http/exchange.h"

struct validators {
    struct str etag;                /* with quotes and W/; empty: none */
    int64_t modified;               /* Last-Modified in seconds; -1: none */
    /* Date in seconds, compared with If-Modified-Since if there is no Last-Modified (RFC 9111 4.3.2); 0: none. */
    int64_t dated;
    bool ignore_modified_since;     /* If-Modified-Since is ignored (nginx's if_modified_since: off) */
};

/* Evaluates the preconditions: 0 (continue), 304 or 412. `exact` is nginx's if_modified_since: exact. */
int conditional_check(const struct request *request, const struct validators *validators, int64_t now, bool exact);
/* Weak comparison (RFC 9110 8.8.3.2). False if one of them is empty. */
bool etag_matches_weakly(struct str a, struct str b);
/* True if `etag` is one well-formed entity tag that is not weak. */
bool etag_is_strong(struct str etag);
/* True if If-None-Match contains this entity tag, byte for byte: the client has this version. */
bool conditional_lists_etag(const struct request *request, struct str etag);
/* True if If-Range (RFC 9110 13.1.5) permits the use of Range. */
bool conditional_range_allowed(const struct request *request, const struct validators *validators, int64_t now);

#endif
