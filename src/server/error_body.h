/*
 * The built-in error page: a plain description in the format that the client prefers, and the request id for finding
 * the request in the log.
 */
#ifndef SERVER_ERROR_BODY_H
#define SERVER_ERROR_BODY_H

#include "server/request_state.h"

/* Sets body, Content-Type and policy of a response that has a status. When out of memory only the status is sent. */
void error_body_make(struct request_state *request);

/* nginx's status numbers that error_page can distinguish; sent as 400. */
enum { STATUS_CERTIFICATE_BAD = 495, STATUS_CERTIFICATE_ABSENT = 496 };
/* Returns the status to send: 400 for nginx's internal numbers, else `status`. */
int error_response_status(int status);

#endif
