/*
 * Finds a ".." by which a request leaves the folder that the configuration has written: a path is put together from pieces of both.
 */
#ifndef HTTP_URL_CLIMB_H
#define HTTP_URL_CLIMB_H

#include "base/str.h"

/*
 * Zeroed at first. Of a piece of the request "../b" climbs behind "/a/", and "/x/../b" behind "/a" does not: ".." may only remove segments that the
 * same piece has added. ".." that is the configuration's alone is allowed. A backslash, an escaped slash and parameters ("..;x") are
 * read in the way that leads furthest up, since applications differ.
 */
struct url_climb {
    bool encoded;                   /* set by the caller: the pieces are percent-encoded, and "?" ends the path */
    bool found;                     /* the result of url_climb_end */
    bool ended;                     /* "?" was read */
    bool given;                     /* the segment has bytes of a request */
    bool whole;                     /* the segment begins in this piece */
    bool parameters;                /* ";" was read in this segment */
    unsigned depth;                 /* complete segments that this piece has added */
    unsigned length, dots;          /* bytes of the segment, and how many of them are dots */
    unsigned escape_length;         /* an escape that is not complete yet: "%", "%2" */
    char escape[2];
};

/* A further piece of the path; `given`: a request has chosen it. */
void url_climb_add(struct url_climb *climb, struct str piece, bool given);
/* After the last piece: true where the path climbs. */
bool url_climb_end(struct url_climb *climb);

#endif
