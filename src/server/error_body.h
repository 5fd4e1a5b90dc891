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

/* nginx's numbers for what error_page can tell apart; they leave as 400. */
enum { STATUS_CERTIFICATE_BAD = 495, STATUS_CERTIFICATE_ABSENT = 496 };
/* The number that leaves for a status: itself, or 400 for one of nginx's. */
int error_response_status(int status);

#endif
