/*
 * An HTTP/1 response as a client reads it: status line, fields, body, trailers.
 * Pure: bytes are pushed in, and one thing a time comes out. Strict: what two readers could
 * understand differently is refused, so that nobody behind can smuggle an answer past us.
 */
#ifndef HTTP_H1_REPLY_H
#define HTTP_H1_REPLY_H

#include "http/h1_frame.h"
#include "http/h1_parse.h"

enum h1_reply_step {
    REPLY_MORE,                     /* all was taken, more is needed */
    REPLY_INTERIM,                  /* status and headers are those of a 1xx; the answer follows */
    REPLY_HEAD,                     /* status and headers are the answer's; its body follows */
    REPLY_PART,                     /* *out_part is a piece of the body: a slice of *in */
    REPLY_WHOLE,                    /* body and trailers are whole; *in begins with what nobody asked for */
    REPLY_BAD,                      /* not to be understood, or cut: `fault` says it in a few words; nothing more is read */
    REPLY_NO_MEMORY,
};

/* What the request says of its answer. */
struct h1_reply_settings {
    bool head;                      /* to HEAD: no body follows, whatever the fields say */
    bool upgrade;                   /* 101 may come: then all bytes up to the end of the connection are the body */
    size_t head_max;                /* bytes of one head */
};

enum h1_reply_stage { READING_HEAD, READING_LENGTH, READING_CHUNKS, READING_TO_END, READING_OVER, READING_FAILED };

struct h1_reply {
    const char *fault;              /* after REPLY_BAD */
    int status;
    struct str reason;              /* in the arena; empty where the server says none */
    enum http_version version;
    struct headers headers;         /* in the arena, as they came; those of a 1xx until the next call */
    uint64_t content_length;        /* as the head tells it: also of an answer without its body; BODY_LENGTH_UNKNOWN where it does not */
    bool bodiless;                  /* nothing follows the head */
    bool keepalive;                 /* once it is whole, the connection may carry another request */

    enum h1_reply_stage stage;      /* from here on: its own */
    struct h1_reply_settings settings;
    struct arena *arena;            /* not owned */
    struct headers *trailers;       /* not owned */
    struct buffer head;             /* a head that comes in pieces */
    struct h1_scan scan;
    struct h1_chunked chunked;
    uint64_t left;
    struct arena interim;           /* memory of the newest 1xx head, so that any number of them takes no more */
};

/* `arena` and `trailers` outlive it; trailers are added to the list once the body is whole. */
void h1_reply_init(struct h1_reply *reply, const struct h1_reply_settings *settings, struct arena *arena, struct headers *trailers);
/* Frees what a cut answer leaves behind. Accepts a zeroed struct. */
void h1_reply_finish(struct h1_reply *reply);

/* One step over the front of *in. To be called again until REPLY_MORE, or one of the last three. */
enum h1_reply_step h1_reply_read(struct h1_reply *reply, struct str *in, struct str *out_part);
/* The connection has ended: REPLY_WHOLE where that is the end of the body, else REPLY_BAD. `cut`: nobody vouches for that end (TLS without close_notify). */
enum h1_reply_step h1_reply_ended(struct h1_reply *reply, bool cut);

/* Bytes of the body that follow as they are, with nothing between them; UINT64_MAX: to the end of the connection. 0 where they are framed (chunks), or none are left. */
uint64_t h1_reply_unframed(const struct h1_reply *reply);
/* So many of these were taken past h1_reply_read. */
void h1_reply_skip(struct h1_reply *reply, uint64_t count);

#endif
