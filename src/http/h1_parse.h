/*
 * The parser of HTTP/1 heads (RFC 9112 2 to 6): finds the end of a head, then parses it. It rejects malformed input,
 * and never repairs or drops it.
 */
#ifndef HTTP_H1_PARSE_H
#define HTTP_H1_PARSE_H

#include "http/protocol.h"

/* Progress of the search for the end of a head. Zeroed for a new head, except `line_feeds`. */
struct h1_scan {
    uint32_t start;                 /* start of the request line, after empty lines */
    uint32_t line;                  /* start of the incomplete line */
    uint32_t searched;              /* no line ends before this offset */
    uint32_t lines : 31;            /* complete lines */
    /* Accept a bare LF as line end (RFC 9112 2.2); set by the caller, for responses only. */
    uint32_t line_feeds : 1;
};

/*
 * Searches `bytes`, everything received so far, for the end of a request head. Returns the length including the
 * empty line (> 0), 0: incomplete, or a negative status: -400 (also for a bare LF without scan->line_feeds), -414,
 * -431. The result depends only on the bytes, not on how they were split into calls.
 */
int h1_head_end(struct h1_scan *scan, const struct session_settings *settings, struct str bytes);

/* Length of the longest accepted line, with its CRLF. */
size_t h1_longest_line(const struct session_settings *settings);

/*
 * h1_head.c: parses a complete head into `request`, which keeps slices of it; `arena` holds headers, decoded paths,
 * host. 0, or the status of the rejection (400, 413, 417, 501, 505; 500 when out of memory) with the parsed part
 * filled in. *out_keepalive: the connection persists (RFC 9112 9.3).
 */
int h1_parse_head(struct str head, const struct session_settings *settings, struct arena *arena,
                  struct request *request, bool *out_keepalive);

/*
 * Parses method, target and version (RFC 9112 3), separated by one space; `line` has no CRLF. 0, or the status of the
 * rejection (400, 505) with the parsed part filled in.
 */
int h1_parse_request_line(struct str line, struct request *request);

/* Fills in request line, method and target of a rejected head as far as possible, for the log. */
void h1_parse_rejected_head(struct str bytes, struct request *request);

/*
 * Parses field lines (RFC 9112 5), each ended by CRLF, into `headers`. 0, -EBADMSG, or -ENOMEM. Names with an
 * underscore are dropped unless `underscores`, as in nginx: a CGI application cannot distinguish them from names with a
 * hyphen. Names that imitate a field of the server (header_imitates) are always dropped.
 */
MUST_CHECK int h1_parse_fields(struct str lines, bool underscores, struct arena *arena, struct headers *headers);

/* True for a non-empty token (RFC 9110 5.6.2). */
bool h1_is_token(struct str s);
/* True for a field value (RFC 9110 5.5): no control byte except the tab. */
bool h1_is_value(struct str s);

#endif
