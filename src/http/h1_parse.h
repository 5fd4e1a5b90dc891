/*
 * Heads of HTTP/1 messages (RFC 9112 2 to 6): where one ends, and what is in it.
 * Strict: what is not exactly right is refused, never repaired and never dropped.
 */
#ifndef HTTP_H1_PARSE_H
#define HTTP_H1_PARSE_H

#include "http/protocol.h"

/* How far the search for a head's end has come. Zeroed for a new head, but for `line_feeds`. */
struct h1_scan {
    uint32_t start;                 /* where the request line begins: behind empty lines */
    uint32_t line;                  /* where the line begins that is not whole yet */
    uint32_t searched;              /* no line ends before here */
    uint32_t lines : 31;            /* whole ones */
    uint32_t line_feeds : 1;              /* a bare LF ends a line, too (RFC 9112 2.2); set by the caller, for responses only */
};

/*
 * Looks for the end of a request head in `bytes`: everything that came so far, that is the bytes of the last call and more. The length
 * up to and with the empty line (> 0), 0: more is needed, or minus a status: -400 (also a bare LF, without scan->line_feeds), -414, -431. Depends on the bytes alone, not on
 * how they were cut into calls.
 */
int h1_head_end(struct h1_scan *scan, const struct session_settings *settings, struct str bytes);

/* Bytes of the longest line that is let through, with its CRLF. */
size_t h1_longest_line(const struct session_settings *settings);

/*
 * Parses a whole head, from the request line to the empty line, into `request`, which keeps slices of it; `arena` gets headers, decoded paths, host. 0, or the status
 * of the refusal (400, 413, 417, 501, 505; 500 when out of memory): then what was understood before is filled in. *out_keepalive: the
 * client wants the connection kept (RFC 9112 9.3).
 */
int h1_parse_head(struct str head, const struct session_settings *settings, struct arena *arena, struct request *request,
                  bool *out_keepalive);

/* Fills in what the beginning of a refused head tells (request line, method, target), for the log. */
void h1_parse_remains(struct str bytes, struct request *request);

/* A copy of `lines` in which each LF has a CR before it: for what came with bare LF. data NULL: out of memory. */
struct str h1_copy_lines(struct arena *arena, struct str lines);
/*
 * Parses field lines (RFC 9112 5), each ended by CRLF, up to the end of `lines`, into `headers`. 0, -EBADMSG, or -ENOMEM. Names with an underscore are left out
 * unless `underscores`, as nginx does: they are legal, but turn into other names behind a CGI. Those that imitate a field of the server (header_imitates)
 * are left out in any case.
 */
MUST_CHECK int h1_parse_fields(struct str lines, bool underscores, struct arena *arena, struct headers *headers);

/* A token (RFC 9110 5.6.2): not empty. */
bool h1_is_token(struct str s);
/* A field value (RFC 9110 5.5): no control byte but the tab. */
bool h1_is_value(struct str s);

#endif
