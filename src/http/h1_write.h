/*
 * Writes HTTP/1 response heads: status line, fields, and the framing of the body. Bytes that could split a message are
 * rejected or replaced.
 */
#ifndef HTTP_H1_WRITE_H
#define HTTP_H1_WRITE_H

#include "base/buffer.h"
#include "http/protocol.h"

enum h1_framing {
    FRAMING_NONE,                   /* no body: HEAD, 204, 304 */
    FRAMING_LENGTH,                 /* Content-Length */
    FRAMING_CHUNKED,
    FRAMING_CLOSE,                  /* body to the end of the connection: unknown length in HTTP/1.0, and after 101 */
};

/* The framing of the response of x (RFC 9112 6). */
enum h1_framing h1_framing_of(const struct exchange *x);

/*
 * Formats the head of x's response in x's arena. `keepalive`: the connection persists (not with FRAMING_CLOSE). Adds
 * Date and Server unless the response has them; skips Content-Length, Transfer-Encoding and Connection of the
 * response. Control bytes in a value are replaced by spaces, in Location percent-encoded (RFC 9110 5.5). 0, -ENOMEM, or
 * -EINVAL: a status, reason phrase or field name that must not be sent. x->response.fault names it, or the last field
 * with replaced bytes.
 */
MUST_CHECK int h1_write_head(struct exchange *x, const struct session_settings *settings, int64_t now,
                             enum h1_framing framing, bool keepalive, struct str *out_head);
/* Appends an interim response (RFC 9110 15.2) or nothing: 0, -ENOMEM, -ENOBUFS past the buffer's limit, or -EINVAL. */
MUST_CHECK int h1_write_interim(struct buffer *into, int status, const struct headers *headers);
/*
 * Formats the end of a chunked body: the last chunk, the trailers, the empty line. Control bytes in values are
 * replaced as in a head; a trailer whose name must not be sent is removed from the list. *out_fault names the last
 * such field. 0 or -ENOMEM.
 */
MUST_CHECK int h1_write_last_chunk(struct arena *arena, struct headers *trailers, struct str *out_fault,
                                   struct str *out_bytes);

#define H1_CHUNK_LINE 18            /* sixteen digits and CRLF */
/* Formats "1f4\r\n" into `into`, which has H1_CHUNK_LINE bytes. */
struct str h1_write_chunk_line(uint64_t size, char *into);

#endif
