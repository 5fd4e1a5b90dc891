/*
 * Completes the line ends of responses and trailers, where a bare LF may end a line (RFC 9112 2.2).
 */
#ifndef HTTP_H1_LINE_ENDS_H
#define HTTP_H1_LINE_ENDS_H

#include "base/arena.h"

/* Copies `lines` with a CR inserted before each bare LF. data NULL: out of memory. */
struct str h1_copy_lines(struct arena *arena, struct str lines);

#endif
