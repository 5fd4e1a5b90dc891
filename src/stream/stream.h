/*
 * `stream`: TCP proxying. Transfers bytes between a client and an upstream server until both directions have ended.
 */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include "server/worker.h"

/* For worker_start. */
extern const struct stream_listening stream_listening;

#endif
