/*
 * The timeouts of streams, of an incomplete header block and of the first GOAWAY. Each is checked when the session's
 * deadline passes, so that the events of other streams do not extend it.
 */
#ifndef HTTP_H2_TIMEOUT_H
#define HTTP_H2_TIMEOUT_H

#include "http/h2/session.h"

/* SESSION_DEADLINE: fails streams whose time has passed, and sets the next deadline. */
void h2_timeout_check(struct h2_session *h2);

#endif
