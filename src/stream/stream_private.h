/*
 * The state of a connection, and functions shared by the files of `stream`. Private to stream*.c.
 */
#ifndef STREAM_STREAM_PRIVATE_H
#define STREAM_STREAM_PRIVATE_H

#include "base/buffer.h"
#include "server/connection_internal.h"
#include "site/core_stream.h"
#include "stream/stream.h"
#include "stream/stream_flow.h"
#include "stream/stream_module.h"
#include "tls/client_hello.h"

/* One upstream server that was tried; for the $upstream_ variables. */
struct stream_attempt {
    struct stream_attempt *next;
    struct str server;
    uint64_t begun_us, end_us;          /* end 0: not ended */
    uint64_t connect_us, first_byte_us; /* since begun_us; UINT64_MAX: not reached */
};

struct stream {
    struct list link;                           /* in worker->streams */
    struct worker *worker;
    const struct endpoint *endpoint;
    const struct virtual_server *virtual;       /* the default server until the SNI name selects another */
    const struct stream_server *server_conf;    /* its `stream` configuration */
    const struct core_stream *conf;             /* its directives */
    struct wire client;
    struct upstream_group *group;
    struct upstream_choice choice;
    struct upstream_transport transport;        /* how to connect to the server */
    struct upstream_waiter waiter;
    struct upstream_peer *peer;
    struct upstream_connection *server;         /* owned until released; NULL: none */
    struct stream_flow up, down;                /* from the client, from the server */
    struct {
        /* Bytes received before the server was selected, and not sent to it yet. */
        struct buffer input;
        struct client_hello_scan scan;          /* of `input` */
        uint64_t bytes;                         /* length of `input` when the server was selected */
        struct str name, protocol, alpn;        /* of the ClientHello, for variables; data NULL: not read */
    } preread;
    struct arena arena;                         /* memory with the lifetime of the connection; empty at first */
    struct stream_module_memory *module_memory; /* memory of modules */
    /* Values of the variables defined by the configuration. */
    struct user_variable_values user_variable_values;
    struct stream_attempt *attempts, *attempt;  /* the list, and the newest one */
    struct transfer transfer;                   /* of the client's wire, at the end */
    struct str return_text;                     /* `return`: the text still to be sent */
    uint64_t own_bytes;                         /* bytes sent by `return` */
    uint64_t began_us;
    struct op timer;
    uint64_t last_activity_ms;
    uint64_t began_ms;
    uint64_t number;                            /* $connection */
    uint64_t tries;
    int status;                                 /* $status: 200 unless rejected */
    bool debug;                                 /* debug_connection selects the client */
    bool prereading;                            /* no virtual server is selected yet */
    bool connected;
    bool ending;                                /* the client's wire is closing */
    bool closed;                                /* the client's wire is closed */
    const struct proxy_header *header;          /* the received PROXY protocol header; NULL: none */
    union proxy_address address;                /* of the peer */
    union proxy_address client_address;         /* the client's address set by stream_set_client; AF_UNSPEC: not set */
    char proxy_header[PROXY_HEADER_WRITTEN];    /* the PROXY protocol header sent to the server */
};

static inline uint64_t stream_now_ms(const struct stream *stream)
{
    return stream->worker->loop.clock.monotonic_ms;
}

/* The error log; with level debug for a selected client. */
static inline struct log *stream_log(const struct stream *stream)
{
    struct worker *worker = stream->worker;

    return stream->debug && worker->log->level < LOG_DEBUG ? &worker->debug_log : worker->log;
}

/* stream_debug.c: lines for clients that debug_connection selects. */

/* private: use stream_debug */
void stream_debug_write(const struct stream *stream, const char *format, ...) PRINTF_LIKE(2, 3);
/* Decides whether the connection has a debug log, and logs its addresses. */
void stream_debug_accepted(struct stream *stream);
/* Decides this again for all open connections, after a change of the level. */
void stream_debug_update(struct worker *worker);
/* Logs a completed handshake. */
void stream_debug_opened(const struct stream *stream);
void stream_debug_closed(const struct stream *stream);

#define stream_debug(stream, ...)                                                                            \
    do {                                                                                                     \
        if ((stream)->debug)                                                                                 \
            stream_debug_write(stream, __VA_ARGS__);                                                         \
    } while (0)

/* stream_list.c: functions of struct stream_listening. */

void stream_abort_all(struct worker *worker);
struct wire *stream_find_wire(struct list *link, uint64_t *out_number);
struct connection_row;
void stream_describe(const struct list *link, struct connection_row *out);

/* stream_preread.c */

/*
 * Reads more bytes of a ClientHello. Returns 0: a server can be selected by *out_hello, which is not written if the
 * client sends another protocol; -EAGAIN: more bytes are needed; or a status. *out_taken bytes are consumed.
 */
int stream_preread(struct stream *stream, struct str bytes, size_t *out_taken, struct client_hello *out_hello);

/* stream_timeout.c */

/* Ends the connection if its deadline has passed; otherwise sets the timer to the next check. */
void stream_check_timeout(struct stream *stream);

/* stream_end.c */

/* Writes a line to the error log, unless worker_may_log_error denies it; `error` 0: none. */
void stream_log_line(const struct stream *stream, enum log_level level, const char *what, int error);
/* Records activity, for the timeout. */
void stream_record_activity(struct stream *stream);
/* Ends the connection when both directions have ended and the end was forwarded; without half_close, one of them. */
void stream_end_if_complete(struct stream *stream);
/* Closes the server's side; `orderly`: after the queued output was sent. */
void stream_release_server(struct stream *stream, bool orderly);
/* Sets the timer that ends lingering: the client's wire is closing. */
void stream_await_close(struct stream *stream);
/* Closes the server's side, then the client's side with `how`. */
void stream_end(struct stream *stream, enum wire_close_reason how);
/* Rejects the connection with status 400, 403, 500, 502 or 503. */
void stream_reject(struct stream *stream, int status);

/* stream_modules.c */

/* Runs the modules' access checks. Returns 0 or a status. */
int stream_check_access(struct stream *stream);
/* Informs the modules that the connection has ended. */
void stream_modules_ended(struct stream *stream);

/* stream_server.c */

/* Finds the group that proxy_pass names, and its balancing key. Returns 0 or a status. */
int stream_find_group(struct stream *stream);
/* Chooses a server of the group and connects to it; rejects the connection if there is none. */
void stream_try_server(struct stream *stream);

/* variables_stream_upstream.c: the $upstream_ variables; in the list of variables_stream. */
extern const struct variable_table variables_stream_upstream;

#endif
