/*
 * Parser of a FastCGI response (version 1 of the specification): STDOUT contains a CGI head (RFC 3875 6) and a body,
 * STDERR messages for the log. Without I/O, and as strict as http/h1_reply.h, whose results it uses.
 */
#ifndef MODULES_FASTCGI_FASTCGI_REPLY_H
#define MODULES_FASTCGI_FASTCGI_REPLY_H

#include "http/h1_reply.h"

#define FASTCGI_HEADER 8

/* Record types. */
enum fastcgi_kind {
    FASTCGI_BEGIN = 1,
    FASTCGI_END = 3,
    FASTCGI_PARAMS = 4,
    FASTCGI_STDIN = 5,
    FASTCGI_STDOUT = 6,
    FASTCGI_STDERR = 7,
};

struct fastcgi_reply {
    struct h1_reply *reply;         /* not owned; receives status, headers, content_length, bodiless and fault */
    struct arena *arena;            /* not owned */
    size_t head_max;                /* maximum size of the CGI head in bytes */
    bool head;                      /* response to HEAD: a body is discarded */
    /* Header of the current record, or content of END. */
    unsigned char record[FASTCGI_HEADER];
    unsigned record_length;         /* bytes of it received */
    unsigned kind;                  /* enum fastcgi_kind of the current record, valid once its header is complete */
    bool in_content;                /* the header is complete: the content follows */
    size_t content, padding;        /* bytes of the record not yet received */
    struct buffer text;             /* the CGI head received so far */
    size_t seen, line;              /* bytes of it searched for its end, and start of the current line */
    struct buffer stderr_text;      /* STDERR received so far, up to LIMIT_FASTCGI_STDERR bytes */
    uint64_t left;                  /* bytes left of Content-Length */
    bool has_head, stdout_ended, ended, failed;
};

/* `into` and `arena` outlive the parser. */
void fastcgi_reply_init(struct fastcgi_reply *reply, struct h1_reply *into, struct arena *arena, size_t head_max,
                        bool head);
/* Accepts a zeroed struct. */
void fastcgi_reply_finish(struct fastcgi_reply *reply);
/* As h1_reply_read, without REPLY_INTERIM. REPLY_WHOLE: END was received. */
enum h1_reply_step fastcgi_reply_read(struct fastcgi_reply *reply, struct str *in, struct str *out_part);
/* Writes the header of a record to be sent. */
void fastcgi_write_header(enum fastcgi_kind kind, size_t length, char into[FASTCGI_HEADER]);

#endif
