/*
 * Checks a path joined from pieces of the configuration and of the request: detects a ".." of the request that leaves
 * the directory that the configuration sets.
 */
#ifndef HTTP_URL_TRAVERSAL_H
#define HTTP_URL_TRAVERSAL_H

#include "base/str.h"

/*
 * Zeroed at first. In a piece of the request after "/a/", "../b" traverses; after "/a", "/x/../b" does not: ".." may
 * only remove segments that the same piece has added. ".." in a piece of the configuration is allowed. Backslashes,
 * escaped slashes and parameters ("..;x") get the interpretation that traverses, since applications differ.
 */
struct url_traversal {
    bool encoded;                   /* set by the caller: the pieces are percent-encoded, and "?" ends the path */
    bool found;                     /* the result of url_traversal_end */
    bool ended;                     /* "?" was read */
    bool from_request;              /* the segment has bytes of the request */
    bool whole;                     /* the segment begins in this piece */
    bool parameters;                /* ";" occurred in this segment */
    unsigned depth;                 /* complete segments added by this piece */
    unsigned length, dots;          /* bytes of the segment, and dots among them */
    unsigned escape_length;         /* bytes of an incomplete escape: "%", "%2" */
    char escape[2];
};

/* Adds a piece of the path; `from_request`: it comes from the request. */
void url_traversal_add(struct url_traversal *traversal, struct str piece, bool from_request);
/* After the last piece: true if the path traverses. */
bool url_traversal_end(struct url_traversal *traversal);

#endif
