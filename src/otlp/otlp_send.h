/*
 * Sends one batch to the collector by HTTP/1.1, plain or over TLS, on a connection of its own. Waits, for a limited time: only the exporter
 * calls it, which is a process of its own.
 */
#ifndef OTLP_OTLP_SEND_H
#define OTLP_OTLP_SEND_H

#include "otlp/otlp.h"
#include "otlp/otlp_response.h"

struct otlp_events;                 /* otlp/otlp_socket.h */

/*
 * Sends a request with this body, which is compressed if otlp->gzip. 0: *out_response is set; or -errno: there was no
 * response. *out_fault is the reason of a failure of TLS, a constant text, or NULL: the error number states it.
 */
MUST_CHECK int otlp_send(struct otlp_events *events, const struct otlp *otlp, struct str body,
                         struct otlp_response *out_response, const char **out_fault);

#endif
