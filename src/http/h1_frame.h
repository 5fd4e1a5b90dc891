/*
 * The decoder of the chunked transfer coding (RFC 9112 7.1): takes bytes in pieces and returns slices of them.
 * Sizes are hexadecimal, extensions are validated and limited, lines end with CRLF, trailers are parsed like header
 * fields.
 */
#ifndef HTTP_H1_FRAME_H
#define HTTP_H1_FRAME_H

#include "base/buffer.h"
#include "http/headers.h"

enum h1_chunked_state { CHUNKED_SIZE, CHUNKED_CONTENT, CHUNKED_CRLF, CHUNKED_TRAILERS, CHUNKED_WHOLE };

struct h1_chunked {
    enum h1_chunked_state state;
    /* CONTENT: bytes left in the chunk; CRLF: bytes of it received; TRAILERS: start of the current line. */
    uint64_t left;
    size_t extension_bytes;         /* of all chunks */
    unsigned trailer_lines;
    unsigned max_trailers;
    struct buffer pending;          /* a partial size line, or the trailer section so far */
    struct arena *arena;            /* not owned: memory of the trailers */
    struct headers *trailers;       /* not owned */
    bool underscores;
    /* Accept a bare LF as line end; set by the caller after h1_chunked_init, for responses only. */
    bool line_feeds;
};

/* `arena` and `trailers` outlive the decoder; at most `max_trailers` fields are accepted. */
void h1_chunked_init(struct h1_chunked *chunked, struct arena *arena, struct headers *trailers, unsigned max_trailers,
                     bool underscores);
/* Frees the state of an incomplete body. Accepts a zeroed decoder. */
void h1_chunked_finish(struct h1_chunked *chunked);

/*
 * Consumes bytes from the front of *in. 1: *out_part is the next piece of the body, a slice of *in; 0: body and
 * trailers are complete, and *in begins with the bytes after them; -EAGAIN: all consumed, more is needed; -EBADMSG:
 * malformed or past a limit; -ENOMEM.
 */
int h1_chunked_next(struct h1_chunked *chunked, struct str *in, struct str *out_part);

/* Removes the fields that must not be in trailers (RFC 9110 6.5.1), of a message of HTTP/1 or HTTP/2. */
void h1_remove_forbidden_trailers(struct headers *trailers);

/* Parses one size line without its CRLF: 0 or -EBADMSG. *out_extension: bytes after the size. */
int h1_chunk_line_parse(struct str line, uint64_t *out_size, size_t *out_extension);

#endif
