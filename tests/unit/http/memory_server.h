/*
 * A server whose allocations fail at a chosen one: responds to each request when its body has ended.
 */
#ifndef TEST_HTTP_MEMORY_SERVER_H
#define TEST_HTTP_MEMORY_SERVER_H

#include "http/protocol.h"

/* Number of allocations that still succeed, before one fails; -1: all succeed. */
extern long memory_server_until_failure;
/* Exchanges that have begun and not finished. */
extern int memory_server_open;
/* Number of 103 responses before each response. */
extern int memory_server_interims;

extern const struct exchange_events memory_server_events;

#endif
