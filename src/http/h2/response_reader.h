/*
 * Builds a response from decoded header fields (RFC 9113 8.1, 8.3.2): the status, the rules that make a response
 * malformed, and limits as in HTTP/1.
 */
#ifndef HTTP_H2_RESPONSE_READER_H
#define HTTP_H2_RESPONSE_READER_H

#include "http/body.h"
#include "http/headers.h"

/* State of one section: a head or trailers. */
struct h2_response_reader {
    struct arena *arena;            /* the fields are copied there */
    struct headers headers;
    size_t head_max;                /* bytes of all names and values */
    size_t bytes;
    int status;                     /* 0: not seen */
    bool trailers;
    bool regular;                   /* a regular field was seen: no pseudo-header field may follow */
    bool no_memory;
    const char *fault;              /* the first one; NULL: none. Later fields are skipped */
};

/* Stores one field, copied into the arena; called in order. */
void h2_response_field(struct h2_response_reader *reader, struct str name, struct str value);
/* Ends the section: sets `fault` for a head without a status. */
void h2_response_section_end(struct h2_response_reader *reader);
/* Reads Content-Length; BODY_LENGTH_UNKNOWN: absent. Sets `fault` for an invalid one. */
uint64_t h2_response_length(struct h2_response_reader *reader);

#endif
