/*
 * Responds with a representation from a file or from memory: preconditions (RFC 9110 13), ranges (RFC 9110 14), and
 * the body. Used for static files and cached responses.
 */
#ifndef SERVER_REPRESENTATION_H
#define SERVER_REPRESENTATION_H

#include "http/conditional.h"

struct representation {
    uint64_t size;
    struct str media_type;          /* empty: none */
    struct validators validators;
    bool exact;                     /* If-Modified-Since must match exactly (conditional_check) */
    unsigned max_ranges;            /* at most LIMIT_RANGES; 0: ranges are ignored */
    /* All bytes if in memory; else data NULL, and the bytes start at offset 0 of `fd`. */
    struct str content;
    int fd;
    /* Or makes a body of a part. NULL: not used. */
    struct body *(*span)(struct arena *arena, void *resource, uint64_t at, uint64_t length);
    void (*hold)(void *resource);   /* called once per body; the body calls `release` when it is closed */
    void (*release)(void *resource);
    void *resource;
};

/*
 * Fills x->response: status (200, 206, 304, 412, 416), Content-Type, Content-Range, Accept-Ranges, body. Fields
 * common to 200, 206 and 304 (validators) are set before. Returns 0, or -errno: no response is possible.
 */
MUST_CHECK int representation_respond(struct exchange *x, const struct representation *whole);
/* Returns the whole representation as a body of x, ignoring ranges and preconditions. NULL: out of memory. */
struct body *representation_body(struct exchange *x, const struct representation *whole);

#endif
