/*
 * Sends batches to the collector by HTTP/1.1, plain or over TLS, on a persistent connection. Waits, for a limited time:
 * only the exporter calls it, which is a process of its own.
 */
#ifndef OTLP_OTLP_SEND_H
#define OTLP_OTLP_SEND_H

#include "otlp/otlp.h"
#include "otlp/otlp_response.h"
#include "otlp/otlp_socket.h"
#include "otlp/otlp_tls.h"

/* Zeroed: not open. */
struct otlp_connection {
    bool open;
    struct otlp_socket socket;
    struct otlp_tls tls;            /* zeroed: plain */
};

/*
 * Sends a request with this body, which is compressed if otlp->gzip, on the open connection or on a new one. If an open
 * one fails before a response begins, the request is repeated on a new one, once. The connection remains open if the
 * response permits it. `events` outlives the connection. 0: *out_response is set; or -errno: there was no response.
 * *out_fault is the reason of a failure of TLS, a constant text, or NULL: the error number states it.
 */
MUST_CHECK int otlp_send(struct otlp_connection *connection, struct otlp_events *events, const struct otlp *otlp,
                         struct str body, struct otlp_response *out_response, const char **out_fault);
/* Closes an open connection that the collector has closed, or on which it has sent bytes without a request. */
void otlp_connection_check(struct otlp_connection *connection);
/* Closes the connection, if it is open. */
void otlp_connection_close(struct otlp_connection *connection);

#endif
