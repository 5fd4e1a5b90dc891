/*
 * A server in memory that responds from a table, for the tests of protocols. The test feeds bytes to a session in
 * pieces, and the server collects the output. Like the wire and the connection, it offers bytes that `consume` leaves
 * again, and pumps after every wake.
 */
#ifndef TEST_HTTP_TABLE_SERVER_H
#define TEST_HTTP_TABLE_SERVER_H

#include "base/buffer.h"
#include "base/clock.h"
#include "http/protocol.h"

enum table_behavior {
    TABLE_AT_ONCE, /* responds inside `begun` */
    TABLE_LATER,   /* responds when table_server_answer is called */
    TABLE_ECHO,    /* reads the whole request body and sends it back, followed by the names of its trailers */
    TABLE_STREAM,  /* responds at once with a body that passes on the request body, or the tunnel, as it arrives */
    TABLE_BROKEN,  /* sends a body that fails after its first chunk */
    TABLE_PAUSES,  /* sends a body that waits before each `pause_piece` bytes, and leaves a chunk in `out` meanwhile */
};

struct table_row {
    const char *path;               /* NULL: the last row, for all other paths */
    int status;
    const char *header;             /* "Name: value", or NULL */
    const char *body;               /* NULL: no body */
    enum table_behavior behavior;
    bool unknown_length;
    bool close_after;
    uint64_t body_limit;
    const char *trailer;            /* "Name: value" */
    const char *inform;             /* header field of a 103 that is sent before the response */
    uint64_t declared_length;       /* a Content-Length that differs from the body, or 0 */
};

struct table_server {
    const struct table_row *rows;
    struct session_settings settings;
    struct arena_pool pool;
    struct protocol_counters counters;
    struct session_shared shared;
    struct clock clock;
    const struct protocol *protocol;
    struct session *session;
    struct buffer unread;           /* bytes that were fed and are not yet consumed */
    struct buffer out;
    struct buffer log;              /* one line per finished exchange: METHOD PATH STATUS BYTES [cancelled] */
    size_t room;                    /* for each call of produce; 0: plenty */
    size_t turns;                   /* chunks with ends_turn */
    int result;                     /* of the last produce that returned no chunk */
    bool woken;
    bool blocked;                   /* `consume` has left bytes, which are offered again after a wake */
    unsigned begun, rejected, finished;
    struct exchange *later;         /* the exchange that waits for table_server_answer */
    size_t pause_piece;             /* TABLE_PAUSES */
    struct body *paused;            /* TABLE_PAUSES: the body that waits for its wake */
    bool reads;                     /* TABLE_ECHO: the exchange can read more of its body */
};

/*
 * Opens a session of `protocol` with nginx's defaults as settings; change server->settings or room afterwards. Aborts
 * if memory runs out.
 */
void table_server_open(struct table_server *server, const struct protocol *protocol,
                       const struct table_row *rows);
/* Closes the session and frees everything. Aborts if a begun or rejected exchange has not finished. */
void table_server_close(struct table_server *server);
/* Closes only the session and its open exchanges. */
void table_server_hang_up(struct table_server *server);

/* Feeds all of `bytes`, `piece` bytes at a time (0: all at once), and pumps after each piece. */
void table_server_feed(struct table_server *server, struct str bytes, size_t piece);
/* Produces until no more output is available. */
void table_server_pump(struct table_server *server);
void table_server_signal(struct table_server *server, enum session_signal signal);
/* Responds to the exchange that was begun on a TABLE_LATER row. */
void table_server_answer(struct table_server *server);
enum session_phase table_server_phase(const struct table_server *server);
/* Returns the output so far and empties it. Valid until the next pump. */
struct str table_server_take(struct table_server *server);

#endif
