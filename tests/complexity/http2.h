/*
 * HTTP/2 input: connections with prior knowledge, each with a part whose length depends on n, and the frames of the
 * responses. Each make function appends to `into`; the bytes are the same in every call with the same n.
 */
#ifndef TEST_COMPLEXITY_HTTP2_H
#define TEST_COMPLEXITY_HTTP2_H

#include "base/buffer.h"

/* One request. */
void make_h2_fields(struct buffer *into, size_t n);         /* with n fields, in HEADERS and CONTINUATION frames */
/* With n references to one field in HPACK's dynamic table. */
void make_h2_indexed_fields(struct buffer *into, size_t n);
void make_h2_cookies(struct buffer *into, size_t n);        /* with n Cookie fields, which the server joins */
void make_h2_passed_fields(struct buffer *into, size_t n);  /* as make_h2_fields, for an upstream server */
void make_h2_data(struct buffer *into, size_t n);           /* with n DATA frames of one byte, for an upstream server */
void make_h2_proxied(struct buffer *into, size_t n);        /* for an upstream server */
/* One request after n frames of another type. */
void make_h2_window_updates(struct buffer *into, size_t n);
void make_h2_pings(struct buffer *into, size_t n);
void make_h2_unknown_frames(struct buffer *into, size_t n);
void make_h2_settings(struct buffer *into, size_t n);
void make_h2_priorities(struct buffer *into, size_t n);
void make_h2_cancelled(struct buffer *into, size_t n);      /* after n requests that the client cancels at once */
/* After n requests that the server resets because of an invalid frame (CVE-2025-8671). */
void make_h2_reset_by_server(struct buffer *into, size_t n);
void make_h2_continuations(struct buffer *into, size_t n);  /* one request in HEADERS and n CONTINUATION frames */
void make_h2_windows_of_a_byte(struct buffer *into, size_t n); /* one request; the window opens by a byte n times */
void make_h2_empty_data(struct buffer *into, size_t n);     /* one request with n empty DATA frames */
/* n requests. */
void make_h2_requests(struct buffer *into, size_t n);

/* Returns the number of responses with status 200 in the frames of a server. */
size_t h2_count_answers(struct str frames);
/* Returns the number of streams that the server has ended or reset. */
size_t h2_count_ends(struct str frames);

#endif
