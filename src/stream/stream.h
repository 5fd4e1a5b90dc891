/*
 * Connections below HTTP: a client, a server behind, and bytes both ways until both have said all.
 */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include "server/worker.h"

/* For worker_start. */
extern const struct stream_listening stream_listening;

#endif
