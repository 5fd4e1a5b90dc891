/*
 * Formats values for display, in at most ten characters each, and escapes texts of the server.
 */
#ifndef TOP_TOP_TEXT_H
#define TOP_TOP_TEXT_H

#include "base/str.h"

struct top_text {
    char text[16];
};

/* A count or a rate: "0", "0.50", "123", "12.3k", "4.56M". */
struct top_text top_count(double value);
/* A number of bytes: "0 B", "12.3 KiB". */
struct top_text top_bytes(double value);
/* A short time: "250 us", "1.50 ms", "2.25 s". */
struct top_text top_duration(double seconds);
/* A share from 0 to 1: "12.3%". */
struct top_text top_share(double share);

/* A long time: "3d 04:05:06". */
void top_uptime(int64_t seconds, char into[32]);
/*
 * Copies a text and terminates it. Backslashes and all bytes that are not printable ASCII become \xNN. A text that does
 * not fit in `size` (at least 2) is truncated, and '~' is its last character.
 */
void top_escape(struct str text, char *into, size_t size);

#endif
