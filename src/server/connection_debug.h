/*
 * The debug log of the clients that debug_connection selects, or of all clients if error_log has level debug. The
 * functions do nothing for other connections.
 */
#ifndef SERVER_CONNECTION_DEBUG_H
#define SERVER_CONNECTION_DEBUG_H

#include "server/connection.h"

/* True if the connections of this client have a debug log. */
bool connection_debug_is_on(const struct worker *worker, const union proxy_address *peer);
/*
 * Decides this again for all open connections, after a change of the level. Frames are logged of new connections only.
 */
void connection_debug_update(struct worker *worker);

/* private: use connection_debug and request_debug */
void connection_debug_write(const struct connection *connection, const char *format, ...) PRINTF_LIKE(2, 3);
/* The trace of exchange_events. */
void connection_debug_trace(void *connection, struct str text);

/* Log a new connection and, once its handshake is done, its protocol. */
void connection_debug_accepted(const struct connection *connection);
void connection_debug_opened(const struct connection *connection);
/* "responded" and so on. */
const char *connection_debug_outcome(enum outcome outcome);
/* The end of a response, complete or aborted. */
void connection_debug_finished(const struct request_state *request);

/* One line about the connection. */
#define connection_debug(connection, ...)                                                                    \
    do {                                                                                                     \
        if ((connection)->debug)                                                                             \
            connection_debug_write(connection, __VA_ARGS__);                                                 \
    } while (0)
/* One line about the request, with client, server, request line, host and id. */
#define request_debug(request, ...)                                                                          \
    do {                                                                                                     \
        if ((request)->connection->debug)                                                                    \
            exchange_log_error((request)->x, LOG_DEBUG, __VA_ARGS__);                                        \
    } while (0)

#endif
