/*
 * One attempt over HTTP/2: the steps of a gateway (gateway.h) on a stream in place of a connection.
 */
#ifndef MODULES_GATEWAY_H2_STREAM_H
#define MODULES_GATEWAY_H2_STREAM_H

#include "modules/gateway/h2/shared_connection.h"

/* For `streams` of struct gateway. */
extern const struct gateway_streams gateway_http2_streams;

#endif
