/*
 * An answer in FastCGI's records (version 1 of its specification), read: what STDOUT carries is a CGI head (RFC 3875 6) and a body, what
 * STDERR carries is for the log. Pure, and strict as http/h1_reply.h is, whose words it uses.
 */
#ifndef MODULES_FASTCGI_FASTCGI_REPLY_H
#define MODULES_FASTCGI_FASTCGI_REPLY_H

#include "http/h1_reply.h"

#define FASTCGI_HEADER 8

/* Kinds of records. */
enum fastcgi_kind { FASTCGI_BEGIN = 1, FASTCGI_END = 3, FASTCGI_PARAMS = 4, FASTCGI_STDIN = 5, FASTCGI_STDOUT = 6, FASTCGI_STDERR = 7 };

struct fastcgi_reply {
    struct h1_reply *reply;         /* not owned: status, headers, content_length, bodiless and fault are written there */
    struct arena *arena;            /* not owned */
    size_t head_max;                /* bytes of the CGI head */
    bool head;                      /* to HEAD: a body that comes is dropped */
    unsigned char record[FASTCGI_HEADER]; /* the header of a record, or what END says */
    unsigned record_length;         /* bytes of it that came */
    unsigned kind;                  /* enum fastcgi_kind of the record, once its header is whole */
    bool inside;                    /* the header is whole: its content follows */
    size_t content, padding;        /* bytes of the record still to come */
    struct buffer text;             /* the CGI head, so far */
    size_t seen, line;              /* bytes of it that were looked at for its end, and where the line begins that they end in */
    struct buffer said;             /* STDERR, so far, up to LIMIT_FASTCGI_SAID */
    uint64_t left;                  /* of Content-Length */
    bool headed, out_ended, over, failed;
};

void fastcgi_reply_init(struct fastcgi_reply *reply, struct h1_reply *into, struct arena *arena, size_t head_max, bool head);
/* Accepts a zeroed struct. */
void fastcgi_reply_finish(struct fastcgi_reply *reply);
/* As h1_reply_read; no REPLY_INTERIM comes. REPLY_WHOLE: the server has said that this was all. */
enum h1_reply_step fastcgi_reply_read(struct fastcgi_reply *reply, struct str *in, struct str *out_part);
/* The header of a record of ours. */
void fastcgi_write_header(enum fastcgi_kind kind, size_t length, char into[FASTCGI_HEADER]);

#endif
