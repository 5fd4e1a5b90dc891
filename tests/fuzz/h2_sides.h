/*
 * Two HTTP/2 servers for the same client: sluice's session, and a session of libnghttp2. Each records the requests that
 * it accepts as text. Both respond with 404 and no body to a complete request, but not if its path begins with "/open":
 * then the stream remains half-closed.
 */
#ifndef TEST_FUZZ_H2_SIDES_H
#define TEST_FUZZ_H2_SIDES_H

#include "base/buffer.h"
#include "http/headers.h"

#define SIDE_STREAMS 4   /* SETTINGS_MAX_CONCURRENT_STREAMS */
#define SIDE_WINDOW  300 /* SETTINGS_INITIAL_WINDOW_SIZE; a request body is consumed when it is complete */

struct h2_side {
    const struct h2_side_ops *ops;
    void *server;
    size_t piece;           /* bytes fed at once */
    struct buffer sent;     /* frames to the client */
    struct buffer requests; /* heads, and ends with body and trailers, of the accepted requests */
    struct buffer notes;    /* of libnghttp2, about refused fields and others */
    int rejected;           /* the status of a request that sluice rejected by its head; 0: none */
};

struct h2_side_ops {
    void *(*open)(struct h2_side *side);
    void (*feed)(void *server, struct str bytes);
    void (*end)(void *server, uint32_t stream); /* the frame that ends the stream was fed */
    void (*close)(void *server);
};
extern const struct h2_side_ops h2_side_sluice, h2_side_nghttp2;

/* For both servers: aborts if `result` is negative. */
void h2_side_must(long result);
/* Records the head of a request, without the names that sluice drops, and with one Cookie (RFC 9113 8.2.3). */
void h2_side_head(struct h2_side *side, uint32_t stream, struct str method, struct str target,
                  const struct headers *headers);
void h2_side_end(struct h2_side *side, uint32_t stream, struct str body, const struct headers *trailers);
bool h2_side_responds(struct str target);

#endif
