/*
 * Builds a request from decoded header fields (RFC 9113 8.1 to 8.3): pseudo-header fields, the rules that make a
 * request malformed, and limits as in HTTP/1.
 */
#ifndef HTTP_H2_REQUEST_H
#define HTTP_H2_REQUEST_H

#include "http/protocol.h"

/* Pseudo-header fields, also the bits of h2_request_reader.seen. */
enum h2_pseudo { H2_METHOD = 1, H2_SCHEME = 2, H2_AUTHORITY = 4, H2_PATH = 8, H2_PROTOCOL = 16 };

/* State of one header section. */
struct h2_request_reader {
    struct exchange *x;
    struct headers *headers;        /* request.headers or request.trailers */
    const struct session_settings *settings;
    struct str method, scheme, authority, path, protocol;
    size_t bytes;                   /* of all names and values */
    unsigned fields;
    uint8_t seen;                   /* bits of enum h2_pseudo */
    bool regular;                   /* a regular field was seen: no pseudo-header field may follow */
    bool trailers;
    int fault;                      /* the first one: -EBADMSG, -ENOMEM or an error status; later fields are skipped */
};

/* Starts the header section, or the trailer section, of x. */
struct h2_request_reader h2_request_start(struct exchange *x, const struct session_settings *settings, bool trailers);
/* Stores one field, copied into the arena of x; called in order. value.data is NULL if the field is too long (431). */
void h2_request_field(struct h2_request_reader *reader, struct str name, struct str value);
/*
 * Ends the section, and fills in x->request. `end_stream`: no body follows. 0; the status of the rejection (400, 413,
 * 414, 417, 431, 501); -EBADMSG: malformed, a stream error (RFC 9113 8.1.1); or -ENOMEM.
 */
MUST_CHECK int h2_request_finish(struct h2_request_reader *reader, bool end_stream);
/* Ends the trailer section. 0, or as h2_request_finish. */
MUST_CHECK int h2_trailers_finish(const struct h2_request_reader *reader);

#endif
