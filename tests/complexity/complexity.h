/*
 * Kinds of input that a client or an upstream server controls, each of a size n. The cost of a request is compared for
 * n and 2n. The server runs in this process; the test acts as its client and as its upstream servers.
 */
#ifndef TEST_COMPLEXITY_H
#define TEST_COMPLEXITY_H

#include "base/buffer.h"

/*
 * A text that grows with n: `front`, n times `unit`, `back`. In `front` and `back`, "~" stands for a number that is
 * different in each measurement; in `unit`, "#" stands for the index.
 */
struct grown {
    const char *front, *unit, *back;
};

/* Endpoints of the configuration, in its order. */
enum entrance {
    AT_HTTP,
    AT_TLS,
    AT_PROXY_PROTOCOL,
    AT_STREAM,                      /* a `stream` server that reads the ClientHello and then connects upstream */
    AT_STREAM_TEXT,                 /* a `stream` server that responds with variables */
};

struct kind {
    const char *name;
    /*
     * Half of the server's limit; without a limit, an input that callgrind counts in about a second, and of whose
     * instructions nearly all depend on n.
     */
    size_t n;
    enum entrance entrance;
    struct grown request;
    /* Appends a binary request; NULL: `request` is used. */
    void (*make)(struct buffer *request, size_t n);
    size_t record;                  /* AT_TLS: bytes of the request per TLS record */
    bool http2;                     /* `make` appends HTTP/2 */
    bool server_resets;             /* the server resets n streams besides the one that it answers */
    bool hello;                     /* AT_TLS: the ClientHello has n bytes of padding */
    size_t hello_record;            /* AT_TLS: bytes of the ClientHello per record; 0: as many as fit */
    struct grown first_response;    /* of the upstream server; front NULL: a short response */
    struct grown later_response;    /* of the upstream server from its second request on; front NULL: as the first */
    int status;                     /* expected in the response to the client */
    size_t piece;                   /* bytes per send of client and upstream server; 0: as many as fit */
    bool body;                      /* the request has a body; the response follows its empty line */
    unsigned times;                 /* number of requests; 0: one */
    bool connection_persists;       /* the connection stays open: all status lines with `status` count */
};

extern const struct kind kinds[];
extern const size_t kind_count;
/* The configuration of the server; "@/" stands for a directory. */
extern const char complexity_configuration[];

#endif
