/*
 * The built-in page of an error: what happened in plain words, as the client likes to read it, and the id by which the
 * request is found in the log.
 */
#ifndef SERVER_ERROR_BODY_H
#define SERVER_ERROR_BODY_H

#include "server/request_state.h"


/* Gives the response, which has a status, its body and what belongs to it; without memory the status alone has to do. */
void error_body_make(struct request_state *request);

/* The page's style and the hash by which its policy allows it: for the test that they fit. */
extern const char error_style[], error_style_hash[];

#endif
