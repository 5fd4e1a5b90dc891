/*
 * A request body that is read completely in advance: into memory up to client_body_buffer_size, then into a file
 * (client_body_temp_path). It replaces the request's body, can be pulled repeatedly, and can be shared with other
 * exchanges. Bytes beyond the limits of buffering are passed on as they arrive.
 */
#ifndef MODULES_GATEWAY_BUFFERED_BODY_H
#define MODULES_GATEWAY_BUFFERED_BODY_H

#include "http/exchange.h"
#include "spool.h"

struct buffered_body {
    struct body body;               /* the request's body: the buffered bytes, followed by bytes still arriving */
    struct body *source;            /* the client's body; empty if shared by another exchange */
    struct spool *spool;            /* owned until buffered_body_close; NULL: none */
    struct str directory;
    struct exchange *x;
    bool whole;                     /* complete: can be pulled again */
    bool wake_pending;              /* next returned -EAGAIN: the body must be woken */
    /* While reading; else NULL. */
    void (*done)(void *owner, int error);
    void *owner;
};

/*
 * Starts to read x's body into `out` (zeroed, in x's arena), which replaces it as x's body. `directory` outlives x.
 * 0: read, as far as it can be buffered; -EAGAIN: `done` is called once, later, from the loop, with 0 or an error of
 * the body's next (exchange_body_status). Other -errno: as `done`.
 */
MUST_CHECK int buffered_body_read(struct buffered_body *out, struct exchange *x, struct str directory,
                                  void (*done)(void *owner, int error),
                                  void *owner);
/* The buffered body of `request`; NULL: not buffered. */
struct buffered_body *buffered_body_of(const struct request *request);
/*
 * Shares a complete buffered body with another exchange, which may outlive this one; `out` is zeroed, in its arena.
 * 0 or -errno.
 */
MUST_CHECK int buffered_body_share(const struct buffered_body *buffered, struct buffered_body *out,
                                   struct exchange *to);
/* Restarts a complete body from its beginning. */
void buffered_body_rewind(struct buffered_body *buffered);
/* Cancels `done`. */
void buffered_body_cancel(struct buffered_body *buffered);
/* Closes the body. Accepts a zeroed struct. */
void buffered_body_close(struct buffered_body *buffered);

#endif
