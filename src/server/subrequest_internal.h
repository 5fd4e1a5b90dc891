/*
 * The memory of a subrequest. Private to subrequest.c and request_end.c.
 */
#ifndef SERVER_SUBREQUEST_INTERNAL_H
#define SERVER_SUBREQUEST_INTERNAL_H

#include "server/request_state.h"

enum subrequest_stage {
    STAGE_STARTED,
    STAGE_RESPONDED,                /* the owner has the response */
    STAGE_ENDING,                   /* the rest of the body is discarded */
};

struct subrequest {
    struct exchange x;              /* first: exchange_create allocated the whole struct */
    struct request_state *request;
    struct list link;               /* in the parent's request->children, or worker->orphaned_subrequests */
    /* NULL: the response is discarded. */
    exchange_subrequest_responded *responded;
    void *owner;
    struct connection *detached;    /* of a detached subrequest: copy of the connection data for use after its close */
    enum subrequest_stage stage;
    size_t discarded_bytes;         /* bytes of the body that were read and discarded */
    bool reads_whole_body;          /* the whole body is read and discarded, without LIMIT_SUBREQUEST_REST */
};

/* Releases the subrequest's memory, then its reference to the parent, whose memory it uses. */
void subrequest_release(struct subrequest *sub);

#endif
