/*
 * Answering with something whole that lies in a file or in memory: preconditions (RFC 9110 13), ranges (RFC 9110 14), and a body
 * that leaves as the wire likes. Files of a site and answers out of a cache are both this.
 */
#ifndef SERVER_REPRESENTATION_H
#define SERVER_REPRESENTATION_H

#include "http/conditional.h"

struct representation {
    uint64_t size;
    struct str media_type;          /* empty: it has none */
    struct validators validators;
    bool exact;                     /* If-Modified-Since: the very same time alone (conditional_check) */
    unsigned max_ranges;            /* at most LIMIT_RANGES; 0: ranges are ignored */
    struct str content;             /* all of it where it is in memory; else data NULL, and it lies in `fd` from byte 0 on */
    int fd;
    struct body *(*span)(struct arena *arena, void *held, uint64_t at, uint64_t length); /* or whoever has it makes a body of a part; NULL: not so */
    void (*hold)(void *held);       /* each body holds it once, and releases it when it is closed */
    void (*release)(void *held);
    void *held;
};

/*
 * Fills x->response: status (200, 206, 304, 412, 416), Content-Type, Content-Range, Accept-Ranges, body. Fields that go with 200, 206 and 304 alike
 * (validators) are there before. 0, or -errno: nothing can be answered.
 */
MUST_CHECK int representation_answer(struct exchange *x, const struct representation *whole);
/* All of it as a body of x, with no thought to what was asked. NULL: out of memory. */
struct body *representation_body(struct exchange *x, const struct representation *whole);

#endif
