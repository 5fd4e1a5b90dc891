/*
 * The parser of HTTP/1 responses: status line, fields, body, trailers. It takes bytes, returns one item per call, and
 * has no side effects. It rejects ambiguous responses, which prevents response smuggling.
 */
#ifndef HTTP_H1_REPLY_H
#define HTTP_H1_REPLY_H

#include "http/h1_frame.h"
#include "http/h1_parse.h"

enum h1_reply_step {
    REPLY_MORE,                     /* all consumed, more is needed */
    REPLY_INTERIM,                  /* status and headers are those of a 1xx; the final response follows */
    REPLY_HEAD,                     /* status and headers are final; the body follows */
    REPLY_PART,                     /* *out_part is a piece of the body: a slice of *in */
    REPLY_WHOLE,                    /* body and trailers are complete; *in has the bytes after the response */
    REPLY_BAD,                      /* malformed or truncated: `fault` has the reason; nothing more is read */
    REPLY_NO_MEMORY,
};

/* Properties of the request. */
struct h1_reply_settings {
    bool head;                      /* HEAD: no body, regardless of the fields */
    bool upgrade;                   /* 101 is acceptable: the body is then everything up to the end of the connection */
    size_t head_max;                /* maximum bytes of one head */
};

enum h1_reply_stage { READING_HEAD, READING_LENGTH, READING_CHUNKS, READING_TO_END, READING_OVER, READING_FAILED };

struct h1_reply {
    const char *fault;              /* after REPLY_BAD */
    int status;
    struct str reason;              /* in the arena; empty: the server sent none */
    enum http_version version;
    struct headers headers;         /* in the arena, as received; those of a 1xx until the next call */
    uint64_t content_length;        /* of the head, also for a response without a body; BODY_LENGTH_UNKNOWN: absent */
    bool bodiless;                  /* no body follows */
    bool keepalive;                 /* after completion, the connection may be reused */

    enum h1_reply_stage stage;      /* private from here on */
    struct h1_reply_settings settings;
    struct arena *arena;            /* not owned */
    struct headers *trailers;       /* not owned */
    struct buffer head;             /* a partial head */
    struct h1_scan scan;
    struct h1_chunked chunked;
    uint64_t left;
    struct arena interim;           /* memory of the latest 1xx head only */
};

/* `arena` and `trailers` outlive the parser, which adds trailers once the body is complete. */
void h1_reply_init(struct h1_reply *reply, const struct h1_reply_settings *settings, struct arena *arena,
                   struct headers *trailers);
/* Frees the state of an incomplete response. Accepts a zeroed struct. */
void h1_reply_finish(struct h1_reply *reply);

/* Consumes one item from the front of *in. Call it until REPLY_MORE or one of the last three results. */
enum h1_reply_step h1_reply_read(struct h1_reply *reply, struct str *in, struct str *out_part);
/*
 * The connection ended: REPLY_WHOLE if that completes the body, else REPLY_BAD. `truncated`: the end is not
 * authenticated (TLS without close_notify).
 */
enum h1_reply_step h1_reply_ended(struct h1_reply *reply, bool truncated);

/* Body bytes that follow without framing; UINT64_MAX: to the end of the connection; 0: chunked, or none are left. */
uint64_t h1_reply_unframed(const struct h1_reply *reply);
/* Accounts for `count` of these bytes, consumed without h1_reply_read. */
void h1_reply_skip(struct h1_reply *reply, uint64_t count);

#endif
