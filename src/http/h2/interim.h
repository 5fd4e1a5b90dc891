/*
 * Interim responses (RFC 9113 8.1): HEADERS frames without END_STREAM ahead of the response.
 */
#ifndef HTTP_H2_INTERIM_H
#define HTTP_H2_INTERIM_H

#include "http/h2/session.h"

/*
 * Queues an interim response of a stream; dropped if LIMIT_INTERIM_BYTES of earlier ones are queued. 0, -ENOMEM, or
 * -EINVAL: a status or field that must not be sent.
 */
MUST_CHECK int h2_interim_queue(struct h2_stream *stream, int status, const struct headers *headers);

#endif
