/*
 * The control socket (`control`): an HTTP API with JSON that shows and changes the state of the running server. Its
 * requests are handled by the worker that accepts the connection. Private to src/control, except for the module.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include "control/report.h"
#include "http/exchange.h"
#include "server/worker.h"

/* One request. In the arena of its exchange. */
struct control_call {
    struct exchange *x;
    struct worker *worker;
    struct report report;           /* of a response with status 200 */
    char error[256];                /* of any other status */
};

/* Handles a request. Returns 200 with the report, or the result of control_fail. */
typedef int control_verb(struct control_call *call);

/* One row of the API. */
struct control_resource {
    const char *path;
    enum method method;             /* METHOD_GET (HEAD, too) or METHOD_POST */
    control_verb *verb;
    const char *help;               /* for GET /v1 */
};

/* Formats the message of an error. Returns `status`. */
int control_fail(struct control_call *call, int status, const char *format, ...) PRINTF_LIKE(3, 4);

/* The verbs by subject: control_workers.c, control_upstreams.c, control_certificates.c, control_configuration.c. */
control_verb control_workers, control_upstreams, control_certificates, control_configuration;

#endif
