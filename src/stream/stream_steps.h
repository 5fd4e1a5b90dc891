/*
 * What the files of `stream` ask of each other. Private to stream*.c.
 */
#ifndef STREAM_STREAM_STEPS_H
#define STREAM_STREAM_STEPS_H

#include "base/buffer.h"
#include "server/connection_internal.h"
#include "site/core_stream.h"
#include "stream/stream.h"
#include "stream/stream_flow.h"
#include "stream/stream_module.h"
#include "tls/client_hello.h"

/* One server that was asked; for the $upstream_ variables. */
struct stream_attempt {
    struct stream_attempt *next;
    struct str server;
    uint64_t begun_us, end_us;      /* end 0: not yet */
    uint64_t connect_us, first_byte_us; /* since begun_us; UINT64_MAX: not come that far */
};

struct stream {
    struct list link;               /* in worker->streams */
    struct worker *worker;
    const struct endpoint *endpoint;
    const struct virtual_server *virtual; /* the default one until a name has chosen */
    const struct stream_server *own; /* its part of stream */
    const struct core_stream *conf; /* its directives */
    struct wire client;
    struct upstream_group *group;
    struct upstream_choice choice;
    struct upstream_tls tls;        /* how the server is spoken to */
    struct upstream_waiter waiter;
    struct upstream_peer *peer;
    struct upstream_connection *server; /* owned until released; NULL: none */
    struct stream_flow up, down;    /* the client's bytes, the server's */
    struct buffer hello;            /* what was read before the server was chosen */
    struct client_hello_scan hello_scan;
    struct {
        struct str name, protocol, alpn; /* of it, for variables; data NULL: nothing was read */
    } preread;
    struct arena arena;             /* what lasts as long as the connection; nothing at first */
    struct stream_held *held;       /* what modules keep of it */
    struct user_variable_values user_variable_values;   /* of the configuration's own variables */
    struct stream_attempt *attempts, *attempt; /* all, and the newest */
    struct wire_transfer transfer;  /* of the client's wire, at the end */
    struct str said;                /* `return`: what is still to be said */
    uint64_t hello_bytes, own_bytes; /* that came before there was a server, and that are our own */
    uint64_t began_us;
    struct op timer;
    uint64_t moved_ms;              /* when anything last happened */
    uint64_t began_ms;
    uint64_t number;                /* $connection */
    uint64_t tries;
    int status;                     /* $status: 200 unless it was refused */
    bool prereading;                /* no server is chosen yet */
    bool connected;
    bool ending;                    /* the client's wire was told to close */
    bool closed;                    /* the client's wire is */
    const struct proxy_header *header; /* what a proxy before us said; NULL: nothing */
    union proxy_address address;    /* of the peer */
    union proxy_address told;       /* the client's, as a peer that is trusted says; AF_UNSPEC: nobody has said */
    char proxy_header[PROXY_HEADER_WRITTEN]; /* what the server is told of it */
};

/* stream.c */

/* What happened, in the error log; `error` 0: nothing more is known. */
void stream_log_line(const struct stream *stream, enum log_level level, const char *what, int error);
/* Something came or went: the connection is not quiet. */
void stream_moved(struct stream *stream);
/* Ends the connection once both directions were passed on, or one where that is enough. */
void stream_watch_for_end(struct stream *stream);
/* Ends it: the server's side, and the client's as it says. */
void stream_end(struct stream *stream, enum wire_close_reason how);
/* Ends it because it cannot be served: 400, 403, 500, 502 or 503. */
void stream_refuse(struct stream *stream, int status);

/* stream_modules.c */

/* Whether the client may be served, by the modules that have a word in it: 0 or a status. */
int stream_admit(struct stream *stream);
/* It is over: tells those who may have something of it. */
void stream_modules_ended(struct stream *stream);

/* stream_server.c */

/* The group that proxy_pass names, and what chooses among its servers. 0 or a status. */
int stream_find_group(struct stream *stream);
/* A server of the group is chosen and connected to; the connection ends where there is none. */
void stream_try_server(struct stream *stream);
/* The server's side: gone at once, or after what was given to it has left. */
void stream_release_server(struct stream *stream, bool orderly);

#endif
