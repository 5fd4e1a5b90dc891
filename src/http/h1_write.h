/*
 * Heads of HTTP/1 responses, written: status line, fields, and the framing that
 * goes with the body. Nothing that could split a message ever gets out of here.
 */
#ifndef HTTP_H1_WRITE_H
#define HTTP_H1_WRITE_H

#include "base/buffer.h"
#include "http/protocol.h"

enum h1_framing {
    FRAMING_NONE,                   /* no bytes follow: HEAD, 204, 304 */
    FRAMING_LENGTH,                 /* Content-Length */
    FRAMING_CHUNKED,
    FRAMING_CLOSE,                  /* up to the end of the connection: unknown length in HTTP/1.0, and what follows 101 */
};

/* How the answer of x is framed (RFC 9112 6). */
enum h1_framing h1_framing_of(const struct exchange *x);

/*
 * The head of x's answer, in x's arena and in one piece. `keepalive`: whether the connection stays (not with FRAMING_CLOSE). Date and Server are
 * written unless the answer has its own; Content-Length, Transfer-Encoding and Connection of its own are left out. Control bytes in
 * a value are replaced, by spaces or in Location by "%0A" (RFC 9110 5.5). 0, -ENOMEM, or -EINVAL: a status or name that may not go out.
 * x->response.fault says which field that was.
 */
MUST_CHECK int h1_write_head(struct exchange *x, const struct session_settings *settings, int64_t now, enum h1_framing framing,
                             bool keepalive, struct str *out_head);
/* Appends an interim response (RFC 9110 15.2), whole or not at all: 0, -ENOMEM, -ENOBUFS past the buffer's cap, or -EINVAL. */
MUST_CHECK int h1_write_interim(struct buffer *into, int status, const struct headers *headers);
/*
 * What follows the last chunk's bytes: the zero chunk, the trailers, the empty line. Control bytes in values are replaced as in a head; a trailer whose
 * name may not go out is taken out of the list. *out_fault names the last of them. 0 or -ENOMEM.
 */
MUST_CHECK int h1_write_last_chunk(struct arena *arena, struct headers *trailers, struct str *out_fault, struct str *out_bytes);

#define H1_CHUNK_LINE 18            /* sixteen digits and CRLF */
/* "1f4\r\n" into `into`, which has H1_CHUNK_LINE bytes. */
struct str h1_write_chunk_line(uint64_t size, char *into);

#endif
