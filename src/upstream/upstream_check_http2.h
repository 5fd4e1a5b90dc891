/*
 * The session of a health check over HTTP/2: one request on a connection of its own. Private to upstream/.
 */
#ifndef UPSTREAM_UPSTREAM_CHECK_HTTP2_H
#define UPSTREAM_UPSTREAM_CHECK_HTTP2_H

#include "base/arena.h"
#include "http/h2/client_session.h"

struct check_session;

/* Creates the request of all checks in the arena. NULL: out of memory. */
struct h2_client_request *check_request_create(struct arena *arena, bool https, struct str host, struct str uri);

/* Creates a session and queues the request; `request` and `clock` outlive it. NULL: out of memory. */
struct check_session *check_session_create(const struct h2_client_request *request, const struct clock *clock);
/* Accepts NULL. */
void check_session_destroy(struct check_session *session);
/* Queues RST_STREAM for the rest of the response, and GOAWAY. */
void check_session_end(struct check_session *session);
/*
 * Returns frames to send in two parts, like h2_client_session_produce; -EAGAIN: none are left. Called after each event
 * of the connection: there is no notification of new frames.
 */
MUST_CHECK int check_session_produce(struct check_session *session, size_t room, struct str out_parts[2]);
/*
 * Consumes received bytes. Returns the status of the response; 0: more bytes are needed; -EPROTO: the server violated
 * the protocol or reset the stream; -ENOMEM.
 */
MUST_CHECK int check_session_receive(struct check_session *session, struct str bytes);

#endif
