/*
 * The chunked transfer coding (RFC 9112 7.1), read: a decoder that is fed pieces
 * and gives slices of them back. Strict: sizes in plain hex, extensions checked and
 * capped, CRLF exact, trailers parsed like any field.
 */
#ifndef HTTP_H1_FRAME_H
#define HTTP_H1_FRAME_H

#include "base/buffer.h"
#include "http/headers.h"

enum h1_chunked_state { CHUNKED_SIZE, CHUNKED_CONTENT, CHUNKED_CRLF, CHUNKED_TRAILERS, CHUNKED_WHOLE };

struct h1_chunked {
    enum h1_chunked_state state;
    uint64_t left;                  /* CONTENT: bytes of the chunk still to come; CRLF: bytes of it that came; TRAILERS: where the current line begins */
    size_t extension_bytes;         /* of all chunks so far */
    unsigned trailer_lines;
    unsigned max_trailers;
    struct buffer pending;          /* a size line in pieces, or the trailer section so far */
    struct arena *arena;            /* not owned: gets the trailers */
    struct headers *trailers;       /* not owned */
    bool underscores;
    bool line_feeds;                /* a bare LF ends a line, too: set by the caller after h1_chunked_init, for responses only */
};

/* `arena` and `trailers` outlive the decoder; at most `max_trailers` lines are taken. */
void h1_chunked_init(struct h1_chunked *chunked, struct arena *arena, struct headers *trailers, unsigned max_trailers,
                     bool underscores);
/* Frees what a cut body leaves behind. Accepts a zeroed decoder. */
void h1_chunked_finish(struct h1_chunked *chunked);

/*
 * Takes bytes from the front of *in. 1: *out_part is the next piece of the body, a slice of *in; 0: the body and its trailers
 * are whole, and *in begins with what follows; -EAGAIN: all was taken, more is needed; -EBADMSG: malformed or past a cap; -ENOMEM.
 */
int h1_chunked_next(struct h1_chunked *chunked, struct str *in, struct str *out_part);

/* One size line without its CRLF: 0 or -EBADMSG. *out_extension: bytes behind the size. */
int h1_chunk_line_parse(struct str line, uint64_t *out_size, size_t *out_extension);

#endif
