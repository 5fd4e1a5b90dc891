/*
 * What the two servers did with a frame of the client, and the differences between them that are permitted.
 */
#ifndef TEST_FUZZ_H2_DIFFERENCES_H
#define TEST_FUZZ_H2_DIFFERENCES_H

#include "h2_sides.h"
#include "http/h2/frame.h"

struct peers {
    struct h2_side sluice, nghttp2;
    bool acknowledged; /* the client has acknowledged SETTINGS */
};

enum verdict {
    ACCEPTED,
    REJECTED, /* by a response of sluice, because of the request head */
    RESET,
    ENDED,    /* the connection, by GOAWAY */
};

/* What one server did with a frame, or with a header block. */
struct outcome {
    enum verdict verdict;
    uint32_t code;   /* of RST_STREAM or GOAWAY; the status of a rejected request */
    uint32_t stream; /* of RST_STREAM */
};

/* `frame`: the frame, or the first one of the header block. */
bool is_permitted(const struct peers *peers, const struct h2_frame *frame, struct outcome sluice,
                  struct outcome nghttp2);

#endif
