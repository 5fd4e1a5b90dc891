/*
 * Kinds of input that a client or an upstream controls, each of a size n: what a request of that kind costs at n and at 2n is
 * compared. The server is the real one, in this process; client and upstreams are played by the test.
 */
#ifndef TEST_COMPLEXITY_H
#define TEST_COMPLEXITY_H

#include "base/str.h"

/* Text that grows with n: `front`, n times `unit`, `back`. In front and back "~" is a number that no other measurement has; in unit "#" is the index. */
struct grown {
    const char *front, *unit, *back;
};

struct kind {
    const char *name;
    size_t n;                       /* 2n is the most that the limits allow, or what is plenty where there is none */
    struct grown request;
    struct grown answer;            /* of the upstream; front NULL: a short one */
    struct grown later;             /* of the upstream, from its second request on; front NULL: as the first */
    int status;                     /* of the answer to the client: the request came where it is meant to come */
    size_t piece;                   /* bytes that client and upstream send at once; 0: as much as fits */
    bool body;                      /* the request has a body, which ends with an empty line: the upstream answers behind it */
    unsigned times;                 /* the request is sent so often; 0: once */
    bool stays;                     /* the request's last line does not end the connection: `status` lines are counted */
};

extern const struct kind kinds[];
extern const size_t kind_count;
/* Of the server; "@/" is a folder. */
extern const char complexity_configuration[];

#endif
