/*
 * HTTP dates (RFC 9110 5.6.7): formatted as IMF-fixdate, parsed in all three formats.
 */
#ifndef HTTP_DATE_H
#define HTTP_DATE_H

#include "base/str.h"

#define DATE_LENGTH 29

/* Formats "Sun, 06 Nov 1994 08:49:37 GMT" into `into` (at least DATE_LENGTH + 1 bytes). */
struct str date_format(int64_t seconds, char *into);
/* 0, or -EINVAL. Ignores case (RFC 9111 4.2). `now` decides the century of an rfc850-date. */
MUST_CHECK int date_parse(struct str text, int64_t now, int64_t *out_seconds);
/* Formats nginx's $time_local and $time_iso8601, in local time; `into` has at least 40 bytes. */
struct str date_format_local(int64_t seconds, char *into);
struct str date_format_iso8601(int64_t seconds, char *into);

#endif
