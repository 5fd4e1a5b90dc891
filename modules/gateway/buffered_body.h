/*
 * A request's body that is read whole before anything is done with it: into memory up to client_body_buffer_size, then
 * into a file (client_body_temp_path). It takes the place of the request's own, can be pulled again from its beginning,
 * and be given to other exchanges. Where it can be kept no further, its rest is passed on as it comes.
 */
#ifndef MODULES_GATEWAY_BUFFERED_BODY_H
#define MODULES_GATEWAY_BUFFERED_BODY_H

#include "http/exchange.h"
#include "spool.h"

struct buffered_body {
    struct body body;               /* the request's: what is kept, and behind it, where that is not all, what still comes */
    struct body *source;            /* the client's; nothing, where it was given by another exchange */
    struct spool *spool;            /* owned, up to buffered_body_close; NULL: none */
    struct str folder;
    struct exchange *x;
    bool whole;                     /* it can be pulled again */
    bool awaited;                   /* next has said -EAGAIN: a wake is owed */
    void (*done)(void *owner, int error); /* while it is read; else NULL */
    void *owner;
};

/*
 * Begins to read x's body into `out`, which is zeroed and in x's arena; from then on it is x's body. `folder` lasts as long as x. 0: it is there, as far as it
 * can be kept; -EAGAIN: `done` tells later, once, from the loop: the same 0, or what the body's next said (exchange_body_status). Other -errno: as `done`.
 */
MUST_CHECK int buffered_body_read(struct buffered_body *out, struct exchange *x, struct str folder, void (*done)(void *owner, int error),
                                  void *owner);
/* The body of `request` where it is kept, whoever has read it; NULL: it is not. */
struct buffered_body *buffered_body_of(const struct request *request);
/* What is kept, whole, becomes the body of another exchange, too, which may outlive this one; `out` is zeroed and in its arena. 0 or -errno. */
MUST_CHECK int buffered_body_share(const struct buffered_body *kept, struct buffered_body *out, struct exchange *to);
/* What is kept is pulled again from its beginning, where it is whole. */
void buffered_body_rewind(struct buffered_body *kept);
/* `done` is not called any more. */
void buffered_body_cancel(struct buffered_body *kept);
/* Nobody pulls it any more. Of what is zeroed, too. */
void buffered_body_close(struct buffered_body *kept);

#endif
