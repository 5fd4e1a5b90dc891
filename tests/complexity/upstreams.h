/* Upstream servers in the process of the tested server: a connection sends a response when a request is complete. */
#ifndef TEST_COMPLEXITY_UPSTREAMS_H
#define TEST_COMPLEXITY_UPSTREAMS_H

#include "../modules/loopback.h"

/* Listens on the sockets "http" and "fastcgi" in the server's directory. Aborts the test on failure. */
void upstreams_open(struct loopback *server);
/*
 * Sets the response to the next request and to those after it; the texts must outlive these requests. `piece`: bytes
 * per send; 0: as many as fit. `bodies`: each request has a body, which ends by an empty line.
 */
void upstreams_set_responses(struct str first, struct str later, size_t piece, bool bodies);
/* Accepts, reads and sends what is possible without waiting. */
void upstreams_serve(void);
/* Closes all connections. */
void upstreams_disconnect(void);

#endif
