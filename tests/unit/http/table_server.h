/*
 * A server in memory that answers from a table, for tests of protocols: bytes are
 * fed to a session in pieces, and what it produces is gathered. It does what the
 * wire and the connection do: what consume leaves is offered again, and every wake is followed by a pump.
 */
#ifndef TEST_HTTP_TABLE_SERVER_H
#define TEST_HTTP_TABLE_SERVER_H

#include "base/buffer.h"
#include "base/clock.h"
#include "http/protocol.h"

enum table_manner {
    TABLE_AT_ONCE, /* answered inside begun */
    TABLE_LATER,   /* answered by table_server_answer */
    TABLE_ECHO,    /* the request body is read whole and sent back, with its trailers' names behind */
    TABLE_STREAM,  /* answered at once with a body that gives the request body as it comes */
    TABLE_BROKEN,  /* a body that fails after its first chunk */
};

struct table_row {
    const char *path; /* NULL ends the table: the row for all others */
    int status;
    const char *header; /* "Name: value", or NULL */
    const char *body;   /* NULL: none */
    enum table_manner manner;
    bool unknown_length;
    bool close_after;
    uint64_t body_limit;
    const char *trailer; /* "Name: value" */
    const char *inform;  /* header of a 103 sent before the answer */
    uint64_t promised;   /* a length that the body does not keep, or 0 */
};

struct table_server {
    const struct table_row *rows;
    struct session_settings settings;
    struct arena_pool pool;
    struct clock clock;
    const struct protocol *protocol;
    struct session *session;
    struct buffer held; /* fed, and not taken yet */
    struct buffer out;
    struct buffer log; /* one line per finished exchange: METHOD PATH STATUS BYTES [cancelled] */
    size_t room;       /* of each produce; 0: plenty */
    int result;        /* of the last produce that gave nothing */
    bool woken;
    bool blocked;                   /* consume has left bytes: not offered again before a wake */
    unsigned begun, refused, finished;
    struct exchange *later; /* the exchange that waits for table_server_answer */
    bool reads;             /* an echo waits to pull again */
};

/*
 * Opens a session of `protocol` with settings like nginx's defaults; change server->settings or room
 * afterwards. Aborts without memory.
 */
void table_server_open(struct table_server *server, const struct protocol *protocol,
                       const struct table_row *rows);
/*
 * Closes the session and frees everything. Every begun or refused exchange must have finished: else aborts.
 */
void table_server_close(struct table_server *server);
/* Closes the session alone, with what is open. */
void table_server_hang_up(struct table_server *server);

/* Feeds all of `bytes`, `piece` at a time (0: at once), pumping after each. */
void table_server_feed(struct table_server *server, struct str bytes, size_t piece);
/* Produces until nothing more comes. */
void table_server_pump(struct table_server *server);
void table_server_signal(struct table_server *server, enum session_signal signal);
/* Answers the exchange that was begun on a TABLE_LATER row. */
void table_server_answer(struct table_server *server);
enum session_phase table_server_phase(const struct table_server *server);
/* What was produced so far; emptied. Valid until the next pump. */
struct str table_server_take(struct table_server *server);

#endif
