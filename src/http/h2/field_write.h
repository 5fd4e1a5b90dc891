/*
 * Header sections as frames: HEADERS, followed by CONTINUATION where they exceed the peer's frame size.
 */
#ifndef HTTP_H2_FIELD_WRITE_H
#define HTTP_H2_FIELD_WRITE_H

#include "http/body.h"
#include "http/headers.h"
#include "http/h2/frame.h"

/* The pseudo-header fields of a request (RFC 9113 8.3.1). */
struct h2_pseudo_fields {
    struct str method, scheme, authority, path; /* an empty authority is not sent */
};

/* The fields of one section. */
struct h2_section {
    int status;                             /* 0: trailers, or a request */
    const struct h2_pseudo_fields *request; /* NULL: a response or trailers. With it, Host is skipped */
    const struct headers *headers;          /* connection-specific fields and Content-Length in it are skipped */
    struct str date, server;                /* added unless `headers` has them; empty: not added */
    uint64_t content_length;                /* BODY_LENGTH_UNKNOWN: no Content-Length */
};

/* Upper bound of the bytes of the section's frames. */
size_t h2_section_bound(const struct h2_section *section, uint32_t max_frame_size);
/* Formats the frames at `at`, which has h2_section_bound bytes. Returns the end. */
char *h2_section_write(char *at, const struct h2_section *section, uint32_t max_frame_size, uint32_t stream,
                       bool end_stream);

#endif
